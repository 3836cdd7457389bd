"""What can go wrong that is not our fault, by the decision the caller can take."""


class BadInput(ValueError):
    """The user's file, option or folder is wrong; the message is the whole rendered error."""

    for_command: str = ""
    """The message in the terms of the command line, if they differ."""

    @property
    def sentence(self) -> str:
        """The first line of the message, without what every error begins with."""
        return (str(self).splitlines() or [""])[0].removeprefix("error: ")


class EnvironmentLacks(RuntimeError):
    """Something must be installed or changed on this machine first."""


class NotHere(EnvironmentLacks):
    """Something optional was never installed; what is installed and does not work is another `EnvironmentLacks`."""


class Cancelled(Exception):
    """The work was stopped on request; finished runs are whole."""


class RunFailed(RuntimeError):
    """A run ended without results: a defect of ours, or no memory."""


def bad_input(sentence: str, help: str) -> BadInput:  # noqa: A002 - the word printed
    """Builds the lab's own input error in the form that experiment files have."""
    return BadInput(f"error: {sentence}\n  help: {help}")


def plain(text: object) -> str:
    """A text that is not ours, such as a word of a file or what a reader says of it, without what steers a terminal."""
    return "".join(letter if letter.isprintable() else "?" for letter in str(text))
