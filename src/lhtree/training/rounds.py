"""Rounds of boosting: all at once, or a few at a time with a look after them."""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from typing import NamedTuple, Protocol

import numpy as np

from lhtree import _core
from lhtree.arrays import Arrays, Floats
from lhtree.model.ensemble import Ensemble
from lhtree.model.ensemble_parts import TREE_ARRAYS, TreeStarts, cut_trees, join_trees
from lhtree.model.ensemble_splits import sum_gains
from lhtree.model.grid_columns import GridColumns
from lhtree.training.boosting_rows import Rows
from lhtree.training.plan import BoostingPlan
from lhtree.training.targets import TargetScale


class Losses(NamedTuple):
    """Mean losses of the rows before and after each round."""

    training: Floats
    validation: Floats  # empty without validation rows


@dataclass
class Boosting:
    """What rounds of boosting need, and what they have made so far.

    Parameters
    ----------
    columns : GridColumns
        How the columns were encoded.
    rows, validation : Rows
        Rows to train on, some of which may be held out, and more validation rows. `add` updates
        their scores, `run` does not.
    loss : {"squared_error", "quantile", "poisson", "gamma", "log_loss"}
        What the rounds lower.
    plan : BoostingPlan
        Rounds and trees.
    scale : TargetScale
        What integer scores mean.
    n_threads : int
        Number of threads.
    before : Ensemble, optional
        Trees of earlier rounds, which the scores know already.
    """

    columns: GridColumns
    rows: Rows
    validation: Rows
    loss: str
    plan: BoostingPlan
    scale: TargetScale
    n_threads: int
    before: Ensemble | None = None
    training_sum: list[float] = field(default_factory=list)  # of losses, before and after rounds
    held_out_sum: list[float] = field(default_factory=list)
    _parts: list[Arrays] = field(default_factory=list)

    @property
    def n_done(self) -> int:
        """Number of rounds so far."""
        return max(0, len(self.training_sum) - 1)

    def run(self) -> int:
        """Run all rounds in one call; return how many the model keeps."""
        self._call(self.plan)
        return len(self._parts[0]["tree_start"]) - 1

    def add(self, n_rounds: int) -> None:
        """Add some rounds, whatever the validation loss; 0 computes losses alone."""
        first = self.plan.first_round + self.n_done
        plan = replace(self.plan, n_rounds=n_rounds, first_round=first, patience=0)
        result = self._call(plan)
        self.rows.score, self.validation.score = result["score"], result["validation_score"]

    def _call(self, plan: BoostingPlan) -> Arrays:
        result = _core.boost(
            self.columns, self.rows, self.validation, self.loss, plan, self.n_threads
        )
        known = bool(self.training_sum)  # then the first is the last of those
        self.training_sum += result["training_loss"][known:].tolist()
        self.held_out_sum += result["validation_loss"][known:].tolist()
        self._parts.append(result["trees"])
        return result

    def forget(self, n_rounds: int) -> None:
        """Forget the losses after a number of rounds."""
        del self.training_sum[n_rounds + 1 :], self.held_out_sum[n_rounds + 1 :]

    def take(self, n_rounds: int) -> Ensemble:
        """Return the model of the first rounds, after those before."""
        columns, scale = self.columns.without_bins(), self.scale
        trees = join_trees(self._parts) if len(self._parts) > 1 else self._parts[0]
        if n_rounds < len(trees["tree_start"]) - 1:
            trees = cut_trees(trees, TreeStarts.of(trees, columns.n_codes), 0, n_rounds)
        self._parts = [trees]
        start = np.zeros(len(columns.n_codes)) if self.before is None else self.before.importance
        importance = sum_gains(trees, start)
        if self.before is not None:
            trees = join_trees([vars(self.before), trees])
        return Ensemble(
            columns=columns,
            base=scale.base,
            power=scale.power,
            origin=scale.origin,
            importance=importance,
            n_averaged=1,
            **{name: trees[name] for name in TREE_ARRAYS},
        )

    def weigh_validation(self) -> int:
        """Return the weight of all validation rows, held out or given."""
        return self.rows.weigh()[1] + sum(self.validation.weigh())

    def average_losses(self, first: int = 0) -> Losses:
        """Return the mean losses before the first and after each round."""
        trained, held_out = self.rows.weigh()[0], self.weigh_validation()
        validation = self.scale.average(np.array(self.held_out_sum[first:]), held_out)
        training = self.scale.average(np.array(self.training_sum[first:]), trained)
        return Losses(training, validation if held_out else np.empty(0))


@dataclass
class Patience:
    """Which rounds count: those that lower a loss by more than a tolerance."""

    patience: int  # rounds in a row that need not count; 0: any
    tolerance: float
    least: float  # loss of the last round that counted
    best: int = 0  # that round
    n_noted: int = 0

    def note(self, loss: float) -> bool:
        """Take the loss of the next round; return whether rounds should end."""
        self.n_noted += 1
        if loss < self.least - self.tolerance:
            self.least, self.best = loss, self.n_noted
        return self.patience > 0 and self.n_noted - self.best >= self.patience


def count_refitted(boosting: Boosting, n_rounds: int) -> int:
    """Return as many rounds for all rows as `n_rounds` are for those that were not held out."""
    held_out = boosting.rows.held_out
    n_held_out = 0 if held_out is None else int(np.count_nonzero(held_out))
    n = len(boosting.rows.y)
    return min(boosting.plan.n_rounds, math.floor(n_rounds * n / (n - n_held_out) + 0.5))


class Watch(Protocol):
    """Measures and reports rounds between calls of the core."""

    def get_tolerance(self, boosting: Boosting) -> float:
        """Return by how much a measure must be lower to count."""

    def begin(self, boosting: Boosting) -> int:
        """Return how many rounds to add before the next look."""

    def measure(self, boosting: Boosting, n_rounds: int) -> float:
        """Return the measure that rounds should lower, after a number of them."""

    def end(self, boosting: Boosting) -> bool:
        """Report the rounds so far; return whether to stop."""


def run_watched(boosting: Boosting, watch: Watch) -> int:
    """Run rounds with a look after a few of them; return how many the model keeps.

    The rounds are those of `Boosting.run`, unless the watch stops them.
    """
    plan = boosting.plan
    boosting.add(0)
    patience = Patience(plan.patience, watch.get_tolerance(boosting), watch.measure(boosting, 0))
    is_over = False
    while boosting.n_done < plan.n_rounds and not is_over:
        first = boosting.n_done
        boosting.add(min(watch.begin(boosting), plan.n_rounds - first))
        for number in range(first + 1, boosting.n_done + 1):
            is_over = patience.note(watch.measure(boosting, number))
            if is_over:
                boosting.forget(number)
                break
        is_over |= watch.end(boosting)
    return patience.best if plan.patience > 0 else boosting.n_done
