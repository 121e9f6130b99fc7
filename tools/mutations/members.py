# ruff: noqa: E501
"""Bugs of the number of estimators, of shrinkage and of calibration."""

from mutations.mutation import Mutation


def planted(name: str, old: str, new: str) -> Mutation:
    """Return a bug of the classifiers."""
    return Mutation(
        name,
        "src/lhtree",
        old,
        new,
        ("test_ensemble_size.py", "test_classifier.py", "test_out_of_bag.py"),
    )


def in_shrink(name: str, old: str, new: str) -> Mutation:
    """Return a bug of shrinkage in the native core."""
    return Mutation(name, "native", old, new, ("test_ensemble_size.py",))


# fmt: off
MUTATIONS = (
    planted("beta-schedule", "beta * i / n_estimators", "beta * (i + 1) / n_estimators"),
    planted("estimators-digits", 'f"{i:b}"[::-1]', 'f"{i:b}"'),
    planted("estimators-impatient", "PATIENCE = 2", "PATIENCE = 1"),
    planted("estimators-any-gain", "max(before) + LEAST_GAIN", "max(before)"),
    planted("estimators-of-columns-alone", "MOST_NUMBERS // (n_rows * n_columns * n_trees)",
            "MOST_NUMBERS // (n_columns * n_trees)"),
    planted("estimators-heard-twice", "progress.n_before = first - n_old", "progress.n_before = 0"),
    in_shrink("shrink-from-plain-parent", "above + factor * (share", "share[i] + factor * (share"),
    in_shrink("shrink-half-steps", "factor = weight / (weight + strength[v])",
              "factor = 0.5 * weight / (weight + strength[v])"),
    in_shrink("shrink-judged-plain", "add_line(shrunk[leaf * n_each + v], line)",
              "add_line(forest.threshold[root + leaf], line)"),
    planted("shrink-judged-by-first-bits", "bits[:, begin // 64 : (begin + step) // 64]",
            "bits[:, : step // 64]"),
    planted("shrink-leaves-unmoved", "np.where(forest.left < 0, share, forest.threshold)",
            "forest.threshold.copy()"),
    planted("shrink-strongest", "int(np.argmin(errors))", "int(np.argmax(errors))"),
    planted("sample-first", "is_out[: len(self.n_voters) : step]", "is_out[: len(n_voters)]"),
    planted("sample-of-few-votes", "- max(slope, 0.0) *", "- 0.0 *"),
    planted("sample-whole", "_find_judges(rows, t // 2, None)", "_find_judges(rows, t, None)"),
    planted("calibrate-whole-vote", "HALF_VOTE / self._n_estimators",
            "HALF_VOTE * 2 / self._n_estimators"),
    planted("calibrate-no-exponent", ".max(axis=1, keepdims=True)) ** exponent",
            ".max(axis=1, keepdims=True))"),
    planted("calibrate-uphill", "(low, exponent) if slope > 0", "(low, exponent) if slope < 0"),
)
