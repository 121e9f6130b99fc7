"""Losses: gradients and hessians per unit of weight, values of leaves, exact losses of rows.

Scores are integers, one column per output. Those of squared error lie on the grid of the
target, as the targets do; those of log-loss are log-odds in units of 2**-24, and targets are
indices of classes.
"""

import math

import numpy as np

from exact.arithmetic import exp, hash64, log, round_half_up, round_quotient

GRADIENT_BITS = 22
MOST_GRADIENT = (1 << GRADIENT_BITS) - 1
HESSIAN_POWER = 17  # of log-loss
MOST_HESSIAN = (1 << 15) - 1
SCORE_POWER = 24  # log-odds and losses of rows are multiples of 2**-24
MOST_DIFFERENCE = (1 << 32) - 1  # of a score and a target
MOST_VALUE = (1 << 31) - 1  # of a leaf
ONE = 1 << GRADIENT_BITS  # a probability of one
PART = 1 << 16  # parts of a step of the grid, or of one
SLOPE = 1 << 20  # a slope of one of a quantile loss
SIGN_DRAWS = (1 << 64) - 1 - 8
SUBSET_DRAWS = (1 << 64) - 1 - 4


def compute_newton_value(g, h, step, ridge):
    """Return what a leaf adds to a score: the Newton step times ``step``, as an integer."""
    h = float(h) + ridge
    if g == 0 or h <= 0.0:
        return 0
    value = math.floor(-step * float(g) / h + 0.5)
    return max(-MOST_VALUE, min(MOST_VALUE, value))


class Loss:
    """A loss with one score per row."""

    def __init__(self, n_outputs=1):
        assert n_outputs == 1

    def learn(self, y, weight):
        """Learn what gradients depend on from the targets to train on."""


class NewtonLoss(Loss):
    """A loss whose leaves are Newton steps on the gradients."""

    def compute_values(self, gradients, y, weight, rows, step, ridge):
        """Return what a leaf of some rows adds to each score."""
        g, h = (int((weight[rows] * each[rows]).sum()) for each in gradients[:2])
        return (compute_newton_value(g, h, step, ridge),)


class SquaredError(NewtonLoss):
    """(score - y)**2."""

    hessian_unit = 1  # the integer that stands for a hessian of one

    def start(self, y, weight):
        """Return the score before the first round: the mean, rounded."""
        return [round_quotient((weight.astype(object) * y).sum(), weight.sum())]

    def compute_gradients(self, score, y, is_trained, key):
        """Return gradients in 22 bits, hessians of one, and the unit of a leaf's value.

        The largest residual of the rows to train on decides how many bits are dropped.
        """
        residual = score[:, 0] - y
        most = int(np.abs(residual[is_trained]).max())
        shift = max(0, most.bit_length() - GRADIENT_BITS)
        half = (1 << shift) >> 1
        g = np.clip((residual + half) >> shift, -MOST_GRADIENT, MOST_GRADIENT)
        return g, np.ones_like(g), 2.0**shift

    def compute_losses(self, score, y):
        """Return the loss of each row as a Python integer."""
        difference = np.clip(score[:, 0] - y, -MOST_DIFFERENCE, MOST_DIFFERENCE).astype(object)
        return difference * difference


class LogLoss(NewtonLoss):
    """Log-loss of two classes."""

    hessian_unit = 1 << HESSIAN_POWER

    def start(self, y, weight):
        """Return the score before the first round: the log-odds of the positive rows."""
        positive = int(weight[y == 1].sum())
        odds = float(positive) / float(int(weight.sum()) - positive)
        return [int(round_half_up(log(odds) * 2.0**SCORE_POWER))]

    def compute_gradients(self, score, y, is_trained, key):
        """Return gradients and hessians, and the unit of a leaf's value."""
        p = 1.0 / (1.0 + exp(-np.ldexp(score[:, 0].astype(np.float64), -SCORE_POWER)))
        g = np.clip(round_half_up((p - y) * 2.0**GRADIENT_BITS), -MOST_GRADIENT, MOST_GRADIENT)
        h = np.clip(round_half_up(p * (1.0 - p) * 2.0**HESSIAN_POWER), 1, MOST_HESSIAN)
        unit = 2.0 ** (SCORE_POWER + HESSIAN_POWER - GRADIENT_BITS)
        return g.astype(np.int64), h.astype(np.int64), unit

    def compute_losses(self, score, y):
        """Return the loss of each row as a Python integer."""
        f = np.ldexp(score[:, 0].astype(np.float64), -SCORE_POWER)
        loss = np.maximum(np.where(y == 1, -f, f), 0.0) + log(1.0 + exp(-np.abs(f)))
        return round_half_up(loss * 2.0**SCORE_POWER).astype(np.int64).astype(object)


