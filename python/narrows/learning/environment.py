"""A Gymnasium environment in which an agent decides the window of one connection of an experiment."""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, SupportsFloat

from narrows.errors import EnvironmentLacks, bad_input
from narrows.experiment import Experiment
from narrows.learning.episode import End, Episode, learner_of

try:
    import gymnasium
    import numpy as np
except ImportError:
    raise EnvironmentLacks("gymnasium is not installed\n  help: pip install 'narrows[learning]'") from None

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from numpy.typing import NDArray

    from narrows.learning.interval import Interval

ENVIRONMENT = "narrows/CongestionControl-v0"
"""What Gymnasium calls it: `gymnasium.make("narrows.learning.environment:narrows/CongestionControl-v0", …)`."""

_SEEDS = 2**31


class CongestionControl(gymnasium.Env[Any, Any]):
    """An agent decides the window of one connection: of the first that decides among those with the class.

    An episode is a run: it is truncated when the run ends, and never terminated. Other connections with the class
    follow its `policy`, all others their own controllers. The class says what is observed, rewarded and done, and how
    often (`narrows.learning.Learner`).
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
            BadInput: The experiment has a mistake, or no scheme with such a class.
        """
        if not isinstance(experiment, Experiment):
            experiment = Experiment(experiment, quick=quick, settings=settings or {})
        learners = [(plan, learner_of(plan)) for plan in experiment.plans]
        self._plans = [(plan, learner) for plan, learner in learners if learner is not None]
        if not self._plans:
            raise bad_input(
                f"no scheme of {experiment.name} has a controller derived from narrows.learning.Learner",
                'give one `cc = { file = "mine.py" }`, with a class derived from Learner in mine.py',
            )
        learner = self._plans[0][1]
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
            BadInput: There is no such case; or the run failed, or ended before the first decision.
        """
        super().reset(seed=seed)
        self.close()
        drawn = int(self.np_random.integers(_SEEDS)), int(self.np_random.integers(len(self._plans)))
        run_seed = drawn[0] if seed is None else seed
        plan, learner = self._plans[self._case(options or {}, drawn[1])]
        self._episode = Episode(plan, run_seed, learner)
        self._abandon = weakref.finalize(self, Episode.abandon, self._episode)
        told = self._episode.next()
        if isinstance(told, End):
            raise bad_input(
                f"the run of {plan.case} with seed {run_seed} ended before the agent's first decision",
                "give a later `run.end`, or traffic that begins earlier or sends more",
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
            BadInput: The controller failed.
        """
        if self._episode is None or self._last is None:
            raise gymnasium.error.ResetNeeded("call reset before step")
        self._episode.answer(int(action) if isinstance(self.action_space, gymnasium.spaces.Discrete) else action[0])
        told = self._episode.next()
        if isinstance(told, End):
            assert told.results is not None
            self.close()
            observation, info = self._last
            return observation, 0.0, False, True, {**info, "flows": told.results.table("flows")}
        self._last = self._seen(told.observation, told.interval)
        observation, info = self._last
        return observation, told.reward, False, False, info

    def close(self) -> None:
        """Ends the run under way."""
        if self._abandon is not None:
            self._abandon()
        self._episode = self._abandon = None

    def _case(self, options: Mapping[str, Any], drawn: int) -> int:
        wanted = options.get("case")
        if wanted is None:
            return drawn
        if wanted not in self.cases:
            raise bad_input(f"there is no case {wanted!r}", f"choose one of {', '.join(map(repr, self.cases))}")
        return self.cases.index(wanted)

    def _seen(self, observation: tuple[float, ...], interval: Interval) -> tuple[NDArray[np.float32], dict[str, Any]]:
        seen = np.array(observation, dtype=np.float32)
        if seen.shape != self.observation_space.shape:
            raise bad_input(
                f"observe returned {len(observation)} numbers, where the class says {self.observation_space.shape}",
                "give the class `observations`, how many numbers observe returns",
            )
        return seen, {"interval": interval}


gymnasium.register(ENVIRONMENT, entry_point=f"{__name__}:CongestionControl")
