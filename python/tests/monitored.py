"""Two hosts, two edge routers and a WAN that are watched by Prometheus: `monitored.py FILE` writes what it answers.

As root, with mounts of its own (`unshare --mount`); namespaces, processes and addresses end with it. Prometheus scrapes
each second, and is asked what `dashboard.json` asks, with Grafana's variables replaced, and which alerts there were.

    hosts a and b: narrowsd serve, two controllers, the near-source loop      a ── paris ══ WAN ══ frankfurt ── b
    paris:         narrowsd serve, an edge router, metrics over HTTP
    frankfurt:     narrowsd bridge --metrics FILE, which node_exporter reads
"""

import contextlib
import ctypes
import fcntl
import heapq
import hmac
import itertools
import json
import os
import random
import re
import select
import shutil
import signal
import socket
import struct
import subprocess
import sys
import tempfile
import threading
import time
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path

CHECKOUT = Path(__file__).parents[2]
FILES = CHECKOUT / "crates" / "narrows-daemon" / "packaging" / "monitoring"
CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "narrows" / "monitoring" / "usr" / "bin"
"""Where `make system-tools` unpacks what is not installed."""

LEFT, RIGHT, REFUSING = "192.0.2.1", "192.0.2.2", "192.0.2.3"
"""Addresses for documentation [RFC 5737], in namespaces of their own."""
WATCH = {"hosts": "198.51.100.1", "paris": "198.51.100.5", "frankfurt": "198.51.100.9"}
"""Where the watching namespace is, as seen from each; they have the next address."""
PROMETHEUS = "http://127.0.0.1:9090"
DIRECTLY = urllib.request.build_opener(urllib.request.ProxyHandler({}))
SCRAPE = (1, 2)
"""Seconds between two scrapes, in tests and for the picture: at less, rates show how old the answers are."""
IDENTITY = 0x300000007
KEYS = {"bridge.key": bytes(range(32)), "switch.key": bytes(range(32, 64))}
CLONE_NEWNET = 0x40000000
TUNNEL = 8_936
NOTIFICATIONS = 8_935

PHASES = {
    "flows start": (3, 15),
    "loss begins": (3, 20),
    "DCTCP starts": (2, 20),
    "near-source notifies": (3, 15),
    "a listener refuses ECN": (3, 15),
    "messages are forged": (3, 15),
    "process in Paris stops": (2, 15),
    "process in Frankfurt killed": (7, 85),
    "Frankfurt works again": (2, 20),
    "process in Paris killed": (5, 25),
    "Paris works again": (2, 20),
    "serve in Paris killed": (4, 20),
    "flows end": (1, 15),
}
"""What happens, and for how many seconds in tests and for the picture; until the next begins."""


def tool(name):
    """A program of Prometheus', installed or unpacked."""
    return shutil.which(name) or (str(CACHE / name) if (CACHE / name).exists() else None)


def narrowsd():
    """What is tested."""
    return os.environ.get("NARROWSD") or str(CHECKOUT / "target" / "narrowsd")


def ip(line):
    """Changes the network."""
    subprocess.run(["ip", *line.split()], check=True, capture_output=True)


def enter(namespace):
    """This thread, and what it starts, is in a network namespace from now on."""
    with Path(f"/run/netns/{namespace}").open() as file:
        if ctypes.CDLL(None, use_errno=True).setns(file.fileno(), CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"the namespace {namespace}")


def within(namespace, work):
    """What is done in a network namespace, on a thread that stays there."""
    found = []

    def entered():
        enter(namespace)
        found.append(work())

    thread = threading.Thread(target=entered)
    thread.start()
    thread.join()
    if not found:
        raise OSError(f"nothing came of it in {namespace}")
    return found[0]


def raw(namespace, device):
    """A socket that sees each frame of a device that comes in."""

    def made():
        one = socket.socket(socket.AF_PACKET, socket.SOCK_RAW | socket.SOCK_NONBLOCK, socket.htons(3))
        one.setsockopt(263, 23, 1)  # SOL_PACKET, PACKET_IGNORE_OUTGOING
        one.setsockopt(socket.SOL_SOCKET, 33, 1 << 23)  # SO_RCVBUFFORCE
        one.bind((device, 0))
        return one

    return within(namespace, made) if namespace else made()


