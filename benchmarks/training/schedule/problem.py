"""A recipe as a problem of two arms: a round tunes, or it does not."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from benchmarks.training.schedule.recipes import TRAIN, TUNE, Recipe
from benchmarks.training.schedule.run import TuningRun
from botorch_costly import Choice, SearchSpace
from botorch_costly.errors import check_count


@dataclass(frozen=True)
class ScheduleProblem:
    """A recipe as a problem whose rounds tune, or do not."""

    recipe: Recipe

    @property
    def name(self) -> str:
        """What reports call the problem."""
        return self.recipe.name

    @property
    def horizon(self) -> int:
        """Rounds of one run."""
        return self.recipe.horizon

    @property
    def space(self) -> SearchSpace:
        """The two arms."""
        return SearchSpace({"arm": Choice([TRAIN, TUNE])})

    @property
    def default(self) -> Mapping[str, Any]:
        """Dense tuning, as the authors of self-tuning networks do it."""
        return {"arm": TUNE}

    def setup(self, seed: int) -> TuningRun:
        """Split the data and draw the first weights, all from ``seed``."""
        return TuningRun(self.recipe, check_count("seed", seed))
