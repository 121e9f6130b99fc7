"""What users touch: the estimators, their parameters, and how they are fitted.

`tree` and `forest` hold parameters and docstrings; `params` checks the parameters and
resolves them for given data; `fit` runs the steps of a fit.
"""

from lhtree.estimators.averaging import LHForestRegressor
from lhtree.estimators.boosting import LHBoostClassifier, LHBoostRegressor
from lhtree.estimators.forest import LHForestClassifier
from lhtree.estimators.tree import LHTClassifier

__all__ = [
    "LHBoostClassifier",
    "LHBoostRegressor",
    "LHForestClassifier",
    "LHForestRegressor",
    "LHTClassifier",
]
