"""What the raw scores of the exact engine mean: of boosted trees, or a forest of numbers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats
from lhtree.model.ensemble import BoostedTree, Ensemble
from lhtree.model.votes import UNCALIBRATED

IDENTITY, LOG, SORTED = "identity", "log", "sorted"
LOGIT, SOFTMAX, CERTAIN, VOTES = "logit", "softmax", "certain", "votes"
LOG_LOSSES = ("poisson", "gamma")  # whose scores are logarithms of the prediction


@dataclass(frozen=True, eq=False)
class Link:
    """How the raw scores of a model become its predictions.

    Parameters
    ----------
    name : str
        "identity" and "log" for numbers, "sorted" for a list of quantiles, whose predictions
        are the scores in ascending order; "logit" for two classes, "softmax" for more,
        "certain" for a single class; "votes" for a forest of classes: of two classes, the
        score is the vote for the second.
    classes : ndarray of shape (n_classes,), or None
        Class labels; None for numbers.
    levels : tuple of float
        Levels of a list of quantiles.
    is_averaged : bool
        Whether scores are means over the trees of a forest, not sums over boosted ones.
    """

    name: str
    classes: NDArray[Any] | None = None
    levels: tuple[float, ...] = ()
    is_averaged: bool = False
    calibration: tuple[float, float] = UNCALIBRATED

    @property
    def is_mirrored(self) -> bool:
        """Whether the score of the second of two classes stands for both."""
        is_pair = self.classes is not None and len(self.classes) == 2
        return is_pair and self.name in (LOGIT, VOTES)

    @property
    def is_of_classes(self) -> bool:
        """Whether the model predicts classes."""
        return self.classes is not None

    @property
    def score_word(self) -> str:
        """What a score is, in one or two words."""
        if self.classes is None:
            return "log of the prediction" if self.name == LOG else "prediction"
        return {LOGIT: "log-odds", VOTES: "vote"}.get(self.name, "score")

    def name_score(self, output: int = 0) -> str:
        """Return in words what a score is."""
        if self.levels:
            return f"prediction of the quantile {self.levels[output]:g}"
        if self.classes is None:
            return "log of the prediction" if self.name == LOG else "prediction"
        if self.name == LOGIT:
            return f"log-odds of {self.classes[1]}"
        if self.name == VOTES:
            return f"vote for {self.classes[output + self.is_mirrored]}"
        return f"score of {self.classes[output]}"

    def get_class(self, tree: BoostedTree) -> int:
        """Return the index of the class that a tree of a forest of classes votes for."""
        return tree.output + self.is_mirrored

    def describe_task(self, class_names: Sequence[str], tree: BoostedTree | None = None) -> str:
        """Return in words what a tree does, or each of them."""
        if self.name == VOTES:
            if tree is None:
                return "votes for a class, or against it"
            return f"votes for {class_names[self.get_class(tree)]}, or against it"
        if self.is_averaged:
            return f"votes for a number; the {self.name_score()} is the mean over all trees"
        if self.name == SOFTMAX:
            return f"adds to the scores of {len(class_names)} classes"
        if self.name == LOGIT:
            return f"adds to the log-odds of {class_names[1]}"
        if len(self.levels) > 1:
            return f"adds to the predictions of {len(self.levels)} quantiles"
        return f"adds to the {self.name_score()}"

    def read_values(self, tree: BoostedTree) -> Floats:
        """Return what the nodes of a tree say: what they add, in a forest what they predict."""
        return tree.prediction if self.is_averaged else tree.value

    def predict_numbers(self, score: Floats) -> Floats:
        """Return the predicted numbers of raw scores: of quantiles, one column per level."""
        if self.name == SORTED:
            return np.sort(score.reshape(-1, len(self.levels)), axis=1)
        return np.exp(score) if self.name == LOG else score


def read_link(model: Any) -> Link:
    """Return the link of a fitted model: the only place that asks for its loss."""
    classes = getattr(model, "classes_", None)
    if not hasattr(model, "loss"):
        if classes is None:
            return Link(IDENTITY, is_averaged=True)
        offset, exponent = getattr(model, "calibration_", UNCALIBRATED)
        return Link(VOTES, classes, is_averaged=True, calibration=(float(offset), float(exponent)))
    if classes is None:
        levels = getattr(model, "_quantile", None)
        if isinstance(levels, list):
            return Link(SORTED, levels=tuple(levels))
        loss = getattr(model, "_loss", model.loss)  # the loss of the fit
        return Link(LOG if loss in LOG_LOSSES else IDENTITY)
    kinds = {1: CERTAIN, 2: LOGIT}
    return Link(kinds.get(len(classes), SOFTMAX), classes)


def is_exact(model: Any) -> bool:
    """Return whether a fitted model is of the exact engine: boosted, or a forest of numbers."""
    return isinstance(getattr(model, "forest_", None), Ensemble)
