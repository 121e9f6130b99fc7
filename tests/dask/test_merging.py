"""Merging what partitions report: one order of additions, wherever they are."""

import numpy as np
import pytest

pytest.importorskip("distributed")

from lhtree.dask.merging import Listed, Sums, collect_runs, merge_runs


def make_sums(number):
    """Return sums whose rounding shows in which order they were added."""
    rng = np.random.default_rng(number)
    return Sums(rng.normal(size=50) * 10.0 ** rng.integers(-9, 9, 50), rng.normal(size=7))


def merge_places(places, n):
    """Merge the partitions of each place, then the places."""
    runs = [collect_runs(place, map(make_sums, place), n) for place in places]
    return merge_runs(runs, n)


@pytest.mark.parametrize("n", [1, 2, 3, 7, 13, 64])
def test_merged_sums_do_not_depend_on_places(n):
    rng = np.random.default_rng(n)
    (one,) = merge_places([range(n)], n).parts.values()
    for n_places in (1, 2, 5):
        place = rng.integers(n_places, size=n)
        places = [np.flatnonzero(place == k).tolist() for k in rng.permutation(n_places)]
        (other,) = merge_places(places, n).parts.values()
        np.testing.assert_array_equal(other.sum, one.sum)
        np.testing.assert_array_equal(other.end, one.end)
    np.testing.assert_allclose(
        one.sum, np.sum([make_sums(i).sum for i in range(n)], axis=0), atol=1e-3
    )
    np.testing.assert_array_equal(one.end, np.max([make_sums(i).end for i in range(n)], axis=0))


def test_neighbours_are_merged_before_they_are_sent():
    runs = collect_runs(range(8, 16), map(make_sums, range(8, 16)), 16)
    assert list(runs.parts) == [(3, 1)]
    assert runs.n_bytes == make_sums(0).n_bytes
    both = merge_runs([collect_runs(range(8), map(make_sums, range(8)), 16), runs], 16)
    assert list(both.parts) == [(4, 0)]
    assert both.n_sent == 2 * runs.n_bytes


def test_listed_projections_stay_in_the_order_of_partitions():
    parts = [
        Listed(
            np.array([0], np.int32), np.array([float(i)]), np.ones(1, np.uint8), np.array([i / 2])
        )
        for i in range(5)
    ]
    runs = [collect_runs(place, (parts[i] for i in place), 5) for place in ([3, 4], [0, 2], [1])]
    (whole,) = merge_runs(runs, 5).parts.values()
    assert whole.score.tolist() == [0, 1, 2, 3, 4]
    assert whole.weight.tolist() == [0, 0.5, 1, 1.5, 2]
