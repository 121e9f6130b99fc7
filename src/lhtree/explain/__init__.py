"""Numbers that explain a fitted model; no plotting library is needed.

What a model consists of: :func:`split_table`, :func:`split_view`. What it relies on:
:func:`class_importances`, :func:`interactions`. Why it answers as it does:
:func:`explain_rows`, and what would change the answer: :func:`nearest_counterfactual`.
All of them read ``model.forest_`` and never change it.
"""

from lhtree.explain.contributions import Explanation, explain_rows
from lhtree.explain.counterfactual import Counterfactual, nearest_counterfactual
from lhtree.explain.importances import class_importances, interactions
from lhtree.explain.paths import Path
from lhtree.explain.splits import SplitView, split_table, split_view

__all__ = [
    "Counterfactual",
    "Explanation",
    "Path",
    "SplitView",
    "class_importances",
    "explain_rows",
    "interactions",
    "nearest_counterfactual",
    "split_table",
    "split_view",
]
