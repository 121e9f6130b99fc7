"""What tests demand of grown forests."""

from numpy.testing import assert_array_equal

FIELDS = (
    "left", "feature", "start", "weight", "threshold", "rule", "extremes", "norm", "center",
    "deviation", "share", "weight_sum", "n_samples",
)  # fmt: skip


def assert_same_model(model, other):
    """Demand the same trees, bit for bit."""
    for name in FIELDS:
        assert_array_equal(getattr(model.forest_, name), getattr(other.forest_, name), name)