class Wan:
    """Frames between `wan0` and `wan1`: a rate, a queue that marks and drops, a delay; loss and forgeries by order."""

    RATE, DELAY, MARK, LIMIT = 24e6, 0.005, 15, 100

    def __init__(self):
        self.ends = [raw(None, "wan0"), raw(None, "wan1")]
        self.free = [0.0, 0.0]
        self.order = {"loss": 0.0, "forge": False}
        self.under = []
        self.count = itertools.count()
        self.random = random.Random(7)

    def run(self):
        """Until the orders end."""
        while True:
            wait = min(0.005, max(0.0, self.under[0][0] - time.monotonic())) if self.under else 0.005
            ready, _, _ = select.select([0, *self.ends], [], [], wait)
            if 0 in ready:
                line = sys.stdin.readline()
                if not line:
                    return
                self.order.update(json.loads(line))
            for side, end in enumerate(self.ends):
                if end in ready:
                    self._take(side, end)
            self._give()

    def _give(self):
        now = time.monotonic()
        while self.under and self.under[0][0] <= now:
            _, _, side, frame = heapq.heappop(self.under)
            with contextlib.suppress(OSError):
                self.ends[1 - side].send(frame)

    def _take(self, side, end):
        for _ in range(64):
            try:
                frame = bytearray(end.recv(65_536))
            except OSError:
                return
            now = time.monotonic()
            queue = max(0.0, self.free[side] - now) * self.RATE / 8 / 1_538
            is_v4, ecn = frame[12:14] == b"\x08\x00", frame[15] & 3
            self.free[side] = max(now, self.free[side]) + (len(frame) + 24) * 8 / self.RATE
            if queue > self.LIMIT or (len(frame) > 200 and not ecn and self.random.random() < self.order["loss"]):
                continue
            if is_v4 and ecn and queue > self.MARK:
                mark(frame)
            due = self.free[side] + self.DELAY
            heapq.heappush(self.under, (due, next(self.count), side, bytes(frame)))
            is_tunnels = is_v4 and frame[23] == 17 and frame[36:38] == TUNNEL.to_bytes(2, "big")
            if self.order["forge"] and is_tunnels and side == 0:
                # Another tag, and no checksum that would tell.
                frame[40:42], frame[-1] = b"\0\0", frame[-1] ^ 1
                heapq.heappush(self.under, (due, next(self.count), side, bytes(frame)))


def mark(frame):
    """Congestion Experienced, with the header's sum."""
    frame[15] |= 3
    frame[24:26] = b"\0\0"
    total = sum(struct.unpack(">10H", frame[14:34]))
    total = (total & 0xFFFF) + (total >> 16)
    frame[24:26] = (~(total + (total >> 16)) & 0xFFFF).to_bytes(2, "big")


def without_offload(namespace, device):
    """Packets leave it with their checksums, one at a time."""

    def done():
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as one:
            for command in (0x17, 0x1F, 0x24):  # ETHTOOL_STXCSUM, ETHTOOL_STSO, ETHTOOL_SGSO
                value = ctypes.create_string_buffer(struct.pack("II", command, 0))
                fcntl.ioctl(one, 0x8946, struct.pack("16sP16x", device.encode(), ctypes.addressof(value)))
        return True

    within(namespace, done)


class Flow:
    """A connection that sends all it can, or so many bits a second, from one host to the other."""

    def __init__(self, controller, start="a", end="b", rate=None):
        to = RIGHT if end == "b" else LEFT
        self.rate = rate
        self.stopped = threading.Event()

        def listening():
            one = socket.socket()
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
            one.bind((to, 0))
            one.listen()
            one.settimeout(10)
            return one

        def connected():
            one = socket.socket()
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_CONGESTION, controller.encode())
            one.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
            one.settimeout(10)
            one.connect(listener.getsockname())
            return one

        with within(end, listening) as listener:
            sender = within(start, connected)
            receiver, _ = listener.accept()
        self.ends = [sender, receiver]
        self.threads = [threading.Thread(target=work, daemon=True) for work in (self._send, self._receive)]
        for thread in self.threads:
            thread.start()

    def _send(self):
        with contextlib.suppress(OSError):
            self.ends[0].settimeout(0.5)
            while not self.stopped.is_set():
                with contextlib.suppress(TimeoutError):
                    sent = self.ends[0].send(bytes(1 << 14))
                    time.sleep(8 * sent / self.rate if self.rate else 0)

    def _receive(self):
        with contextlib.suppress(OSError):
            self.ends[1].settimeout(0.5)
            while not self.stopped.is_set():
                with contextlib.suppress(TimeoutError):
                    self.ends[1].recv(1 << 16)

    def stop(self):
        """At once."""
        self.stopped.set()
        for thread in self.threads:
            thread.join()
        for end in self.ends:
            end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            end.close()


