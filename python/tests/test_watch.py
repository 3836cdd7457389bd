"""`narrows run --watch`: the report of runs under way, for browsers of this machine alone."""

import http.client
import json
import os
import re
import signal
import socket
import subprocess
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import NARROWS, SMALL, narrows, until

from narrows import api
from narrows.cli.watch import watched
from narrows.errors import BadInput
from narrows.experiment import Experiment, identifier
from narrows.report import page
from narrows.report.serving import LOOPBACK, Site, port_of
from narrows.report.watch import SHARE, Pace, Watch
from narrows.runs.index import entry_of
from narrows.runs.partial import part_of

CHROMIUM = Path("/usr/bin/chromium")
SEVERAL = SMALL.replace("1..=2", "1..=4").replace("gemini", "bbr")


@pytest.fixture
def site():
    """A page that is served."""
    served = Site(0, title="<b>Mine</b>", text=lambda: "1 of 2 runs")
    yield served
    served.close()


def ask(port, path="/", *, method="GET", host=None):
    """Status, headers and content of an answer; with a host, of a request that says it is for that one."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=10)
    headers = {} if host is None else {"Host": host}
    connection.request(method, path, headers=headers)
    answer = connection.getresponse()
    content = answer.read()
    connection.close()
    return answer.status, dict(answer.getheaders()), content.decode()


def started(folder, *arguments, seconds="0.4", **environment):
    """The command with runs that take so long, and the address that it says."""
    command = subprocess.Popen(
        [NARROWS, "run", "mine.toml", "--jobs", "1", "--watch", *arguments], cwd=folder, text=True,
        env={**os.environ, "TEST_SECONDS": seconds, **environment}, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        start_new_session=True,
    )  # fmt: skip
    first = command.stdout.readline()
    return command, int(re.search(r"http://127\.0\.0\.1:(\d+)/", first)[1])


@pytest.fixture
def mine(folder):
    """An experiment of eight runs."""
    (folder / "mine.toml").write_text(SEVERAL)
    return folder


@pytest.mark.parametrize("text", ["0", "8000", "127.0.0.1:8000", "localhost:65535"])
def test_a_port_of_this_machine_is_one(text):
    assert port_of(text) == int(text.rpartition(":")[2])


@pytest.mark.parametrize(
    "text",
    ["0.0.0.0:8000", "192.168.1.2:8000", "[::]:80", "::1:80", "example.org:80", "*:80", "127.0.0.2:80", "127.1:80"],
)
def test_any_other_address_is_bad_input(mine, text):
    done = narrows("run", "mine.toml", "--watch", "--port", text)
    assert (done.returncode, done.stdout) == (2, "")
    address = text.rpartition(":")[0]
    assert done.stderr.startswith(f"error: reports are served on 127.0.0.1 only, not on {address}\n  help: ")
    assert not (mine / "runs").exists()


@pytest.mark.parametrize("text", ["", "x", "-1", "65536", "8000/", "٣", "127.0.0.1:", "9" * 5000])
def test_what_is_no_port_is_bad_input(text):
    with pytest.raises(BadInput, match="is no port"):
        port_of(text)


def test_a_port_without_watch_and_a_folder_of_experiments_are_bad_input(mine):
    assert narrows("run", "mine.toml", "--port", "8000").stderr.startswith("error: --port is for --watch\n")
    for name in ("one", "two"):
        (mine / "set" / name).mkdir(parents=True)
        (mine / "set" / name / "experiment.toml").write_text(SEVERAL)
    done = narrows("run", "set", "--watch")
    assert (done.returncode, done.stderr.splitlines()[0]) == (2, "error: there are 2 experiments")


def test_a_port_that_another_has_is_bad_input(mine, site):
    done = narrows("run", "mine.toml", "--watch", "--port", str(site.port))
    assert (done.returncode, done.stdout, (mine / "runs").exists()) == (2, "", False)
    assert done.stderr.startswith(f"error: port {site.port} of 127.0.0.1 cannot be had: Address already in use\n")


def test_it_is_served_on_loopback_alone(site):
    assert site.url == f"http://127.0.0.1:{site.port}/"
    listening = [line.split() for line in Path("/proc/net/tcp").read_text().splitlines()[1:]]
    own = {place for _, place, _, state, *_ in listening if state == "0A" and place.endswith(f":{site.port:04X}")}
    assert own == {f"0100007F:{site.port:04X}"}
    with socket.socket(socket.AF_INET6) as other, pytest.raises(OSError, match=r"refused|unreachable|Cannot assign"):
        other.connect(("::1", site.port))


def test_there_are_three_addresses_and_no_files(site):
    site.show("<p>page</p>")
    status, headers, frame = ask(site.port)
    assert (status, headers["Content-Type"]) == (200, "text/html; charset=utf-8")
    assert "<title>&lt;b&gt;Mine&lt;/b&gt; · Narrows</title>" in frame
    policy = headers["Content-Security-Policy"]
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert not re.search("'unsafe-(inline|eval)'", policy.partition("script-src")[2].partition(";")[0])
    assert ask(site.port, "/report?version=1")[2] == "<p>page</p>"
    assert json.loads(ask(site.port, "/state")[2]) == {"version": 1, "text": "1 of 2 runs", "ended": False}
    for path in ("/index.html", "/report/", "/runs", "/..", "/../../etc/passwd", "/%2e%2e/", "//etc/passwd", "*"):
        assert ask(site.port, path)[0] == 404, path
    for path in ("/", "/report", "/state"):
        sent = ask(site.port, path)[1]
        assert (sent["Cache-Control"], sent["X-Content-Type-Options"]) == ("no-store", "nosniff")
        assert "Access-Control-Allow-Origin" not in sent


def test_a_request_for_another_host_is_refused(site):
    """DNS rebinding: a name of a stranger's page that suddenly means 127.0.0.1."""
    for good in (f"127.0.0.1:{site.port}", f"localhost:{site.port}"):
        assert ask(site.port, "/state", host=good)[0] == 200
    for bad in (
        "evil.example",
        f"evil.example:{site.port}",
        "127.0.0.1",
        f"127.0.0.1:{site.port + 1}",
        "",
        "localhost",
    ):
        status, _, content = ask(site.port, "/state", host=bad)
        assert (status, "version" in content) == (403, False), bad
    for lines in ("", f"Host: 127.0.0.1:{site.port}\r\nHost: evil.example\r\n"):
        with socket.create_connection((LOOPBACK, site.port), timeout=10) as raw:
            raw.sendall(f"GET /state HTTP/1.0\r\n{lines}\r\n".encode())
            assert b" 403 " in raw.recv(100)


