"""A Gymnasium environment in which an agent decides the window of one connection of an experiment."""

from __future__ import annotations

import weakref
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, SupportsFloat

from narrows.errors import EnvironmentLacks, bad_input
from narrows.experiment import Experiment
from narrows.learning.episode import End, Episode, learner_in, program_of

try:
    import gymnasium
    import numpy as np
except ImportError:
    raise EnvironmentLacks("gymnasium is not installed\n  help: pip install 'narrows[learning]'") from None

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from narrows.learning.interval import Interval

ENVIRONMENT = "narrows/CongestionControl-v0"
"""What Gymnasium calls it: `gymnasium.make("narrows.learning.environment:narrows/CongestionControl-v0", …)`."""

_SEEDS = 2**31
_LARGEST_SEED = 2**64 - 1


class CongestionControl(gymnasium.Env[Any, Any]):
    """An agent decides the window of one connection: of the first that decides among those with the class.

    An episode is a run: it is truncated when the run ends, and never terminated. Other connections with the class
    follow its `policy`, all others their own controllers. The class says what is observed, rewarded and done, and how
    often (`narrows.learning.Learner`). Whatever is raised in `step` ends the episode: then call `reset`.
    """

    metadata = {"render_modes": []}  # noqa: RUF012 - as Gymnasium has it

    def __init__(
        self,
        experiment: str | Path | Mapping[str, Any] | Experiment,
        *,
        settings: Mapping[str, str] | None = None,
        quick: bool = False,
    ) -> None:
        """Reads an experiment.

        Args:
            experiment: The path of an experiment file whose traffic, in at least one scheme, has
                `cc = { file = "mine.py" }` with a class derived from `Learner`; or as `narrows.Experiment` takes it.
            settings: Values that override the file's: `{"run.end": "20s"}`.
            quick: Whether `run.quick` of the file shall hold.

        Raises:
            BadInput: The experiment has a mistake, no scheme with such a class, or classes of unlike observations or
                actions.
        """
        if not isinstance(experiment, Experiment):
            experiment = Experiment(experiment, quick=quick, settings=settings or {})
        elif settings or quick:
            raise bad_input("an Experiment has its settings already", "give them to the Experiment")
        programs = [(plan, program_of(plan)) for plan in experiment.plans]
        self._plans = [(plan, program) for plan, program in programs if program is not None]
        if not self._plans:
            raise bad_input(
                f"no scheme of {experiment.name} has a controller derived from narrows.learning.Learner",
                'give one `cc = { file = "mine.py" }`, with a class derived from Learner in mine.py',
            )
        learners = [learner_in(program) for _, program in self._plans]
        if len({(learner.observations, learner.actions) for learner in learners}) > 1:
            raise bad_input(
                "schemes differ in how many observations or actions there are", "make an experiment for each class"
            )
        learner = learners[0]
        self._observations = learner.observations
        self.observation_space = gymnasium.spaces.Box(-np.inf, np.inf, (learner.observations,), np.float32)
        self.action_space = (
            gymnasium.spaces.Box(-1.0, 1.0, (1,), np.float32)
            if learner.actions is None
            else gymnasium.spaces.Discrete(learner.actions)
        )
        self._episode: Episode | None = None
        self._abandon: weakref.finalize[..., Any] | None = None
        self._last: tuple[NDArray[np.float32], dict[str, Any]] | None = None

    @property
    def cases(self) -> list[str]:
        """Schemes with points of the sweep among which `reset` draws."""
        return [plan.case for plan, _ in self._plans]

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[NDArray[np.float32], dict[str, Any]]:
        """Begins a run, and returns what the first interval showed.

        Args:
            seed: Of the run, and of the seeds of those after it (default: drawn).
            options: `{"case": …}` chooses one of `cases` (default: drawn).

        Returns:
            The observation, and a dict with `interval`, and with `seed` and `case` of the run.

        Raises:
            BadInput: There is no such case or option, or the seed is too large; or the run failed, or ended before the
                first decision.
        """
        super().reset(seed=seed)
        self.close()
        drawn = int(self.np_random.integers(_SEEDS)), int(self.np_random.integers(len(self._plans)))
        run_seed = drawn[0] if seed is None else seed
        if run_seed > _LARGEST_SEED:
            raise bad_input(f"seed cannot be {run_seed}", f"give a number from 0 to {_LARGEST_SEED}")
        plan, program = self._plans[self._case(options or {}, drawn[1])]
        episode = self._episode = Episode(plan, run_seed, program)
        self._abandon = weakref.finalize(self, Episode.abandon, episode)
        with self._ended_by_exceptions():
            told = episode.next()
            if isinstance(told, End):
                raise bad_input(
                    f"the run of {plan.case} with seed {run_seed} ended before the agent's first decision",
                    "give a later `run.end`, or traffic that begins earlier or sends more; do not override `on_ack`",
                )
            self._last = self._seen(told.observation, told.interval)
        observation, info = self._last
        return observation, {**info, "seed": run_seed, "case": plan.case}

    def step(self, action: Any) -> tuple[NDArray[np.float32], SupportsFloat, bool, bool, dict[str, Any]]:
        """Carries the action out, and returns what the interval after it showed.

        Args:
            action: One number from -1 to 1, which multiplies the window by 2**action unless the class has another
                `apply`; or the number of an action.

        Returns:
            The observation, the reward, `False`, whether the run has ended, and a dict with `interval`. At the end the
            observation is the last one, the reward is 0, and the dict has `flows`, the table of all flows.

        Raises:
            BadInput: The action is none of the space, or the controller failed.
            ResetNeeded: There is no episode in this process.
        """
        episode = self._episode
        if episode is None or self._last is None or not episode.is_here:
            raise gymnasium.error.ResetNeeded("call reset before step")
        with self._ended_by_exceptions():
            episode.answer(self._number(action))
            told = episode.next()
            observation, info = self._last
            if not isinstance(told, End):
                self._last = self._seen(told.observation, told.interval)
                return self._last[0], told.reward, False, False, self._last[1]
        assert told.results is not None
        self.close()
        return observation, 0.0, False, True, {**info, "flows": told.results.table("flows")}

    def close(self) -> None:
        """Ends the run under way."""
        if self._episode is not None and self._abandon is not None:
            self._abandon()
            self._episode.join()
        self._episode = self._abandon = self._last = None

    @contextmanager
    def _ended_by_exceptions(self) -> Iterator[None]:
        """What is raised within ends the episode: agent and run would not be at the same decision any more."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _number(self, action: Any) -> float | int:
        """The action as the class takes it."""
        try:
            (number,) = np.asarray(action, dtype=np.float64).reshape(-1)
        except (TypeError, ValueError):
            number = np.float64("nan")
        if isinstance(self.action_space, gymnasium.spaces.Discrete):
            if number in range(int(self.action_space.n)):
                return int(number)
            raise bad_input(f"there is no action {action!r}", f"give a number from 0 to {self.action_space.n - 1}")
        if -1 <= number <= 1:
            return float(number)
        raise bad_input(f"the action cannot be {action!r}", "give one number from -1 to 1; clip what a policy draws")

    def _case(self, options: Mapping[str, Any], drawn: int) -> int:
        if unknown := options.keys() - {"case"}:
            raise bad_input(f"there is no option {min(unknown)!r}", "the only one is `case`")
        wanted = options.get("case")
        if wanted is None:
            return drawn
        if wanted not in self.cases:
            raise bad_input(f"there is no case {wanted!r}", f"choose one of {', '.join(map(repr, self.cases))}")
        return self.cases.index(wanted)

    def _seen(self, observation: tuple[float, ...], interval: Interval) -> tuple[NDArray[np.float32], dict[str, Any]]:
        seen = np.array(observation, dtype=np.float32)
        if len(observation) != self._observations:
            raise bad_input(
                f"observe returned {len(observation)} numbers, where the class says {self._observations}",
                "give the class `observations`, how many numbers observe returns",
            )
        return seen, {"interval": interval}


gymnasium.register(ENVIRONMENT, entry_point=f"{__name__}:CongestionControl")
