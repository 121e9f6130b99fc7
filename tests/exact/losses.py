"""Losses: gradients and hessians per unit of weight, and exact losses of rows.

Scores and targets of squared error lie on the grid of the target. Scores of log-loss are
log-odds in units of 2**-24, targets are 0 and 1.
"""

import numpy as np

from exact.arithmetic import exp, log, round_half_up, round_quotient

GRADIENT_BITS = 22
MOST_GRADIENT = (1 << GRADIENT_BITS) - 1
HESSIAN_POWER = 17  # of log-loss
MOST_HESSIAN = (1 << 15) - 1
SCORE_POWER = 24  # log-odds and losses of rows are multiples of 2**-24
MOST_DIFFERENCE = (1 << 32) - 1  # of a score and a target


class SquaredError:
    """(score - y)**2."""

    hessian_unit = 1  # the integer that stands for a hessian of one

    @staticmethod
    def start(y, weight):
        """Return the score before the first round: the mean, rounded."""
        return round_quotient((weight.astype(object) * y).sum(), weight.sum())

    @staticmethod
    def compute_gradients(score, y):
        """Return gradients in 22 bits, hessians of one, and the unit of a leaf's value.

        The largest residual decides how many bits are dropped.
        """
        residual = score - y
        most = max(abs(int(residual.min())), abs(int(residual.max())))
        shift = max(0, most.bit_length() - GRADIENT_BITS)
        half = (1 << shift) >> 1
        g = np.minimum((residual + half) >> shift, MOST_GRADIENT)
        return g, np.ones_like(g), 2.0**shift

    @staticmethod
    def compute_losses(score, y):
        """Return the loss of each row as a Python integer."""
        difference = np.clip(score - y, -MOST_DIFFERENCE, MOST_DIFFERENCE).astype(object)
        return difference * difference


class LogLoss:
    """Log-loss of two classes."""

    hessian_unit = 1 << HESSIAN_POWER

    @staticmethod
    def start(y, weight):
        """Return the score before the first round: the log-odds of the positive rows."""
        positive = int(weight[y == 1].sum())
        odds = float(positive) / float(int(weight.sum()) - positive)
        return int(round_half_up(log(odds) * 2.0**SCORE_POWER))

    @staticmethod
    def compute_gradients(score, y):
        """Return gradients and hessians, and the unit of a leaf's value."""
        p = 1.0 / (1.0 + exp(-np.ldexp(score.astype(np.float64), -SCORE_POWER)))
        g = np.clip(round_half_up((p - y) * 2.0**GRADIENT_BITS), -MOST_GRADIENT, MOST_GRADIENT)
        h = np.clip(round_half_up(p * (1.0 - p) * 2.0**HESSIAN_POWER), 1, MOST_HESSIAN)
        unit = 2.0 ** (SCORE_POWER + HESSIAN_POWER - GRADIENT_BITS)
        return g.astype(np.int64), h.astype(np.int64), unit

    @staticmethod
    def compute_losses(score, y):
        """Return the loss of each row as a Python integer."""
        f = np.ldexp(score.astype(np.float64), -SCORE_POWER)
        loss = np.maximum(np.where(y == 1, -f, f), 0.0) + log(1.0 + exp(-np.abs(f)))
        return round_half_up(loss * 2.0**SCORE_POWER).astype(np.int64).astype(object)


LOSSES = {"squared_error": SquaredError, "log_loss": LogLoss}


def sum_losses(loss, score, y, weight):
    """Return the weighted sum of the losses of rows, exactly."""
    return int((weight.astype(object) * loss.compute_losses(score, y)).sum())