@pytest.mark.parametrize("method", ["HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"])
def test_only_get_is_answered(site, method):
    status, headers, _ = ask(site.port, "/report", method=method)
    assert (status, headers["Allow"]) == (405, "GET")


def test_pages_take_at_most_a_tenth_of_the_time():
    pace, now, spent, first = Pace(), 0.0, 0.0, None
    for _ in range(10_000):
        now += 0.2
        if not pace.may_begin(now):
            continue
        took = 1.5 if first is None else 0.1 + (now * 7) % 3
        if first is not None:
            assert spent <= SHARE * (now - first) + 1e-9, "before the next begins"
        first = now if first is None else first
        pace.ended(now, now + took)
        now, spent = now + took, spent + took
    assert spent > 0.05 * now, "it is not idle either"


def test_a_part_has_the_seeds_of_all_plans_or_the_plans_of_one(folder):
    (folder / "mine.toml").write_text(SEVERAL)
    entry = entry_of(Experiment("mine.toml"), version="1", root=folder / "runs")
    cubic, bbr = (member.stored for member in entry.members)
    assert part_of(entry, set()) is None
    assert part_of(entry, {("another", 1), (cubic, 9)}) is None
    one = part_of(entry, {(cubic, 2)})
    assert ([member.arm for member in one.members], one.seeds) == (["cubic"], (2,))
    assert {case for item in one.differences for case, _ in item.values} == {"cubic"}
    assert part_of(entry, {(cubic, 1), (bbr, 1), (cubic, 2)}) == replace(entry, seeds=(1,))
    assert part_of(entry, {(plan, seed) for plan in (cubic, bbr) for seed in entry.seeds}) == entry


