"""The steps of a fit of a forest of classes on the exact engine, and of a warm start."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.arrays import Floats, Ints
from lhtree.data.table import encode
from lhtree.data.weights import (
    MOST_WEIGHT_BITS,
    UNIT_BITS,
    check_range,
    compute_class_weight,
    to_units,
)
from lhtree.estimators.averaging.fit import Grown, add, grow, prepare
from lhtree.estimators.averaging.params import AveragingParams
from lhtree.estimators.constraints import check_single_output
from lhtree.estimators.params import is_auto
from lhtree.estimators.samples import Samples, keep_positive
from lhtree.model.ensemble import Ensemble
from lhtree.model.votes import average_votes, complete_votes
from lhtree.training import calibration, forest_size
from lhtree.training.averaging import Averaging, Judged
from lhtree.training.local import take_bits, unpack_bits
from lhtree.training.plan import Draw
from lhtree.training.progress import Progress
from lhtree.training.shrinkage import STRENGTHS
from lhtree.training.targets import Weights, place_shares


@dataclass(frozen=True)
class FittedClasses:
    """What a fit leaves behind."""

    grown: Grown
    classes: NDArray[Any]
    calibration: Floats | None
    averaging: Averaging
    samples: Samples

    def score_out_of_bag(self) -> tuple[Floats, Ints]:
        """Return the votes on all rows, and how many estimators voted on each."""
        averaging, forest = self.averaging, self.grown.forest
        bits = averaging.draw_out_of_bag(averaging.count_estimators(forest))
        total = forest.sum_values(averaging.X, bits, n_threads=averaging.n_threads)
        n_voters = _count_voters(bits, len(averaging.y))
        return average_votes(total, n_voters, forest.power, len(self.classes)), n_voters


def fit_classes(
    estimator: Any,
    samples: Samples,
    params: AveragingParams,
    old: Grown | None,
    progress: Progress,
) -> FittedClasses:
    """Grow the trees, shrink their leaves and calibrate probabilities.

    Parameters
    ----------
    estimator : LHForestClassifier
        Knows the columns of the rows.
    samples : Samples
        The training rows of positive weight.
    params : AveragingParams
        The parameters.
    old : Grown or None
        The earlier fit to which a warm start adds estimators.
    progress : Progress
        Reports how many trees have grown.
    """
    samples, classes = _encode_classes(samples, params)
    if old is not None:
        _check_classes(classes, estimator.classes_)
    shared, n_classes = params.shared, len(classes)
    draw = shared.resolve_draw(len(samples.y))
    seed = shared.draw_seed() if old is None else old.seed
    weights = _place_weights(samples, draw, is_fine=shared.balance)
    targets = place_shares(samples.y, n_classes)
    averaging = prepare(estimator, samples, params, draw, seed, weights, targets, n_classes)
    check_single_output(averaging.plan.monotonic_cst, len(targets.scale.base))
    if old is not None:
        old.check(estimator, draw, averaging)
    grows = _grow_until_enough if is_auto(shared.n_estimators) else grow
    forest = grows(averaging, params, old, progress)
    _check_undrawn(averaging, forest, shared.out_of_bag_reader)
    strength, found = _judge(averaging, params, old, forest)
    if old is None:
        forest = averaging.shrink(forest, strength)
    grown = Grown(forest, estimator.columns_, seed, draw, strength)
    return FittedClasses(grown, classes, found, averaging, samples)


def _encode_classes(samples: Samples, params: AveragingParams) -> tuple[Samples, NDArray[Any]]:
    """Return the rows with indices of classes, weighted by class, and the labels."""
    classes = np.unique(samples.y)
    y = encode(samples.y, classes)
    given = None if params.shared.balance else params.shared.class_weight
    factor = compute_class_weight(given, classes, y, samples.weight)
    if factor is None:
        return samples._replace(y=y), classes
    if not factor.any():
        raise ValueError(f"class_weight={given!r} leaves no row with a positive weight.")
    check_range("class_weight", factor[factor > 0])
    weight = np.ones(len(y)) if samples.weight is None else samples.weight
    weighted = (factor / factor.max())[y] * weight
    check_range("class_weight times sample_weight", weighted)
    weighted *= weight.sum() / weighted.sum()
    kept = keep_positive(samples._replace(y=y, weight=weighted))
    found = np.unique(kept.y)  # a class of weight 0 is absent
    return kept._replace(y=encode(kept.y, found)), classes[found]


def _check_classes(classes: NDArray[Any], known: NDArray[Any]) -> None:
    """Refuse to add estimators that do not match those already grown."""
    if not np.array_equal(classes, known):
        raise ValueError(
            f"y has the classes {classes.tolist()}, but warm_start=True adds to a forest "
            f"with {known.tolist()}; use the same classes or warm_start=False."
        )


def _place_weights(samples: Samples, draw: Draw, *, is_fine: bool) -> Weights:
    """Return weights as integers; in finer steps if each estimator balances them.

    The steps leave room for sums over the rows, also if a draw repeats the heaviest one.
    """
    weights = Weights(*to_units(samples.weight))
    if not is_fine or weights.unit > 1:
        return weights
    values = np.ones(len(samples.y), np.int64) if weights.values is None else weights.values
    repeated = draw.n_draws * int(values.max()) if draw.bootstrap else 0
    room = MOST_WEIGHT_BITS - 1 - max(int(values.sum()), repeated).bit_length()
    shift = max(0, min(UNIT_BITS, room))
    return Weights(values << shift, 1 << shift)


def _check_undrawn(averaging: Averaging, forest: Ensemble, reader: str) -> None:
    """Refuse what needs out-of-bag rows if there happen to be none."""
    n_rows = len(averaging.y)
    if not reader:
        return
    bits = averaging.draw_out_of_bag(averaging.count_estimators(forest))
    if not _count_voters(bits, n_rows).any():
        raise ValueError(
            f"{reader} needs out-of-bag rows, but every estimator drew all {n_rows} rows; use a "
            "smaller max_samples."
        )


def _judge(
    averaging: Averaging, params: AveragingParams, old: Grown | None, forest: Ensemble
) -> tuple[float, Floats | None]:
    """Return the strength of shrinkage, and offset and exponent of the probabilities.

    Both come from rows that estimators did not draw; a warm start keeps its strength.
    """
    shared, t = params.shared, averaging.count_estimators(forest)
    strengths: Sequence[float] = (0.0,)
    if old is None and not is_auto(shared.shrinkage):
        strengths = (float(shared.shrinkage),)
    elif old is None and t > 1:
        strengths = STRENGTHS
    k, found, calibrates = 0, None, shared.calibration is not None
    if averaging.has_out_of_bag and (calibrates or len(strengths) > 1):
        judged = Judged.of(averaging, forest, strengths)
        k = judged.choose(t) if len(strengths) > 1 else 0
        found = _calibrate(judged, k, t) if calibrates else None
    return strengths[k] if old is None else old.shrinkage, found


def _calibrate(judged: Judged, k: int, n_estimators: int) -> Floats | None:
    """Return offset and exponent for the votes of the k-th strength; see `calibration`."""
    has_voters = judged.every.n_voters > 0
    if not has_voters.any():
        return None
    averaging = judged.averaging
    share = np.ldexp(judged.every.average(has_voters)[k].T, -averaging.scale.power)
    votes = complete_votes(share, averaging.plan.n_classes)
    half_vote = calibration.HALF_VOTE / judged.every.n_voters[has_voters, np.newaxis]
    exponent = calibration.fit_exponent(
        np.log(votes + half_vote),
        averaging.y[judged.position[has_voters]],
        judged.counts[has_voters],
    )
    return np.array([calibration.HALF_VOTE / n_estimators, exponent])


def _grow_until_enough(
    averaging: Averaging, params: AveragingParams, old: Grown | None, progress: Progress
) -> Ensemble:
    """Add estimators in batches while the out-of-bag accuracy improves."""
    progress.n_trees_per_estimator = averaging.plan.n_trees
    accuracy = _Accuracy(averaging)
    forest = None if old is None else old.forest
    n = n_old = 0 if forest is None else averaging.count_estimators(forest)
    scores = [] if forest is None else [accuracy.add(forest, 0)]
    most = params.shared.max_estimators
    while forest is None or (n < most and not forest_size.is_enough(scores)):
        last = min(n + forest_size.BATCH, most)
        progress.n_before = n - n_old
        forest = add(averaging, old, forest, n, last, progress)
        scores.append(accuracy.add(forest, n))
        n = last
    return forest


class _Accuracy:
    """The accuracy of out-of-bag votes on some rows, as estimators are added."""

    def __init__(self, averaging: Averaging) -> None:
        self.averaging = averaging
        self.position = averaging.sample()
        self.total: Ints = np.zeros((len(self.position), len(averaging.scale.base)), np.int64)
        self.n_voters: Ints = np.zeros(len(self.position), np.int64)

    def add(self, forest: Ensemble, first: int) -> float:
        """Count the votes from estimator `first` on; return the accuracy of all."""
        averaging, n_rows = self.averaging, len(self.averaging.y)
        n_trees, t = averaging.plan.n_trees, averaging.count_estimators(forest)
        step = int(self.position[1]) if len(self.position) > 1 else 1
        bits = take_bits(averaging.draw_out_of_bag(t)[first:], n_rows, step)
        X, part = averaging.X[self.position], forest.take(first * n_trees, t * n_trees)
        self.total += part.sum_values(X, bits, n_threads=averaging.n_threads)
        self.n_voters += _count_voters(bits, len(self.position))
        n_classes = averaging.plan.n_classes
        votes = average_votes(self.total, self.n_voters, forest.power, n_classes)
        is_right = votes.argmax(axis=1) == averaging.y[self.position]
        count = (self.n_voters > 0) * averaging.weight[self.position]
        # If estimators leave only a row or two undrawn, these rows may include none of them.
        return float(np.average(is_right, weights=count)) if count.any() else 0.0


def _count_voters(bits: NDArray[np.uint64], n_rows: int) -> Ints:
    """Return how many estimators did not draw each row."""
    count = np.zeros(n_rows, dtype=np.int64)
    for word in bits:
        count += unpack_bits(word, n_rows)
    return count
