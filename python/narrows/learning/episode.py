"""A run under way in which one connection asks an agent: the run waits while the agent decides, and the other way."""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass
from queue import SimpleQueue
from types import ModuleType
from typing import TYPE_CHECKING, Any

from narrows import native
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


class _Abandoned(Exception):
    """Ends a run that nobody waits for any more."""


_ABANDON = object()


class Episode:
    """One run of a plan. `next` waits for a question, `answer` goes on."""

    def __init__(self, plan: Plan, seed: int, learner: type[Learner]) -> None:
        self._questions: SimpleQueue[Question | End] = SimpleQueue()
        self._answers: SimpleQueue[Any] = SimpleQueue()
        self._agent: Learner | None = None
        self._run = native.Run(json.dumps(plan.body), seed, controller=self._asking(learner))
        self._waiter = threading.Thread(target=self._wait, daemon=True)
        self._waiter.start()

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
        """Ends the run and waits until it has ended."""
        self._run.cancel()
        self._answers.put(_ABANDON)
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
        answer = self._answers.get()
        if answer is _ABANDON:
            raise _Abandoned
        return answer


def learner_of(plan: Plan) -> type[Learner] | None:
    """The class derived from `Learner` that a plan's traffic uses; `None` if there is none."""
    programs = [traffic["controller"].get("program") for traffic in plan.body["traffic"]]
    for program in (program for program in programs if program is not None and program["file"].endswith(".py")):
        module = ModuleType("narrows_learner")
        exec(compile(program["text"], program["file"], "exec"), vars(module))  # noqa: S102 - the user's own file
        found: type = getattr(module, program["controller"])
        if issubclass(found, Learner):
            return found
    return None
