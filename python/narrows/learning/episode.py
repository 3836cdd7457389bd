"""A run under way in which one connection asks an agent: the run waits while the agent decides, and the other way."""

from __future__ import annotations

import json
import os
import sys
import threading
from dataclasses import dataclass
from functools import cache
from queue import SimpleQueue
from types import ModuleType
from typing import TYPE_CHECKING, Any

from narrows import native
from narrows.errors import bad_input
from narrows.learning.learner import Learner

if TYPE_CHECKING:
    from narrows.experiment.plans import Plan
    from narrows.learning.interval import Interval
    from narrows.native import RunResults


@dataclass(frozen=True)
class Question:
    """What the agent is asked."""

    observation: tuple[float, ...]
    reward: float
    """Of the interval that has just ended."""
    interval: Interval


@dataclass(frozen=True)
class End:
    """The run has ended: with results, or with what went wrong."""

    results: RunResults | None
    failure: Exception | None


@dataclass(frozen=True)
class Program:
    """A file with a class derived from `Learner`."""

    file: str
    text: str
    controller: str
    """The name of the class."""


class _Abandoned(BaseException):
    """Ends a run that nobody waits for any more; no exception that a file of the user's handles by accident."""


class Episode:
    """One run of a plan. `next` waits for a question, `answer` goes on."""

    def __init__(self, plan: Plan, seed: int, program: Program) -> None:
        self._questions: SimpleQueue[Question | End] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._agent: Learner | None = None
        self._is_abandoned = False
        self._process = os.getpid()
        asking = self._asking(learner_in(program))
        substitute = native.Substitute(asking, program.text, program.controller)
        self._run = native.Run(json.dumps(plan.body), seed, substitute=substitute)
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        self._waiter.start()

    @property
    def is_here(self) -> bool:
        """Whether the run goes on in this process: a fork has no thread of its own."""
        return self._process == os.getpid()

    def next(self) -> Question | End:
        """Waits for the next question, or the end. Raises what ended the run early."""
        told = self._questions.get()
        if isinstance(told, End) and told.failure is not None:
            raise told.failure
        return told

    def answer(self, action: Any) -> None:
        """Lets the run go on with this action."""
        self._answers.put(action)

    def abandon(self) -> None:
        """Has the run end."""
        self._is_abandoned = True
        self._run.cancel()
        self._answers.put(None)

    def join(self) -> None:
        """Waits until the run has ended."""
        if self.is_here:
            self._waiter.join()

    def _wait(self) -> None:
        try:
            self._questions.put(End(self._run.join(), None))
        except Exception as failure:  # noqa: BLE001 - told to whoever waits for the next question
            self._questions.put(End(None, failure))

    def _asking(self, learner: type[Learner]) -> type[Learner]:
        """The class, whose first connection to decide asks the agent."""

        class Asking(learner):  # type: ignore[misc, valid-type]
            def decide(asking, interval: Interval) -> Any:  # noqa: N805 - `self` is the episode
                if self._agent is None:
                    self._agent = asking
                if self._agent is not asking:
                    return super().decide(interval)
                observation = tuple(map(float, asking.observe(interval)))
                return self._ask(Question(observation, float(asking.reward(interval)), interval))

        Asking.__name__ = Asking.__qualname__ = learner.__name__
        return Asking

    def _ask(self, question: Question) -> Any:
        self._questions.put(question)
        answer = None if self._is_abandoned else self._answers.get()
        if self._is_abandoned:
            raise _Abandoned
        return answer


def program_of(plan: Plan) -> Program | None:
    """The first file with a class derived from `Learner` that a plan's traffic uses; `None` if there is none.

    Raises `BadInput` where the file cannot be executed here.
    """
    for traffic in plan.body["traffic"]:
        raw = traffic["controller"].get("program")
        if raw is not None and raw["file"].endswith(".py"):
            program = Program(raw["file"], raw["text"], raw["controller"])
            if issubclass(_class_in(program), Learner):
                return program
    return None


def learner_in(program: Program) -> type[Learner]:
    """The class in a file that `program_of` found."""
    found = _class_in(program)
    assert issubclass(found, Learner)
    return found


@cache
def _class_in(program: Program) -> type:
    # A module that is known by its name, as a file's code expects of its own.
    module = ModuleType(f"narrows_learner_{_class_in.cache_info().misses}")
    sys.modules[module.__name__] = module
    try:
        exec(compile(program.text, program.file, "exec"), vars(module))  # noqa: S102 - the user's own file
        found: type = getattr(module, program.controller)
    except Exception as error:
        sentence = f"{program.file}: {type(error).__name__}: {error}"
        raise bad_input(sentence, "docs/how-to/controllers-that-learn.md shows a file that works") from error
    return found
