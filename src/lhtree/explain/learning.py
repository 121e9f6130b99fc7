"""How a boosted model learned, as pictures and reports show it."""

from __future__ import annotations

from typing import Any, NamedTuple

from lhtree.arrays import Floats

LOSSES = {
    "squared_error": "half the mean squared error",
    "absolute_error": "mean absolute error",
    "quantile": "mean quantile loss",
    "poisson": "half the mean Poisson deviance",
    "gamma": "half the mean gamma deviance",
    "log_loss": "log-loss",
}


class Learning(NamedTuple):
    """What was measured before the first and after each round, and which rounds count."""

    training: Floats
    validation: Floats  # empty without validation rows
    measure: str
    is_loss: bool  # lower is better
    best_round: int  # that the model went back to, or the last one
    n_refitted: int | None  # rounds of a model that was then grown anew from all rows

    @property
    def n_rounds(self) -> int:
        """Number of rounds that were measured."""
        return max(0, len(self.training) - 1)


def read_learning(model: Any) -> Learning:
    """Return how a fitted boosted model learned."""
    is_loss, measure = _describe_scores(model)
    sign = -1.0 if is_loss else 1.0
    is_refitted = hasattr(model, "_best_round")
    return Learning(
        sign * model.train_score_,
        sign * model.validation_score_,
        measure,
        is_loss,
        best_round=model._best_round if is_refitted else model.n_iter_,
        n_refitted=model.n_iter_ if is_refitted else None,
    )


def _describe_scores(model: Any) -> tuple[bool, str]:
    """Return whether a model measured its loss, and the name of what it measured."""
    scoring = model.scoring
    if isinstance(scoring, str) and scoring == "loss":
        return True, LOSSES[getattr(model, "_loss", model.loss)]
    if scoring is None:
        return False, "R2" if model._is_regressor else "accuracy"
    return False, scoring if isinstance(scoring, str) else "score"
