"""Bugs of growing on a cluster."""

from mutations.mutation import Mutation

TESTS = ("test_dask_runs.py", "test_dask.py", "test_dask_use.py")


def planted(name: str, old: str, new: str) -> Mutation:
    """Return a bug of what client and workers do."""
    return Mutation(name, "src/lhtree/dask", old, new, TESTS)


def in_core(name: str, old: str, new: str) -> Mutation:
    """Return a bug of the passes over parts of the rows."""
    return Mutation(name, "native", old, new, ("test_dask.py",))


# fmt: off
MUTATIONS = (
    planted("cluster-runs-swapped", "other.merged(part) if number % 2 else part.merged(other)",
            "part.merged(other) if number % 2 else other.merged(part)"),
    planted("cluster-run-left-over", "number % 2 == 1 or number + 1 < width",
            "number % 2 == 1 or number < width"),
    planted("cluster-narrow-ends", "np.maximum(self.end, later.end)",
            "np.minimum(self.end, later.end)"),
    planted("cluster-cut-in-ties", "is_new[1:] = (np.diff(form) != 0) | (np.diff(score) != 0)",
            "is_new[1:] = True"),
    planted("cluster-listed-sides", "[1.0, 0.0], [0.0, 1.0])", "[0.0, 1.0], [1.0, 0.0])"),
    planted("cluster-closed-bins", "contest.min_weight == 0,", "contest.min_weight >= 0,"),
    planted("cluster-row-numbers", "self.cluster.group(first)",
            "self.cluster.group([0] * len(first))"),
    planted("cluster-same-keys", "make_child_key(node.key, bool(side))",
            "make_child_key(node.key, False)"),
    planted("cluster-depth", "node.depth + 1,", "node.depth,"),
    planted("cluster-not-refused", "        self._check_refused()\n", ""),
    planted("cluster-lost-origin", "np.where(use == SUM_ANEW, -node.end[::2], node.origin)",
            "node.origin"),
    in_core("cluster-segment-edge", "segments_.low[s + 1] <= score[i]",
            "segments_.low[s + 1] < score[i]"),
    in_core("cluster-split-edge", "score[i] < fates_.threshold[f]",
            "score[i] <= fates_.threshold[f]"),
    in_core("cluster-bin-weight", "bin.weight[side] += nodes_.weight[i];",
            "bin.weight[side] += 1.0;"),
)
