"""Scores of a model while it grows, by a scorer of scikit-learn or the caller's."""

from __future__ import annotations

import math
from copy import copy
from typing import Any

import numpy as np
from sklearn.metrics import check_scoring, get_scorer_names
from sklearn.utils import resample

from lhtree.arrays import Floats, Ints
from lhtree.estimators.samples import Samples
from lhtree.training.rounds import Boosting, Losses

MOST_TRAINING_ROWS = 10_000  # that are scored after each round


class Scorer:
    """A scorer of scikit-learn or of the caller, whose errors say that `scoring` chose it."""

    def __init__(self, estimator: Any, scoring: Any) -> None:
        self.scoring = scoring
        self._score = check_scoring(estimator, scoring)

    def __call__(self, model: Any, X: Any, y: Any, **weight: Any) -> float:
        """Return the score of a model; errors of the caller's function stay what they are."""
        try:
            found = self._score(model, X, y, **weight)
        except (AttributeError, TypeError, ValueError) as error:
            if not isinstance(self.scoring, str):
                raise
            raise ValueError(
                f"scoring={self.scoring!r} cannot score this model: {str(error).rstrip('.')}; "
                "name another scorer, or 'loss'."
            ) from error
        try:
            return float(found)
        except (TypeError, ValueError):
            raise TypeError(
                f"scoring={self.scoring!r} must return a number, got {found!r}."
            ) from None


def make_scorer(estimator: Any, scoring: Any) -> Scorer | None:
    """Return the scorer that the parameter `scoring` names, None for the loss."""
    if isinstance(scoring, str) and scoring == "loss":
        return None
    is_name = isinstance(scoring, str) and scoring in get_scorer_names()
    if not (scoring is None or callable(scoring) or is_name):
        raise ValueError(
            "scoring must be 'loss', None, a callable or a name that "
            f"sklearn.metrics.get_scorer_names() lists, got {scoring!r}."
        )
    return Scorer(estimator, scoring)


class GrowingScores:
    """Scores of training and validation rows after each round.

    The scorer sees the estimator as if its fit had ended, and the rows as they were given; raw
    scores of all of them are known, so nothing walks down the trees again.
    """

    def __init__(
        self,
        estimator: Any,
        scorer: Scorer,
        training: Samples,
        held_out: Any,
        validation: Samples | None,
        seed: int,
        given: tuple[Any, Any],
    ) -> None:
        self._estimator, self._scorer = estimator, scorer
        is_held_out = np.zeros(len(training.y), dtype=bool) if held_out is None else held_out > 0
        self._trained = _draw(estimator, training, np.flatnonzero(~is_held_out), seed)
        self._held_out = np.flatnonzero(is_held_out)
        self._training = training.take(self._trained).show(given[0])
        self._is_apart = validation is not None
        if validation is None:
            self._validation = training.take(self._held_out).show(given[0])
        else:
            self._validation = validation.show(given[1])
        self.training: list[float] = []
        self.validation: list[float] = []

    def add(self, boosting: Boosting) -> None:
        """Add the scores after the rounds so far."""
        score = boosting.rows.score
        self.training.append(self._score(self._training, score[self._trained], boosting))
        if len(self._validation.y):
            known = boosting.validation.score if self._is_apart else score[self._held_out]
            self.validation.append(self._score(self._validation, known, boosting))
        self._check_last()

    def _check_last(self) -> None:
        """Refuse NaN, by which no round is better than another."""
        rows, scores = (
            ("validation", self.validation) if self.validation else ("training", self.training)
        )
        if math.isnan(scores[-1]):
            raise ValueError(
                f"scoring={self._scorer.scoring!r} is nan for the {rows} rows; choose another, or "
                "give validation rows of which it is a number (for some scorers, of all classes)."
            )

    def list_all(self) -> Losses:
        """Return all scores."""
        return Losses(np.array(self.training), np.array(self.validation))

    def _score(self, samples: Samples, score: Ints, boosting: Boosting) -> float:
        model = copy(self._estimator)
        vars(model).pop("forest_", None)  # of an earlier fit
        raw: Floats = boosting.scale.to_raw(score)
        raw = raw if raw.shape[1] > 1 else raw[:, 0]

        def score_rows(X: Any) -> Floats:
            if X is samples.X:
                return raw
            model.forest_ = boosting.take(boosting.n_done)
            other: Floats = type(model)._score_rows(model, X)
            return other

        model._score_rows = score_rows
        y = samples.y if not hasattr(model, "classes_") else model.classes_[samples.y]
        weight = {} if samples.weight is None else {"sample_weight": samples.weight}
        return self._scorer(model, samples.X, y, **weight)


def _draw(estimator: Any, training: Samples, position: Ints, seed: int) -> Ints:
    """Draw some of many rows, of all classes."""
    if len(position) <= MOST_TRAINING_ROWS:
        return position
    classes = training.y[position] if hasattr(estimator, "classes_") else None
    drawn: Ints = resample(
        position,
        n_samples=MOST_TRAINING_ROWS,
        replace=False,
        random_state=seed,
        stratify=classes,
    )
    return np.sort(drawn)
