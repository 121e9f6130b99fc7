"""The point of a polytope that is nearest to the origin."""

import numpy as np
from numpy.testing import assert_allclose

from lhtree.explain.counterfactuals.polytope import HalfSpace, compute_nearest_point


def test_the_nearest_point_of_a_corner_and_of_an_empty_polytope():
    corner = [HalfSpace(np.array([1.0, 0.0]), 3.0), HalfSpace(np.array([0.0, 1.0]), 4.0)]
    assert_allclose(compute_nearest_point(corner), [3, 4])
    assert_allclose(compute_nearest_point(corner, margin=0.5), [3.5, 4.5])
    closed = [space._replace(is_open=False) for space in corner]
    assert_allclose(compute_nearest_point(closed, margin=0.5), [3, 4])
    assert compute_nearest_point([*corner, HalfSpace(np.array([-1.0, 0.0]), -2.0)]) is None
