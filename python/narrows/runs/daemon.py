"""The one door to `narrowsd`, which makes live runs: where it is, what it is, and how it ends."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from narrows.errors import BadInput, Cancelled, EnvironmentLacks, NotHere, RunFailed

if TYPE_CHECKING:
    from collections.abc import Sequence

VARIABLE: Final = "NARROWSD"
"""Of the environment: the program's path, if it is neither installed nor built in the checkout."""
BUILT: Final = "target/narrowsd"
"""Where `make narrowsd` leaves it in a checkout."""
ANSWER_SECONDS: Final = 60
"""For what it answers without running anything."""

BAD_INPUT: Final = 2
ENVIRONMENT: Final = 3
INTERRUPTED: Final = 130

_GUEST_KERNEL: Final = "the guest's kernel"
_QEMU: Final = "QEMU"

_MAX_CHARACTERS: Final = 2000
"""Of what it said last, that an error repeats."""


def find() -> Path:
    """The program: what `NARROWSD` names, else what is installed, else what the checkout has built.

    Raises `NotHere` where there is none, and `EnvironmentLacks` where `NARROWSD` names none.
    """
    named = os.environ.get(VARIABLE)
    if named:
        if not _can_run(Path(named)):
            raise EnvironmentLacks(
                f"{VARIABLE} is {named}, which is no program\n  help: give the path of narrowsd, or unset it"
            )
        return Path(named).resolve()
    installed = shutil.which("narrowsd")
    if installed:
        return Path(installed).resolve()
    built = Path(__file__).resolve().parents[3] / BUILT
    if _can_run(built):
        return built
    raise NotHere(
        "narrowsd, which makes live runs, is not here\n"
        f"  help: run `make narrowsd` in a checkout of the project; elsewhere, name its {BUILT} in {VARIABLE}"
    )


def version() -> str:
    """Its version. Raises `EnvironmentLacks` where it is not here or does not say."""
    said = _answer("--version").split()
    if len(said) != 2 or said[0] != "narrowsd":
        raise EnvironmentLacks(f"{find()} is not narrowsd: it calls itself '{' '.join(said)[:80]}'")
    return said[1]


def sources() -> str:
    """The digests of the sources that its results depend on, as JSON. Raises `EnvironmentLacks`."""
    return _answer("sources")


def doctor() -> list[dict[str, Any]]:
    """What it finds of this machine: `subject`, `good`, `found`, `backend`. Raises `EnvironmentLacks`."""
    try:
        found = [json.loads(line) for line in _answer("doctor", "--json").splitlines()]
        return [
            {"subject": str(one["subject"]), "good": one["good"] is True, "found": str(one["found"]),
             "backend": str(one["backend"])}
            for one in found
        ]  # fmt: skip
    except (ValueError, KeyError, TypeError) as error:
        raise EnvironmentLacks(f"{find()} does not say what it found: {error!r}") from error


def guest() -> tuple[str, str]:
    """What a guest would be: the release of its kernel, and the version of QEMU. Raises `EnvironmentLacks`."""
    found = {one["subject"]: one for one in doctor() if one["backend"] == "guest"}
    for subject in (_GUEST_KERNEL, _QEMU):
        if subject not in found:
            raise EnvironmentLacks(f"{find()} does not say what it found of {subject}")
        if not found[subject]["good"]:
            raise EnvironmentLacks(found[subject]["found"])
    number = re.search(r"\d+(\.\d+)+", found[_QEMU]["found"])
    return found[_GUEST_KERNEL]["found"], f"QEMU {number[0] if number else found[_QEMU]['found']}"


def start(arguments: Sequence[str], errors: int) -> subprocess.Popen[bytes]:
    """The program at work: reports on its output, `errors` takes what it complains of. It ends with its input.

    Raises `EnvironmentLacks` where it is not here or cannot be started.
    """
    program = find()
    try:
        return subprocess.Popen(
            [str(program), *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=errors, bufsize=0
        )
    except OSError as error:
        raise EnvironmentLacks(f"{program} cannot be started: {error.strerror}") from error


def trouble(code: int, said: str, *, what: str) -> Exception:
    """What to raise for a run that ended without results: by its exit code, with its own words about `what`."""
    sentence, helps = _words(said)
    advice = "".join(f"\n  {line}" for line in helps)
    if code == INTERRUPTED:
        return Cancelled("narrowsd was interrupted")
    if code == BAD_INPUT:
        return BadInput(f"error: {what}: {sentence or 'narrowsd refuses it'}{advice}")
    if code == ENVIRONMENT:
        return EnvironmentLacks(f"{sentence or 'narrowsd lacks something that it does not name'}{advice}")
    if code < 0:
        return RunFailed(
            f"narrowsd was killed ({_signal(-code)})"
            + (f" after it said: {sentence}" if sentence else "")
            + "\n  help: by somebody, or for want of memory (`dmesg` says so); fewer --jobs need less, "
            "and the same command goes on from there"
        )
    return RunFailed((sentence or f"narrowsd ended with code {code} and said nothing") + advice)


def _words(said: str) -> tuple[str, list[str]]:
    """The last `error: …` with the `help: …` lines below it; else the last line that says anything."""
    lines = ["".join(character for character in line if character.isprintable()) for line in said.splitlines()]
    lines = [line.strip() for line in lines if line.strip()]
    places = [place for place, line in enumerate(lines) if line.startswith("error:")]
    if not places:
        return (lines[-1][-_MAX_CHARACTERS:] if lines else ""), []
    helps = [line for line in lines[places[-1] + 1 :] if line.startswith("help:")]
    return lines[places[-1]].removeprefix("error:").strip()[:_MAX_CHARACTERS], helps


def _signal(number: int) -> str:
    return signal.Signals(number).name if number in set(signal.Signals) else f"signal {number}"


def _can_run(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _answer(*arguments: str) -> str:
    program = find()
    try:
        done = subprocess.run(
            [str(program), *arguments],
            capture_output=True,
            text=True,
            timeout=ANSWER_SECONDS,
            stdin=subprocess.DEVNULL,
            check=False,
        )
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        raise EnvironmentLacks(f"{program} does not answer: {error}") from error
    if done.returncode != 0:
        sentence, _ = _words(done.stderr)
        raise EnvironmentLacks(
            f"{program} {' '.join(arguments)} ended with code {done.returncode}: {sentence or 'it said nothing'}"
        )
    return done.stdout
