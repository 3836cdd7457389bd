"""Controllers of a Linux source are found in a tree or an archive, copied with what they include, and tried."""

from __future__ import annotations

import tarfile

import pytest
from conftest import narrows

from narrows import linux_source, native
from narrows.errors import BadInput

MODULE = """#include <linux/module.h>
#include <net/tcp.h>
#include "tcp_shared.h"
static unsigned int cap __read_mostly = 30;
module_param(cap, uint, 0644);
static void NAME_avoid(struct sock *sk, u32 ack, u32 acked)
{
	tcp_reno_cong_avoid(sk, ack, acked);
	tcp_sk(sk)->snd_cwnd = shared_least(tcp_sk(sk)->snd_cwnd, cap);
}
static struct tcp_congestion_ops NAME __read_mostly = {
	.ssthresh = tcp_reno_ssthresh, .cong_avoid = NAME_avoid, .undo_cwnd = tcp_reno_undo_cwnd,
	.owner = THIS_MODULE, .name = "NAME",
};
static int __init NAME_register(void) { return tcp_register_congestion_control(&NAME); }
static void __exit NAME_unregister(void) { tcp_unregister_congestion_control(&NAME); }
module_init(NAME_register);
module_exit(NAME_unregister);
MODULE_LICENSE("GPL");
"""
SHARED = """#include <linux/module.h>
#include <net/tcp.h>
#include "tcp_shared.h"
u32 shared_least(u32 one, u32 other) { return min(one, other); }
"""


BPF = """#include "vmlinux.h"
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>
#include "bpf_tracing_net.h"
extern __u32 tcp_reno_ssthresh(struct sock *sk) __ksym;
extern void tcp_reno_cong_avoid(struct sock *sk, __u32 ack, __u32 acked) __ksym;
extern __u32 tcp_reno_undo_cwnd(struct sock *sk) __ksym;
SEC(".struct_ops") struct tcp_congestion_ops dctcp = {
	.ssthresh = (void *)tcp_reno_ssthresh, .cong_avoid = (void *)tcp_reno_cong_avoid,
	.undo_cwnd = (void *)tcp_reno_undo_cwnd, .name = "bpf_dctcp",
};
"""


@pytest.fixture
def tree(tmp_path):
    """A source tree with two controllers, of which one asks for what the simulator does not have, and other files."""
    folder = tmp_path / "linux-source-6.7"
    (folder / "net" / "ipv4").mkdir(parents=True)
    for name, text in {
        "tcp_one.c": MODULE.replace("NAME", "one"),
        "tcp_two.c": MODULE.replace("NAME", "two").replace("acked);", "acked + tcp_sk(sk)->of_tomorrow);", 1),
        "tcp_shared.h": "u32 shared_least(u32 one, u32 other);\n",
        "tcp_shared.c": SHARED,
        "tcp_input.c": "int tcp_input(void);\n",
        "tcp_cong.c": "int tcp_register_congestion_control(struct tcp_congestion_ops *ca) { return 0; }\n",
    }.items():
        (folder / "net" / "ipv4" / name).write_text(text)
    tests = folder / "tools/testing/selftests/bpf/progs"
    tests.mkdir(parents=True)
    (tests / "bpf_dctcp.c").write_text(BPF)
    (tests / "bpf_other.c").write_text("int other;\n")
    (folder / "Makefile").write_text("# SPDX\nVERSION = 6\nPATCHLEVEL = 7\nSUBLEVEL = 3\n")
    return folder


def archived(tree):
    path = tree.parent / "source.tar.xz"
    with tarfile.open(path, "w:xz") as archive:
        archive.add(tree, tree.name)
    return path


@pytest.mark.parametrize("kind", ["tree", "net/ipv4", "archive"])
def test_controllers_are_copied_with_what_they_include_and_tried(tree, tmp_path, monkeypatch, kind):
    monkeypatch.chdir(tmp_path)
    source = {"tree": tree, "net/ipv4": tree / "net" / "ipv4", "archive": archived(tree)}[kind]
    folder, (one, two, test) = linux_source.copy_controllers(source, None)
    assert str(folder) == "linux-6.7"
    copied = ["bpf_dctcp.c", "tcp_one.c", "tcp_shared.c", "tcp_shared.h", "tcp_two.c"]
    assert sorted(path.name for path in folder.iterdir()) == copied
    assert (test.file, test.controller, test.lacks) == ("bpf_dctcp.c", "bpf_dctcp", "")
    assert (one.file, one.controller, one.lacks) == ("tcp_one.c", "one", "")
    assert one.parameters == [{"name": "cap", "value": "30"}]
    assert (two.file, two.controller) == ("tcp_two.c", None)
    assert two.lacks.startswith("tcp_two.c:")
    assert "of_tomorrow" in two.lacks


def test_the_command_lists_them_and_says_how_to_use_one(tree, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    said = narrows("cc", "import", str(tree)).stdout
    assert "2 of 3 controllers run in the simulator; they are in linux-6.7" in said
    assert 'cc = { file = "linux-6.7/tcp_one.c" }' in said
    shown = narrows("cc", "show", "linux-6.7/tcp_one.c").stdout
    assert "cap = 30" in shown
    again = narrows("cc", "import", str(tree))
    assert again.returncode == 2
    assert "linux-6.7 exists" in again.stderr


@pytest.mark.simulator
def test_a_sweep_sets_a_modules_parameter(tree, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    linux_source.copy_controllers(tree, None)
    (tmp_path / "swept.toml").write_text(
        """title = "A module's parameter"
name = "swept"
[topology.dumbbell]
pairs = 1
[[traffic]]
name = "bulk"
from = "left-1"
to = "right-1"
long = {}
[[arm]]
name = "one"
cc = { file = "linux-6.7/tcp_one.c" }
[sweep]
"cc.file.parameters.cap" = [10, 40]
[run]
end = "200ms"
"""
    )
    plans = native.expand("swept.toml", sets=[], quick=False)["plans"]
    found = [plan["plan"]["traffic"][0]["controller"]["program"]["parameters"] for plan in plans]
    assert found == [{"cap": "10"}, {"cap": "40"}]


def test_a_source_without_controllers_is_refused(tmp_path):
    (tmp_path / "damaged.tar.xz").write_bytes(b"no archive")
    for source, words in [
        (tmp_path, "has no congestion controllers"),
        (tmp_path / "absent", "No such file"),
        (tmp_path / "damaged.tar.xz", "cannot read"),
    ]:
        with pytest.raises(BadInput, match=words):
            linux_source.copy_controllers(source, tmp_path / "to")
    assert not (tmp_path / "to").exists()
