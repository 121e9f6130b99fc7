"""Numbers that explain a fitted model; no plotting library is needed.

What a model consists of: :func:`split_table`, :func:`split_view`, :func:`rules`. What
it relies on: :func:`class_importances`, :func:`interactions`. Why it predicts what it
does: :func:`explain_rows`, and what would change the prediction:
:func:`nearest_counterfactual`. All of them read ``model.forest_`` and never change it.
"""

from lhtree.explain.contributions import Explanation, explain_rows
from lhtree.explain.counterfactuals import Counterfactual, nearest_counterfactual
from lhtree.explain.importances import class_importances, interactions
from lhtree.explain.paths import Path
from lhtree.explain.rules import BoostedRule, Rule, RuleSet, rules
from lhtree.explain.splits import SplitView, split_table, split_view

__all__ = [
    "BoostedRule",
    "Counterfactual",
    "Explanation",
    "Path",
    "Rule",
    "RuleSet",
    "SplitView",
    "class_importances",
    "explain_rows",
    "interactions",
    "nearest_counterfactual",
    "rules",
    "split_table",
    "split_view",
]
