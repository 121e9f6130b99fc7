"""Merging what partitions tell: one order of additions, wherever they are."""

import numpy as np
import pytest

pytest.importorskip("distributed")

from lhtree.dask.runs import Listed, Sums, collect_runs, merge_runs


def tell(number):
    """Return sums whose rounding shows in which order they were added."""
    rng = np.random.default_rng(number)
    return Sums(rng.normal(size=50) * 10.0 ** rng.integers(-9, 9, 50), rng.normal(size=7))


def merge_groups(groups, n):
    """Merge within groups, then over them."""
    runs = [collect_runs(group, map(tell, group), n) for group in groups]
    return merge_runs(runs, n)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 13, 64])
def test_places_change_no_bit_of_merged_sums(n):
    rng = np.random.default_rng(n)
    (one,) = merge_groups([range(n)], n).parts.values()
    for n_groups in (1, 2, 5):
        place = rng.integers(n_groups, size=n)
        groups = [np.flatnonzero(place == k).tolist() for k in rng.permutation(n_groups)]
        (other,) = merge_groups(groups, n).parts.values()
        np.testing.assert_array_equal(other.sum, one.sum)
        np.testing.assert_array_equal(other.end, one.end)
    np.testing.assert_allclose(one.sum, np.sum([tell(i).sum for i in range(n)], axis=0), atol=1e-3)
    np.testing.assert_array_equal(one.end, np.max([tell(i).end for i in range(n)], axis=0))


def test_neighbours_are_merged_before_they_are_sent():
    runs = collect_runs(range(8, 16), map(tell, range(8, 16)), 16)
    assert list(runs.parts) == [(3, 1)]
    assert runs.n_bytes == tell(0).n_bytes
    both = merge_runs([collect_runs(range(8), map(tell, range(8)), 16), runs], 16)
    assert list(both.parts) == [(4, 0)]
    assert both.n_sent == 2 * runs.n_bytes


def test_listed_projections_stay_in_the_order_of_partitions():
    parts = [
        Listed(
            np.array([0], np.int32), np.array([float(i)]), np.ones(1, np.uint8), np.array([i / 2])
        )
        for i in range(5)
    ]
    runs = [collect_runs(group, (parts[i] for i in group), 5) for group in ([3, 4], [0, 2], [1])]
    (whole,) = merge_runs(runs, 5).parts.values()
    assert whole.score.tolist() == [0, 1, 2, 3, 4]
    assert whole.weight.tolist() == [0, 0.5, 1, 1.5, 2]