def draw_subset(key, n):
    """Draw each of n things with probability 1/2, again until some are drawn, but not all."""
    draws = hash64(key, SUBSET_DRAWS)
    attempt = 0
    while True:
        attempt_key = hash64(draws, attempt)
        is_drawn = np.array([hash64(attempt_key, c) >> 63 for c in range(n)], dtype=bool)
        if is_drawn.any() and not is_drawn.all():
            return is_drawn
        attempt += 1


class SoftmaxLoss(Loss):
    """Log-loss of many classes: a score for each, logarithms of probabilities.

    A tree separates a random subset of the classes from the others; its leaves have a Newton
    step for every class.
    """

    hessian_unit = 1 << HESSIAN_POWER

    def __init__(self, n_outputs):
        self.n_classes = n_outputs

    def start(self, y, weight):
        """Return the scores before the first round: logarithms of k times the class shares."""
        of_class = np.bincount(y, weights=weight, minlength=self.n_classes)
        share = [float(self.n_classes * int(each)) / float(int(weight.sum())) for each in of_class]
        return [int(round_half_up(log(each) * 2.0**SCORE_POWER)) for each in share]

    def compute_shares(self, score):
        """Return what the scores of each row give its classes, their sums, the largest scores."""
        most = score.max(axis=1)
        share = exp(np.ldexp((score - most[:, np.newaxis]).astype(np.float64), -SCORE_POWER))
        total = np.zeros(len(score))
        for of_class in share.T:  # in the order of the classes
            total = total + of_class
        return share, total, most

    def compute_probabilities(self, score):
        """Return probabilities as integers, in units of 2**-22."""
        share, total, _ = self.compute_shares(score)
        return round_half_up(share * (1.0 / total)[:, np.newaxis] * float(ONE)).astype(np.int64)

    @staticmethod
    def compute_hessians(p):
        """Return the hessians of probabilities, in units of 2**-17."""
        shift = 2 * GRADIENT_BITS - HESSIAN_POWER
        return np.clip(p * (ONE - p) >> shift, 1, MOST_HESSIAN)

    def compute_gradients(self, score, y, is_trained, key):
        """Return gradients and hessians of the subset, the unit of a leaf, and probabilities."""
        is_positive = draw_subset(key, self.n_classes)
        probability = self.compute_probabilities(score)
        p = probability[:, is_positive].sum(axis=1)
        g = np.clip(p - ONE * is_positive[y], -MOST_GRADIENT, MOST_GRADIENT)
        unit = 2.0 ** (SCORE_POWER + HESSIAN_POWER - GRADIENT_BITS)
        return g, self.compute_hessians(p), unit, probability

    def compute_values(self, gradients, y, weight, rows, step, ridge):
        """Return what a leaf of some rows adds to each score.

        The scores of a row have one degree of freedom less than there are classes.
        """
        p, weight = gradients[3][rows], weight[rows]
        step = step * (float(self.n_classes - 1) / float(self.n_classes))
        values = []
        for c in range(self.n_classes):
            g = int((weight * (p[:, c] - ONE * (y[rows] == c))).sum())
            h = int((weight * self.compute_hessians(p[:, c])).sum())
            values.append(compute_newton_value(g, h, step, ridge))
        return tuple(values)

    def compute_losses(self, score, y):
        """Return the loss of each row as a Python integer."""
        _, total, most = self.compute_shares(score)
        behind = most - score[np.arange(len(y)), y]
        loss = np.ldexp(behind.astype(np.float64), -SCORE_POWER) + log(total)
        return round_half_up(loss * 2.0**SCORE_POWER).astype(np.int64).astype(object)


