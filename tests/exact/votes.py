"""From the paper's trees to probabilities and labels: memberships, distances, votes."""

from dataclasses import dataclass

import numpy as np

from exact.leaves import MEMBERSHIP_BITS, ONE

MOST_DISTANCE = 1 << 30
TIE = 1e-6


@dataclass(frozen=True)
class Answer:
    """What a tree says of rows: integers."""

    leaf: np.ndarray
    membership: np.ndarray  # in units of 2**-16
    distance: np.ndarray  # to the nearest threshold passed, in units of distances
    margin: np.ndarray  # the same where the largest weight is one, not the norm


def walk(nodes, z):
    """Return the answer of a tree to rows on the grid; distances are 0 if the root is a leaf."""
    at = np.zeros(len(z), dtype=np.int64)
    most = MOST_DISTANCE if nodes[0].left >= 0 else 0
    distance, margin = np.full(len(z), most), np.full(len(z), most)
    membership = np.zeros(len(z), dtype=np.int64)
    for k, node in enumerate(nodes):  # parents come before their children
        rows = np.flatnonzero(at == k)
        if node.left < 0:
            membership[rows] = node.line.answer(z[rows])
            continue
        offset = node.split.hyperplane.project(z[rows]) - node.split.hyperplane.cut
        distance[rows] = np.minimum(distance[rows], np.abs(offset) // node.norm)
        margin[rows] = np.minimum(margin[rows], np.abs(offset) // node.largest)
        at[rows] = np.where(offset < 0, node.left, node.left + 1)
    return Answer(at, membership, distance, margin)


def sum_answers(answers, power, voting):
    """Return the vote for a class, the vote against it and its signed distance, as doubles.

    Sums are exact. Those of memberships times distances are in units of 2**power.
    """
    membership = sum(answer.membership for answer in answers)
    signed = sum((2 * answer.membership - ONE) * answer.distance for answer in answers)
    n = float(len(answers))
    signed = np.ldexp(signed.astype(np.float64) / n, power)
    if voting == "membership":
        claim = membership.astype(np.float64) / (n * ONE)
        return claim, 1.0 - claim, signed
    claim = sum(answer.membership * answer.margin for answer in answers)
    rejection = sum((ONE - answer.membership) * answer.margin for answer in answers)
    claim, rejection = (np.ldexp(each.astype(np.float64), power) for each in (claim, rejection))
    return claim, rejection, signed


def vote(trees, scale, z, n_classes, voting="membership"):
    """Return q of each row and class; ``trees`` has a list of trees for each voting class.

    Two classes have trees of the second class only.
    """
    if n_classes == 1:
        return np.ones((len(z), 1))
    votes, signed = np.zeros((2, len(z), n_classes))
    power = scale.distance_power - MEMBERSHIP_BITS
    for k, of_class in enumerate(trees, 1 if n_classes == 2 else 0):
        answers = [walk(tree, z) for tree in of_class]
        votes[:, k], rejection, signed[:, k] = sum_answers(answers, power, voting)
        if n_classes == 2:
            votes[:, 0], signed[:, 0] = rejection, -signed[:, 1]
    return votes + TIE * (1.0 + signed / (1.0 + np.abs(signed))) / 2.0


def predict_proba(q):
    """Return the probabilities of the classes; sums go from the first class to the last."""
    total = np.zeros(len(q))
    for of_class in q.T:
        total = total + of_class
    return q / total[:, None]


def predict(q):
    """Return the class of each row, the lowest of equal ones."""
    return np.argmax(q, axis=1)