class Switch:
    """Speaks to host a of each packet with data that it sees, twenty a second [docs/reference/wire.md]."""

    def __init__(self):
        self.frames = raw("paris", "in0")
        self.stopped = threading.Event()
        self.told = within("watch", lambda: socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
        self.told.bind((WATCH["hosts"], 0))
        self.told.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 255)
        self.thread = threading.Thread(target=self._speak, daemon=True)
        self.thread.start()

    def _speak(self):
        while not self.stopped.wait(0.05):
            with contextlib.suppress(BlockingIOError):
                while True:
                    frame = self.frames.recv(65_536)
            select.select([self.frames], [], [], 0.05)
            with contextlib.suppress(BlockingIOError):
                frame = self.frames.recv(65_536)
                begin = 34 + 4 * (frame[46] >> 4) if len(frame) > 54 else 0
                payload = len(frame) - begin
                if frame[23] == 6 and payload > 0 and begin:
                    self._tell(frame, payload)

    def _tell(self, frame, payload):
        head = struct.pack(">BBBBQQii", 1, 1, 20, 4, IDENTITY, time.time_ns(), 20_000, 10_000)
        flow = frame[34:42] + struct.pack(">HH", payload, 0) + frame[26:30] + bytes(12) + frame[30:34] + bytes(12)
        tag = hmac.digest(KEYS["switch.key"], head + flow, "sha256")[:16]
        self.told.sendto(head + flow + tag, (next_to(WATCH["hosts"]), NOTIFICATIONS))

    def stop(self):
        """No more."""
        self.stopped.set()
        self.thread.join()


def next_to(address):
    """The other end of its link."""
    begin, _, last = address.rpartition(".")
    return f"{begin}.{int(last) + 1}"


SERVED = """\
metrics = "{address}:9936"
"""
HOSTS = """
[controller.gemini]
set = {{ capacity = "24Mbps", t = "3ms" }}
[controller.dctcp]
[[route]]
prefix = "{refusing}/32"
controller = "gemini"
[near-source]
senders = "{folder}/senders.toml"
line-rate = "1Gbps"
"""
PARIS = """
[bridge.paris]
inside = "in0"
outside = "out0"
peer = "frankfurt"
key = "{folder}/bridge.key"
rate = "24Mbps"
round-trip = "12ms"
sign = 44
marks = "clear"
"""
SENDERS = """\
[[sender]]
identity = "{identity:#x}"
address = "{address}"
host = "{host}"
key-file = "switch.key"
"""
CONFIGURATION = """\
global: {{ scrape_interval: {scrape}s, scrape_timeout: 900ms, evaluation_interval: 1s }}
rule_files: ["{rules}"]
scrape_configs:
  - job_name: narrows
    static_configs:
      - {{ targets: ["{hosts}:9936"], labels: {{ instance: hosts }} }}
  # One kernel has the controllers of all these machines: of Paris' own there are none.
  - job_name: narrows-paris
    static_configs:
      - {{ targets: ["{paris}:9936"], labels: {{ instance: paris }} }}
    metric_relabel_configs:
      - {{ source_labels: [__name__], regex: "narrows_(flows.*|window.*|pacing.*|ecn.*|unpublished.*)", action: drop }}
  - job_name: node
    static_configs:
      - {{ targets: ["{frankfurt}:9100"], labels: {{ instance: frankfurt }} }}
"""


def hurried(rules):
    """The rules with shorter times: what takes minutes takes seconds."""
    for said, meant in ((r"\bfor: \w+", "for: 1s"), (r"\[\d+m\]", "[5s]"), (r"> 60\b", "> 3")):
        rules, count = re.subn(said, meant, rules)
        assert count, said
    return rules