def compute_mean(y, weight):
    """Return the mean of integers, their sum rounded once; 1 if all are 0."""
    return float(int((weight.astype(object) * y).sum())) / float(int(weight.sum())) or 1.0


class MeanLoss(Loss):
    """Half the deviance of positive targets; scores are logarithms of means on their grid.

    A row has integer parts of 2**-16: how far its score is pulled down, less how far up, is the
    gradient. Both are exact in the sums of a leaf, but have few bits in those of a split.
    """

    hessian_unit = 1 << 8  # of the mean of all targets (Poisson), of one (gamma)
    is_gamma = False

    def learn(self, y, weight):
        """Learn the mean of the targets, the unit of Poisson hessians and losses."""
        self.mean = 1.0 if self.is_gamma else compute_mean(y, weight)

    def start(self, y, weight):
        """Return the score before the first round: the logarithm of the mean."""
        return [int(round_half_up(log(compute_mean(y, weight)) * 2.0**SCORE_POWER))]

    def compute_parts(self, score, y):
        """Return the parts that depend on the score: of the mean of each row, or of y by it."""
        f = np.ldexp(score[:, 0].astype(np.float64), -SCORE_POWER)
        e = y.astype(np.float64) * exp(-f) if self.is_gamma else exp(f)
        return round_half_up(np.clip(e * float(PART), 1.0, 2.0**50)).astype(np.int64)

    def get_fixed_parts(self, y):
        """Return the parts that do not depend on the score."""
        return np.full(len(y), PART) if self.is_gamma else y.astype(np.int64) * PART

    def compute_gradients(self, score, y, is_trained, key):
        """Return gradients and hessians, the unit of a leaf, parts of both kinds, the mean."""
        parts, fixed = self.compute_parts(score, y), self.get_fixed_parts(y)
        slope = fixed - parts if self.is_gamma else parts - fixed
        shift = max(0, int(np.abs(slope[is_trained]).max()).bit_length() - GRADIENT_BITS)
        half = (1 << shift) >> 1
        g = np.clip((slope + half) >> shift, -MOST_GRADIENT, MOST_GRADIENT)
        h = round_half_up(parts / PART * (1.0 / self.mean) * self.hessian_unit)
        h = np.clip(h, 1, MOST_HESSIAN).astype(np.int64)
        return g, h, 2.0**SCORE_POWER, parts, fixed

    def compute_values(self, gradients, y, weight, rows, step, ridge):
        """Return what a leaf of some rows adds to the score.

        A Newton step, or the way to the leaf's optimum where that is shorter.
        """
        weight = weight[rows].astype(object)
        a, b = (int((weight * each[rows]).sum()) for each in gradients[3:])
        prior = ridge / self.hessian_unit * self.mean * PART
        a, b = float(a) + prior, float(b) + prior
        up, down = (a, b) if self.is_gamma else (b, a)
        is_newton = up > down if self.is_gamma else up < down
        value = step * float((up - down) / a if is_newton else log(up / down))
        return (max(-MOST_VALUE, min(MOST_VALUE, math.floor(value + 0.5))),)

    def compute_losses(self, score, y):
        """Return the loss of each row as a Python integer."""
        t, f = y.astype(np.float64), np.ldexp(score[:, 0].astype(np.float64), -SCORE_POWER)
        a = self.compute_parts(score, y) / PART
        d = log(np.maximum(t, 1.0)) - f
        loss = (a - 1.0) - d if self.is_gamma else ((t * d - t) + a) * (1.0 / self.mean)
        loss = np.clip(loss, 0.0, 2.0**26)
        return round_half_up(loss * 2.0**SCORE_POWER).astype(np.int64).astype(object)