@pytest.mark.simulator
def test_results_so_far_are_those_of_the_runs_that_are_there(mine, monkeypatch):
    api.run("mine.toml", seeds=[2], out="runs").join()
    monkeypatch.setenv("TEST_SECONDS", "60")
    handle = api.run("mine.toml", out="runs", jobs=1)
    try:
        partial = handle.so_far()
        assert partial.entry.seeds == (2,)
        assert partial.frames.cases == ("cubic", "bbr")
        assert not partial.notices, "that the others are not there is no news"
        text = page.render(partial, (), partial="2 of 8 runs")
        assert "Partial: 2 of 8 runs had ended" in text
        assert "Slowest flows" not in text, "no run is made again for a page that is replaced soon"
        assert "Partial: " not in page.render(partial, ())
    finally:
        handle.cancel()


@pytest.mark.simulator
def test_the_report_is_served_while_runs_come_in_and_whole_at_the_end(mine):
    command, port = started(mine)
    state = lambda: json.loads(ask(port, "/state")[2])  # noqa: E731
    assert "No run has ended yet" in ask(port, "/report")[2]
    until(lambda: state()["version"] == 1)
    partial = ask(port, "/report")[2]
    assert re.search(r"Partial: [1-8] of 8 runs had ended", partial)
    assert "default-src &#39;none&#39;" in partial, "its own policy stays"
    assert not list(mine.glob("runs/reports/*")), "a page that is replaced soon is no file"
    last = until(lambda: (now := state())["ended"] and now)
    assert last["text"] == "all runs have ended; the report is runs/reports/report-mine.html"
    whole = ask(port, "/report")[2]
    out, errors = command.communicate(timeout=60)
    assert (command.returncode, errors) == (0, "")
    assert out.splitlines()[0] == "runs/reports/report-mine.html"
    assert whole == (mine / "runs/reports/report-mine.html").read_text()
    assert "Partial: " not in whole
    with pytest.raises(ConnectionRefusedError):
        ask(port)


@pytest.mark.simulator
def test_an_interrupt_keeps_the_runs_and_a_report_of_them(mine):
    command, port = started(mine, "--json", seconds="0.7")
    until(lambda: json.loads(ask(port, "/state")[2])["version"] >= 1)
    os.killpg(command.pid, signal.SIGINT)
    out, errors = command.communicate(timeout=60)
    assert command.returncode == 130, errors
    kept = int(re.search(r"stopped; (\d) of 8 runs are finished and kept", errors)[1])
    (told,) = [json.loads(line) for line in out.splitlines()]
    assert (told["event"], told["path"]) == ("partial_report", "runs/reports/report-mine~partial.html")
    assert f"Partial: {kept} of 8 runs had ended" in (mine / told["path"]).read_text()
    again = narrows("run", "mine.toml", "--watch", "--json")
    events = [json.loads(line) for line in again.stdout.splitlines()]
    assert [event["event"] for event in events[:2]] == ["watch", "report"]
    assert events[-1]["skipped"] == kept
    assert [path.name for path in mine.glob("runs/reports/*")] == ["report-mine.html"], "the partial one is gone"


@pytest.mark.simulator
def test_a_run_that_fails_ends_the_server_too(mine):
    (mine / "mine.toml").write_text(SEVERAL.replace('name = "bbr"', 'name = "panics"'))
    command, port = started(mine, seconds="0")
    _, errors = command.communicate(timeout=60)
    assert (command.returncode, "a packet was lost twice" in errors) == (1, True)
    with pytest.raises(ConnectionRefusedError):
        ask(port)


@pytest.mark.simulator
@pytest.mark.parametrize(
    ("error", "told"),
    [
        (BadInput("error: runs/1/1/flows.parquet is damaged\n  help: delete it"), "runs/1/1/flows.parquet is damaged"),
        (FileNotFoundError(2, "No such file or directory", "x"), "FileNotFoundError: [Errno 2] No such file or dir"),
        (KeyError(), "KeyError: "),
    ],
)
def test_what_cannot_be_shown_stops_no_run(mine, monkeypatch, error, told):
    def refuse(*_arguments, **_options):
        raise error

    monkeypatch.setattr(page, "render", refuse)
    handle = api.run("mine.toml", out="runs")
    watch = Watch(handle)
    try:
        said = until(
            lambda: "; no report" in (text := json.loads(ask(port_of_url(watch.url), "/state")[2])["text"]) and text
        )
        assert f"; no report of these: {told}" in said
        assert watch._thread.is_alive(), "it looks for more"
        assert len(handle.finish()) == 8
    finally:
        watch.close()


