"""Warm starts: more rounds onto a model, on the same rows."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats
from lhtree.data.columns import Columns
from lhtree.estimators.boosting.coverage import move_scores
from lhtree.estimators.boosting.params import BoostingParams
from lhtree.estimators.params import is_auto
from lhtree.estimators.samples import Samples
from lhtree.model.ensemble import Ensemble
from lhtree.training.boosting_rows import Rows
from lhtree.training.rounds import Boosting, Losses

SAME_ROWS = (
    "warm_start=True continues on the rows, targets, weights and offsets of the first fit, but "
    "{what} changed; give the same again, or set warm_start=False."
)


class Earlier(NamedTuple):
    """What an earlier fit left behind."""

    forest: Ensemble
    columns: Columns
    classes: NDArray[Any] | None
    loss: str
    quantile: Any
    seed: int | None
    losses: Losses  # up to the last round that the model keeps

    @classmethod
    def of(cls, estimator: Any, params: BoostingParams) -> Earlier | None:
        """Return what there is to continue; refuse parameters that it cannot have."""
        if not params.warm_start or not hasattr(estimator, "forest_"):
            return None
        n_rounds = len(estimator.forest_)
        if not is_auto(params.n_estimators) and params.n_estimators < n_rounds:
            raise ValueError(
                f"n_estimators={params.n_estimators} must be at least {n_rounds}, the number of "
                "rounds that are there, when warm_start=True."
            )
        if hasattr(estimator, "_best_round"):
            raise ValueError(
                "warm_start=True cannot continue a model that was grown anew from all rows; set "
                "warm_start=True or refit=False before its first fit, or warm_start=False now."
            )
        losses = (estimator.train_score_, estimator.validation_score_)
        shift = np.array(getattr(estimator, "_shift", [0]))
        earlier = cls(
            move_scores(estimator.forest_, -shift),
            estimator.columns_,
            getattr(estimator, "classes_", None),
            getattr(estimator, "_loss", estimator.loss),
            getattr(estimator, "_quantile", None),
            getattr(estimator, "_seed", None),
            Losses(*(each[: n_rounds + 1] for each in losses)),
        )
        for name, old, new in (
            ("loss", earlier.loss, params.loss),
            ("quantile", earlier.quantile, params.plain_quantile),
        ):
            if old != new:
                raise ValueError(
                    f"{name}={new!r} cannot continue a model that was fitted with {name}={old!r}; "
                    "set it back, or set warm_start=False."
                )
        return earlier

    def check_columns(self, estimator: Any) -> None:
        """Refuse columns or classes of other rows, or of other parameters."""
        if estimator.columns_ != self.columns:
            _refuse("the columns or their categories have")
        if self.classes is not None and not np.array_equal(estimator.classes_, self.classes):
            _refuse("the classes have")

    def join(self, boosting: Boosting, training: Samples, validation: Samples | None) -> None:
        """Make the rounds continue after the earlier ones; refuse other rows and targets."""
        forest, columns = self.forest, boosting.columns.without_bins()
        if not all(
            np.array_equal(getattr(columns, each.name), getattr(forest.columns, each.name))
            for each in fields(columns)
        ):
            _refuse("the rows to train on have")
        scale = boosting.scale
        is_same = (scale.power, scale.origin) == (forest.power, forest.origin)
        if not is_same or not np.array_equal(scale.base, forest.base):
            _refuse("the targets have")
        n_threads = boosting.n_threads
        boosting.rows.score = _go_on(boosting.rows, forest, training.X, n_threads)
        if validation is not None:
            boosting.validation.score = _go_on(
                boosting.validation, forest, validation.X, n_threads
            )
        plan = boosting.plan
        n_rounds = max(0, plan.n_rounds - len(forest))
        boosting.plan = replace(plan, n_rounds=n_rounds, first_round=len(forest))
        boosting.before = forest

    def extend(self, scores: Losses, *, has_losses: bool) -> Losses:
        """Return the scores of all rounds; those of the last round before must be the same."""
        joined = []
        for old, new, whose in zip(self.losses, scores, ("training", "validation"), strict=True):
            if bool(len(old)) != bool(len(new)):
                _refuse("whether there are validation rows has")
            if has_losses and len(new) and new[0] != old[-1]:
                _refuse(f"`scoring`, or the {whose} rows and their loss, have")
            joined.append(np.concatenate([old, new[1:]]))
        return Losses(*joined)


def _go_on(rows: Rows, forest: Ensemble, X: Any, n_threads: int) -> Any:
    return rows.score + forest.sum_values(X, n_threads=n_threads)


def _refuse(what: str) -> None:
    raise ValueError(SAME_ROWS.format(what=what))


def negate(losses: Losses) -> Losses:
    """Return losses as scores."""
    scores: list[Floats] = [0.0 - each for each in losses]
    return Losses(*scores)