class GammaLoss(MeanLoss):
    """Half the gamma deviance."""

    is_gamma = True


def compute_quantile(values, weight, level):
    """Return twice the weighted quantile of integers.

    The sum of the smallest value up to which they weigh at least the level, and of the
    smallest up to which they weigh more.
    """
    order = np.argsort(values, kind="stable")
    up_to = np.cumsum(weight[order])
    total = int(up_to[-1])
    wanted = level * float(total)
    both = math.ceil(wanted), math.floor(wanted) + 1
    ranks = [max(1, min(total, rank)) for rank in both]
    return sum(int(values[order][np.searchsorted(up_to, rank)]) for rank in ranks)


class QuantileLoss(Loss):
    """The sum of the quantile losses of ascending levels, with a score for each.

    Absolute error is twice that of the level 1/2. A tree is grown on the sum of the levels'
    gradients with random signs; its leaves have the quantile of each level.
    """

    hessian_unit = 1

    def __init__(self, levels):
        self.levels = levels
        slopes = [int(round_half_up(level * SLOPE)) for level in levels]
        self.slopes = [max(1, min(SLOPE - 1, slope)) for slope in slopes]

    def start(self, y, weight):
        """Return the scores before the first round: the quantiles, rounded."""
        return [(compute_quantile(y, weight, level) + 1) >> 1 for level in self.levels]

    def draw_signs(self, key):
        """Return the sign of each level; the first has none."""
        draws = hash64(key, SIGN_DRAWS)
        return [-1 if k and hash64(draws, k) >> 63 else 1 for k in range(len(self.levels))]

    def compute_gradients(self, score, y, is_trained, key):
        """Return gradients, hessians of one, the unit of a leaf, and residuals."""
        g = np.zeros(len(y), dtype=np.int64)
        above = score - y[:, np.newaxis]
        for k, sign in enumerate(self.draw_signs(key)):
            slope = np.where(above[:, k] > 0, SLOPE - self.slopes[k], -self.slopes[k])
            g += sign * np.where(above[:, k] == 0, 0, slope)
        shift = max(0, (len(self.levels) * SLOPE).bit_length() - GRADIENT_BITS)
        half = (1 << shift) >> 1
        g = np.clip((g + half) >> shift, -MOST_GRADIENT, MOST_GRADIENT)
        return g, np.ones_like(g), 1.0, -above

    def compute_values(self, gradients, y, weight, rows, step, ridge):
        """Return what a leaf of some rows adds to each score."""
        of_rows = gradients[3][rows].T, self.levels
        twice = [
            compute_quantile(r, weight[rows], level) for r, level in zip(*of_rows, strict=True)
        ]
        values = [math.floor(step * (0.5 * float(each)) + 0.5) for each in twice]
        return tuple(max(-MOST_VALUE, min(MOST_VALUE, value)) for value in values)

    def compute_losses(self, score, y):
        """Return the loss of each row as a Python integer; scores are sorted before."""
        above = np.sort(score, axis=1) - y[:, np.newaxis]
        far = np.minimum(np.abs(above), MOST_DIFFERENCE).astype(object)
        slopes = np.array(self.slopes)
        return (far * np.where(above > 0, SLOPE - slopes, slopes)).sum(axis=1)


def make_loss(name, n_outputs=1, levels=()):
    """Return a loss by its name; log-loss of more than two classes has a score for each."""
    if name == "quantile":
        assert len(levels) == n_outputs
        return QuantileLoss(levels)
    if name == "log_loss" and n_outputs > 1:
        return SoftmaxLoss(n_outputs)
    losses = {
        "squared_error": SquaredError,
        "poisson": MeanLoss,
        "gamma": GammaLoss,
        "log_loss": LogLoss,
    }
    return losses[name](n_outputs)


def sum_losses(loss, score, y, weight):
    """Return the weighted sum of the losses of rows, exactly."""
    return int((weight.astype(object) * loss.compute_losses(score, y)).sum())