class _Ended:
    """Stands for a handle whose runs have ended, and of which none counts."""

    experiment = SimpleNamespace(title="Mine")
    identifier = "mine"

    def __init__(self, folder):
        self.root = folder

    def progress(self):
        return SimpleNamespace(finished=0, skipped=0, total=1, fraction=1.0)

    def results(self):
        raise BadInput("error: none of these runs counts\n  help: run them again")


def test_where_no_run_counts_the_command_goes_on(folder, capsys):
    with watched(_Ended(folder), 0, json=False):
        pass
    assert capsys.readouterr().err == "warning: no report: none of these runs counts\n"


def test_a_partial_report_is_called_as_no_result_can_be(folder, monkeypatch):
    (folder / "reports").mkdir()
    other = folder / "reports" / f"report-{identifier('mine-partial', quick=False)}.html"
    other.write_text("of another result")
    handle = _Ended(folder)
    report = folder / "reports" / "report-mine.html"
    report.write_text("whole")
    monkeypatch.setattr(handle, "results", lambda: SimpleNamespace(report=lambda: report))
    watch = Watch(handle)
    watch.finish()
    watch.close()
    assert other.read_text() == "of another result"
    assert identifier(watch._partial().stem, quick=False) != watch._partial().stem


def port_of_url(url):
    return int(re.search(r":(\d+)/", url)[1])


@pytest.mark.system
@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")
def test_a_browser_follows_and_keeps_its_place(mine):
    from playwright.sync_api import sync_playwright

    command, port = started(mine, seconds="3")
    complaints = []
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        view = browser.new_page(viewport={"width": 1366, "height": 768})
        view.on("console", lambda message: complaints.append(message.text))
        view.on("pageerror", lambda error: complaints.append(str(error)))
        view.goto(f"http://127.0.0.1:{port}/")
        view.wait_for_selector("body[data-shown='1']", timeout=60_000)
        assert "Partial: " in view.frames[1].locator(".partial").text_content()
        view.frames[1].evaluate("window.scrollTo(0, 700)")
        view.wait_for_selector("body[data-shown]:not([data-shown='1'])", timeout=60_000)
        command.wait(timeout=60)
        view.wait_for_timeout(1500)
        assert len(view.frames) == 2, "the former page is gone"
        assert view.frames[1].evaluate("window.scrollY") == 700
        assert view.frames[1].locator(".partial").count() == 0
        assert int(view.frames[1].evaluate("document.body.dataset.drawn")) > 2
        assert "the report is runs/reports/report-mine.html" in view.locator(".state").text_content()
        browser.close()
    assert command.returncode == 0
    assert all("ERR_CONNECTION_REFUSED" in text for text in complaints), complaints


@pytest.mark.system
@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"{CHROMIUM} is not installed")
def test_a_browser_asks_again_for_what_did_not_arrive(site):
    from playwright.sync_api import sync_playwright

    left = {"state": 2, "report": 1}

    def lose(route):
        name = "state" if "/state" in route.request.url else "report"
        left[name] -= 1
        route.abort() if left[name] >= 0 else route.continue_()

    site.show("<!DOCTYPE html><p>first</p>")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=["--no-sandbox"])
        view = browser.new_page()
        view.route(re.compile("/(state|report)"), lose)
        view.goto(site.url)
        view.wait_for_selector("body[data-shown='1']", timeout=15_000)
        assert view.frames[1].locator("p").text_content() == "first"
        assert view.locator("iframe").count() == 1
        assert view.locator(".state").text_content() == "<b>Mine</b>: 1 of 2 runs"
        browser.close()
    assert max(left.values()) < 0, "each was lost as often as it was to be"
