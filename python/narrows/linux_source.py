"""The congestion controllers of a Linux source, copied to where experiments can name them.

They are its modules, `net/ipv4/tcp_*.c`, and those of its self-tests that are whole controllers in BPF.
"""

from __future__ import annotations

import re
import tarfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from narrows import native
from narrows.errors import BadInput, bad_input

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDER: Final = "net/ipv4"
_TESTS: Final = "tools/testing/selftests/bpf/progs"
_OF_TESTS: Final = ("bpf_cubic.c", "bpf_dctcp.c")
_MEMBER: Final = re.compile(
    rf"(?P<top>[^/]+)/(?:{_FOLDER}/(?P<module>tcp_\w+\.[ch])|{_TESTS}/(?P<test>{'|'.join(map(re.escape, _OF_TESTS))}))"
)
_OF_FOLDER: Final = "tcp_*.[ch]"
_REGISTERS: Final = re.compile(r"\btcp_register_congestion_control\s*\(")
_IS_MODULE: Final = re.compile(r"\bmodule_init\s*\(")
_INCLUDED: Final = re.compile(r'^\s*#\s*include\s+"([^"/]+\.h)"', re.MULTILINE)
_VERSION: Final = re.compile(r"^VERSION = (\d+)\nPATCHLEVEL = (\d+)$", re.MULTILINE)
_NUMBERS: Final = re.compile(r"(\d+\.\d+)")


@dataclass(frozen=True)
class Module:
    """A module of Linux that has a controller."""

    file: str
    controller: str | None
    """Its name; `None` where it does not run here."""
    lacks: str = ""
    """Why it does not run here, in the compiler's words; empty where it does."""
    parameters: list[dict[str, Any]] = field(default_factory=list)
    """Name and value of each parameter that an experiment may set."""


def copy_controllers(source: Path, to: Path | None) -> tuple[Path, list[Module]]:
    """Copies all modules with a controller, with what they include, into a new folder; the folder, and what they are.

    The source is a tree of Linux, its folder `net/ipv4`, or an archive of the tree. Raises `BadInput` where there are
    none, the folder is there already, or there is no C compiler.
    """
    texts, version = _read(source)
    modules = sorted(
        name
        for name, text in texts.items()
        if name.endswith(".c") and _REGISTERS.search(text) and _IS_MODULE.search(text)
    )
    tests = [name for name in _OF_TESTS if name in texts]
    if not modules:
        raise bad_input(
            f"{source} has no congestion controllers of Linux",
            f"give a source tree, its folder {_FOLDER}, or an archive such as /usr/src/linux-source-6.1.tar.xz",
        )
    native.c_compiler()
    folder = to or Path(f"linux-{version}" if version else "linux")
    needed = {*modules, *tests}
    for name in modules:
        _add_included(texts, name, needed)
    try:
        folder.mkdir(parents=True)
        for name in sorted(needed):
            (folder / name).write_text(texts[name], encoding="utf-8", errors="surrogateescape")
    except FileExistsError as error:
        raise bad_input(f"{folder} exists", "choose another folder with --to, or remove this one") from error
    except OSError as error:
        raise bad_input(f"cannot write to {folder}: {error.strerror}", "choose another folder with --to") from error
    return folder, [_judge(folder, name) for name in (*modules, *tests)]


def _judge(folder: Path, name: str) -> Module:
    try:
        found = native.controller_in_file(folder / name)
    except BadInput as refusal:
        said = str(refusal).splitlines()
        errors = [line for line in said if "error:" in line]
        return Module(name, None, lacks=(errors or said)[0].strip())
    return Module(name, str(found["name"]), parameters=list(found["parameters"]))


def _add_included(texts: Mapping[str, str], name: str, needed: set[str]) -> None:
    """Adds headers that a file includes, and the files whose functions these declare."""
    for header in _INCLUDED.findall(texts[name]):
        for other in (header, f"{header.removesuffix('.h')}.c"):
            if other in texts and other not in needed:
                needed.add(other)
                _add_included(texts, other, needed)


def _read(source: Path) -> tuple[dict[str, str], str]:
    """The files `tcp_*` and those of self-tests by name, and Linux's version; empty if nothing tells it."""
    try:
        if source.is_dir():
            return _read_folder(source)
        return _read_archive(source)
    except (OSError, tarfile.TarError, EOFError) as error:
        reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
        raise bad_input(
            f"cannot read {source}: {reason}",
            "give a source tree of Linux, or an archive of one (.tar, .tar.xz, .tar.gz)",
        ) from error


def _read_folder(source: Path) -> tuple[dict[str, str], str]:
    source = source.resolve()
    tree = source if (source / _FOLDER).is_dir() else source.parent.parent
    within = source / _FOLDER if (source / _FOLDER).is_dir() else source
    tests = [tree / _TESTS / name for name in _OF_TESTS]
    texts = {
        path.name: path.read_text(encoding="utf-8", errors="surrogateescape")
        for path in (*sorted(within.glob(_OF_FOLDER)), *(path for path in tests if path.is_file()))
    }
    makefile = tree / "Makefile"
    stated = _VERSION.search(makefile.read_text(encoding="utf-8", errors="replace")) if makefile.is_file() else None
    return texts, f"{stated[1]}.{stated[2]}" if stated else ""


def _read_archive(source: Path) -> tuple[dict[str, str], str]:
    texts, version = {}, ""
    with tarfile.open(source, "r|*") as archive:
        for member in archive:
            found = _MEMBER.fullmatch(member.name.removeprefix("./"))
            if found and member.isfile() and (content := archive.extractfile(member)) is not None:
                texts[found["module"] or found["test"]] = content.read().decode("utf-8", errors="surrogateescape")
                numbers = _NUMBERS.search(found["top"])
                version = numbers[1] if numbers else ""
    return texts, version
