"""Serves one page that changes, to browsers on this machine and to nobody else.

The server knows three addresses and no files. It answers only where the request says that it is for loopback: a name
that somebody else's page has pointed at 127.0.0.1 [DNS rebinding] is refused.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from dataclasses import dataclass
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, ClassVar, Final

from narrows.errors import bad_input
from narrows.report import bundle
from narrows.report.templates import template

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from narrows.errors import BadInput

LOOPBACK: Final = "127.0.0.1"
_NAMES: Final = (LOOPBACK, "localhost")
"""What a request may call this machine."""
_WAITING: Final = b"<!DOCTYPE html><meta charset=utf-8><title>Narrows</title><p>No run has ended yet.</p>"
_HTML: Final = "text/html; charset=utf-8"
_NOTHING: Final = "default-src 'none'"
_FRAMED: Final = "frame-ancestors 'self'"
"""The page has a policy of its own; its server adds who may frame it."""
_DIGITS: Final = 5
"""Of a port."""
_QUOTED: Final = 40
"""Characters of an argument that an error repeats."""
_LATEST_S: Final = 3.0
"""A browser that has not asked for so long has gone."""


def port_of(text: str) -> int:
    """The port in `8000` or `127.0.0.1:8000`; 0 is any that is free. Raises `BadInput` for any other address."""
    address, _, number = text.rpartition(":")
    if address not in ("", *_NAMES):
        raise bad_input(
            f"reports are served on {LOOPBACK} only, not on {address}",
            "give a port alone; from another machine: ssh -L PORT:127.0.0.1:PORT HOST",
        )
    if not (number.isascii() and number.isdigit() and len(number) <= _DIGITS and int(number) < 1 << 16):
        shown = text if len(text) <= _QUOTED else f"{text[:_QUOTED]}…"
        raise bad_input(f"--port {shown} is no port", "give a number from 1 to 65535, or 0 for any that is free")
    return int(number)


def probe(port: int) -> None:
    """Raises `BadInput` where the port cannot be had, before anything is begun that would be shown there."""
    try:
        ThreadingHTTPServer((LOOPBACK, port), BaseHTTPRequestHandler).server_close()
    except OSError as error:
        raise _taken(port, error) from error


def _taken(port: int, error: OSError) -> BadInput:
    return bad_input(f"port {port} of {LOOPBACK} cannot be had: {error.strerror}", "give another with --port, or none")


@dataclass(frozen=True)
class Shown:
    """What is served now."""

    page: bytes
    version: int = 0
    """Grows with each page."""
    ended: bool = False
    """Whether this page is the last."""


@dataclass(frozen=True)
class Answer:
    """What a browser is sent."""

    content: bytes
    kind: str
    policy: str
    version: int = -1
    """Of the page, where it is one."""


class Site:
    """A page under an address of this machine. Another thread serves it."""

    def __init__(self, port: int, *, title: str, text: Callable[[], str]) -> None:
        """Begins to serve; `text` says how far the work is, in a line. Raises `BadInput` without the port."""
        self.text = text
        self._shown = Shown(_WAITING)
        self._asked = 0.0
        self._fetched = -1
        frame = template("watch.html.j2")
        script = bundle.script("watch.js")
        self._frame = frame.render(title=title, script=script).encode()
        self._policy = f"{bundle.policy(script)}; connect-src 'self'; frame-src 'self'; frame-ancestors 'none'"
        try:
            self._server = _Server(port, self)
        except OSError as error:
            raise _taken(port, error) from error
        threading.Thread(target=self._server.serve_forever, args=(0.1,), daemon=True).start()

    @property
    def port(self) -> int:
        """The port that it is served at."""
        return int(self._server.server_address[1])

    @property
    def url(self) -> str:
        """What a browser opens."""
        return f"http://{LOOPBACK}:{self.port}/"

    def show(self, page: str, *, ended: bool = False) -> None:
        """Serves another page."""
        self._shown = Shown(page.encode(), self._shown.version + 1, ended)

    def wait_for_browsers(self, seconds: float) -> None:
        """Returns when a browser that looks at it has the last page, but not later than this."""
        until = time.monotonic() + seconds
        while time.monotonic() < min(until, self._asked + _LATEST_S) and self._fetched < self._shown.version:
            time.sleep(0.05)

    def close(self) -> None:
        """Serves no more."""
        self._server.shutdown()
        self._server.server_close()

    def answer(self, path: str) -> Answer | None:
        """What is asked for; `None` where there is nothing."""
        shown = self._shown
        match path:
            case "/":
                return Answer(self._frame, _HTML, self._policy)
            case "/report":
                return Answer(shown.page, _HTML, _FRAMED, shown.version)
            case "/state":
                self._asked = time.monotonic()
                state = {"version": shown.version, "text": self.text(), "ended": shown.ended}
                return Answer(json.dumps(state).encode(), "application/json", _NOTHING)
        return None

    def sent(self, answer: Answer) -> None:
        """A browser has it."""
        self._fetched = max(self._fetched, answer.version)


class _Server(ThreadingHTTPServer):
    daemon_threads = True

    def __init__(self, port: int, site: Site) -> None:
        self.site = site
        super().__init__((LOOPBACK, port), _Handler)
        own = self.server_address[1]
        self.hosts = {f"{name}:{own}" for name in _NAMES} | (set(_NAMES) if own == 80 else set())

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Says nothing of a browser that went away meanwhile."""
        if not isinstance(sys.exc_info()[1], OSError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version = "Narrows"
    sys_version = ""
    timeout: ClassVar[float] = 10
    """Seconds for a request to arrive: a connection that says nothing holds a thread."""

    def do_GET(self) -> None:
        """Answers with one of the three, or refuses."""
        if self.headers.get_all("Host") not in [[host] for host in self.server.hosts]:
            self._refuse(HTTPStatus.FORBIDDEN, "this is served to browsers of the same machine only")
            return
        found = self.server.site.answer(self.path.partition("?")[0])
        if found is None:
            self._refuse(HTTPStatus.NOT_FOUND, "there is nothing here")
            return
        headers = {"Content-Type": found.kind, "Content-Security-Policy": found.policy}
        self._send(HTTPStatus.OK, found.content, headers)
        self.server.site.sent(found)

    def _not_allowed(self) -> None:
        self._refuse(HTTPStatus.METHOD_NOT_ALLOWED, "only GET", {"Allow": "GET"})

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_OPTIONS = do_TRACE = do_CONNECT = _not_allowed  # noqa: N815

    def _refuse(self, status: HTTPStatus, text: str, headers: Mapping[str, str] | None = None) -> None:
        kind = {"Content-Type": "text/plain; charset=utf-8", "Content-Security-Policy": _NOTHING}
        self._send(status, f"{text}\n".encode(), {**kind, **(headers or {})})

    def _send(self, status: HTTPStatus, content: bytes, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        for name, value in {**_HEADERS, **headers, "Content-Length": str(len(content))}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002 - the name that it has in the library
        """Says nothing: the terminal has the progress of the runs."""


_HEADERS: Final = {
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