class World:
    """The network, what runs on it, and what becomes of it."""

    def __init__(self, folder, *, is_picture):
        self.folder = folder
        self.is_picture = is_picture
        self.scrape = SCRAPE[is_picture]
        self.processes = {}
        self.began = time.time()
        self.phases = []
        self.flows = []
        subprocess.run(["mount", "-t", "tmpfs", "-o", "mode=755", "none", "/run"], check=True)
        for name, key in KEYS.items():
            self._write(name, key.hex()).chmod(0o600)
        self._write("senders.toml", SENDERS.format(identity=IDENTITY, address=WATCH["hosts"], host=LEFT))
        self.metrics = folder / "metrics"
        self.metrics.mkdir()
        self._links()

    def _write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return path

    def _links(self):
        for name in ("a", "paris", "wan", "frankfurt", "b", "watch"):
            ip(f"netns add {name}")
            ip(f"-n {name} link set lo up")
            values = {"net/ipv4/tcp_ecn": "0", "net/ipv6/conf/default/disable_ipv6": "1"}
            within(name, lambda values=values: [Path("/proc/sys", key).write_text(to) for key, to in values.items()])
        for one, device, other, far in (
            ("a", "eth0", "paris", "in0"),
            ("paris", "out0", "wan", "wan0"),
            ("wan", "wan1", "frankfurt", "out0"),
            ("frankfurt", "in0", "b", "eth0"),
            ("watch", "hosts", "a", "watch"),
            ("watch", "paris", "paris", "watch"),
            ("watch", "frankfurt", "frankfurt", "watch"),
        ):
            ip(f"link add {device} netns {one} type veth peer name {far} netns {other}")
            ip(f"-n {one} link set {device} up")
            ip(f"-n {other} link set {far} up")
        for name, address in (("a", LEFT), ("b", RIGHT), ("b", REFUSING)):
            ip(f"-n {name} address add {address}/24 dev eth0")
        for name in ("a", "b"):
            without_offload(name, "eth0")
        for name, address in WATCH.items():
            ip(f"-n watch address add {address}/30 dev {name}")
            ip(f"-n {'a' if name == 'hosts' else name} address add {next_to(address)}/30 dev watch")

    def start(self, name, machine, *command, namespace=None, **options):
        """A process on a machine: its mounts, if it has any of its own, and its network. It ends with this one."""
        mounts = ["--target", str(self.processes[machine].pid), "--mount"] if machine else []
        enter = ["nsenter", *mounts, f"--net=/run/netns/{namespace or machine}"]
        # As units have it: packets wait for edge routers, and here for the WAN.
        nice = "-10" if machine in ("paris", "frankfurt") or name == "wan" else "0"
        log = (self.folder / f"{name}.log").open("ab")
        self.processes[name] = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", "nice", "-n", nice, *enter, *map(str, command)],
            stdin=options.get("stdin", subprocess.DEVNULL),
            stdout=log,
            stderr=log,
        )
        log.close()

    def machine(self, name):
        """Mounts of its own, where what an edge router keeps of itself is."""
        mounts = "mkdir -p /run/narrows; mount -t tmpfs none /run/narrows; mount -t bpf bpf /sys/fs/bpf"
        alone = ["unshare", "--mount", "--propagation", "private", "sh", "-c", f"{mounts}; echo made; exec sleep 900"]
        self.processes[name] = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", "--", *alone], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL
        )
        assert self.processes[name].stdout.readline() == b"made\n"

    def begin(self):
        """Everything runs, and is scraped."""
        for name in ("hosts", "paris", "frankfurt"):
            self.machine(name)
        self.start("wan", None, sys.executable, __file__, "--wan", namespace="wan", stdin=subprocess.PIPE)
        for name, more, namespace in (("hosts", HOSTS, "a"), ("paris", PARIS, "paris")):
            text = (SERVED + more).format(address=next_to(WATCH[name]), folder=self.folder, refusing=REFUSING)
            self._write(f"{name}.toml", text)
            self.serve(name, namespace)
        self.bridge()
        exporter = [tool("prometheus-node-exporter"), "--collector.disable-defaults"]
        exporter += ["--collector.textfile", f"--collector.textfile.directory={self.metrics}"]
        self.start("exporter", "frankfurt", *exporter, "--web.listen-address", f"{next_to(WATCH['frankfurt'])}:9100")
        rules = self._write("rules.yml", hurried((FILES / "alerts.yml").read_text()))
        addresses = {name: next_to(address) for name, address in WATCH.items()}
        text = CONFIGURATION.format(rules=rules, scrape=self.scrape, **addresses)
        paths = [f"--config.file={self._write('prometheus.yml', text)}", f"--storage.tsdb.path={self.folder}/data"]
        self.start(
            "prometheus", None, tool("prometheus"), *paths, "--web.listen-address=127.0.0.1:9090", namespace="watch"
        )
        self.until(lambda: self.value("count(up == 1)") == 3, "three targets are up")
        self.until(lambda: self.value('sum(narrows_loaded{instance="hosts"})') == 2, "two controllers are loaded")
        self.until(lambda: self.value("count(narrows_bridge_alive == 1)") == 2, "two edge routers work")

    def serve(self, name, namespace):
        """`narrowsd serve` of a machine."""
        config = self.folder / f"{name}.toml"
        self.start(f"serve {name}", name, narrowsd(), "serve", "--config", config, namespace=namespace)

    def bridge(self):
        """The edge router in Frankfurt, alone."""
        options = "--inside in0 --outside out0 --name frankfurt --peer paris --rate 24Mbps --round-trip 12ms --sign 44"
        metrics = ["--metrics", self.metrics / "bridge-frankfurt.prom", "--every", "1"]
        key = ["--key", self.folder / "bridge.key"]
        self.start("bridge frankfurt", "frankfurt", narrowsd(), "bridge", *options.split(), *key, *metrics)

    def process_of_paris(self):
        """The number of the edge router's process, which `serve` has started."""
        enter = ["nsenter", "--target", str(self.processes["paris"].pid), "--mount", "--net=/run/netns/paris"]
        done = subprocess.run([*enter, narrowsd(), "bridge", "status"], check=True, capture_output=True, text=True)
        return json.loads(done.stdout)[0]["process"]

    def kill(self, name):
        """SIGKILL to a process that was started here."""
        process = self.processes.pop(name)
        process.kill()
        process.wait()

    def order(self, **what):
        """From now on the WAN does this."""
        self.processes["wan"].stdin.write(json.dumps(what).encode() + b"\n")
        self.processes["wan"].stdin.flush()

    def ask(self, path, **values):
        """What Prometheus answers."""
        address = f"{PROMETHEUS}/api/v1/{path}?{urllib.parse.urlencode(values)}"
        try:
            with DIRECTLY.open(address, timeout=10) as answer:
                return json.load(answer)
        except urllib.error.HTTPError as error:
            return json.load(error)

    def value(self, expression):
        """One number; none while there is none."""
        try:
            found = self.ask("query", query=expression)["data"]["result"]
        except (OSError, ValueError):  # it begins
            return None
        return float(found[0]["value"][1]) if found else None

    def until(self, done, what, seconds=15):
        """Waits for it."""
        begin = time.monotonic()
        while not done():
            if time.monotonic() - begin > seconds:
                raise TimeoutError(f"{what}\n{self.logs()}")
            time.sleep(0.1)

    def logs(self):
        """What all processes said."""
        return "\n".join(f"--- {path.name}\n{path.read_text()[-2000:]}" for path in sorted(self.folder.glob("*.log")))

    def act(self, phase):
        """What begins."""
        key, hidden = self.folder / "bridge.key", self.folder / "hidden.key"
        if phase == "flows start":
            self.flows = [Flow("narrows_gemini"), Flow("narrows_gemini")]
            self.flows += [Flow("cubic", rate=3e6), Flow("cubic", "b", "a", rate=10e6)]
        elif phase == "loss begins":
            self.order(loss=0.25)
        elif phase == "DCTCP starts":
            self.flows += [Flow("narrows_dctcp") for _ in range(3)]
        elif phase == "near-source notifies":
            self.switch = Switch()
        elif phase == "a listener refuses ECN":
            self.switch.stop()
            self.flows.pop(0).stop()
            self._write("hosts.toml", (self.folder / "hosts.toml").read_text() + "[controller.none]\n")
            self.processes["serve hosts"].send_signal(signal.SIGHUP)
        elif phase == "messages are forged":
            text = (self.folder / "hosts.toml").read_text()
            self._write("hosts.toml", text.replace("[controller.none]\n", ""))
            self.processes["serve hosts"].send_signal(signal.SIGHUP)
            self.order(forge=True)
        elif phase == "process in Paris stops":
            self.order(forge=False)
            process = self.process_of_paris()
            for _ in range(3):
                os.kill(process, signal.SIGSTOP)
                time.sleep(0.15)
                os.kill(process, signal.SIGCONT)
                time.sleep(0.15)
        elif phase == "process in Frankfurt killed":
            self.kill("bridge frankfurt")
        elif phase == "Frankfurt works again":
            self.bridge()
        elif phase == "process in Paris killed":
            # It cannot be started again without its key.
            process = self.process_of_paris()
            key.rename(hidden)
            os.kill(process, signal.SIGKILL)
        elif phase == "Paris works again":
            hidden.rename(key)
            self.processes["serve paris"].send_signal(signal.SIGHUP)
        elif phase == "serve in Paris killed":
            self.kill("serve paris")
        elif phase == "flows end":
            self.serve("paris", "paris")
            for flow in self.flows:
                flow.stop()

    def refuse(self):
        """A connection to a listener that refuses ECN; its packets may be lost."""
        with within("b", lambda: socket.create_server((REFUSING, 0))) as listener, within("a", socket.socket) as sender:
            sender.settimeout(2)
            with contextlib.suppress(TimeoutError):
                sender.connect(listener.getsockname())

    def run(self):
        """All phases."""
        self.began = time.time()
        for phase, seconds in PHASES.items():
            self.phases.append([phase, time.time()])
            self.act(phase)
            end = self.phases[-1][1] + seconds[self.is_picture]
            while time.time() < end:
                if phase == "a listener refuses ECN":
                    self.refuse()
                time.sleep(max(0.0, min(0.5, end - time.time())))
        self.ended = time.time()

    def recorded(self):
        """What Prometheus answers to the dashboard, and of alerts."""
        dashboard = json.loads((FILES / "dashboard.json").read_text())
        (variable,) = (one for one in dashboard["templating"]["list"] if one["name"] == "instance")
        selector = re.fullmatch(r"label_values\((.*), instance\)", variable["query"])[1]
        span = {"start": self.began, "end": self.ended}
        found = self.ask("label/instance/values", **{"match[]": selector}, **span)
        instances = found["data"]
        answers = {
            f"{panel['id']} {target['refId']}": self.ask(
                "query_range", query=as_grafana_asks(target["expr"], instances, self.scrape), step=self.scrape, **span
            )
            for panel in dashboard["panels"]
            for target in panel["targets"]
        }
        alerts = self.ask("query_range", query="ALERTS", step=self.scrape, **span)["data"]["result"]
        rules = self.ask("rules")["data"]["groups"]
        return {
            "began": self.began, "ended": self.ended, "phases": self.phases, "instances": instances, "answers": answers,
            "alerts": alerts, "rules": rules, "scrape": self.scrape,
        }  # fmt: skip

    def end(self):
        """Nothing goes on."""
        for flow in self.flows:
            with contextlib.suppress(OSError):
                flow.stop()
        if "serve hosts" in self.processes:
            self.processes["serve hosts"].terminate()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self.processes["serve hosts"].wait(10)
        for process in reversed(self.processes.values()):
            process.kill()
            process.wait()
        for name in ("a", "paris", "wan", "frankfurt", "b", "watch"):
            subprocess.run(["ip", "netns", "delete", name], check=False, capture_output=True)


def as_grafana_asks(expression, instances, scrape):
    """With its variables replaced: all instances are chosen, each escaped [Grafana's prometheusSpecialRegexEscape]."""
    escaped = [re.sub(r"[$^*{}\[\]'+?.()|\\]", lambda one: "\\\\" + one[0], name) for name in instances]
    # Four scrapes: more than a scrape and a step, which is one too.
    return expression.replace("$__rate_interval", f"{4 * scrape}s").replace("$instance", f"({'|'.join(escaped)})")


def main():
    """Writes what was recorded."""
    if sys.argv[1] == "--wan":
        Wan().run()
        return
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    with tempfile.TemporaryDirectory(prefix="narrows-monitored-") as folder:
        world = World(Path(folder), is_picture="--long" in sys.argv)
        try:
            # Prometheus listens in the namespace that watches.
            enter("watch")
            world.begin()
            world.run()
            recorded = world.recorded()
            recorded["logs"] = world.logs()
            Path(sys.argv[1]).write_text(json.dumps(recorded))
        except BaseException:
            sys.stderr.write(world.logs())
            raise
        finally:
            world.end()


if __name__ == "__main__":
    main()
