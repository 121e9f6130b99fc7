"""Pictures of a fitted model.

Every function draws on the given ``ax``, or on new axes, and returns them.
The numbers come from :mod:`lhtree.explain`.
"""

try:
    import matplotlib  # noqa: F401
except ImportError as error:
    message = "lhtree.plot needs matplotlib: pip install 'lhtree[plot]'."
    raise ImportError(message, name="matplotlib") from error

from lhtree.plot.bars import plot_contributions, plot_importances
from lhtree.plot.boundary import plot_boundary
from lhtree.plot.learning import plot_learning_curve
from lhtree.plot.splits import plot_split
from lhtree.plot.trees import plot_tree
from lhtree.plot.weights import plot_weights

__all__ = [
    "plot_boundary",
    "plot_contributions",
    "plot_importances",
    "plot_learning_curve",
    "plot_split",
    "plot_tree",
    "plot_weights",
]
