"""Boosting: estimators that add rounds of trees, one after the other.

`regressor` and `classifier` hold parameters, docstrings and what targets and scores mean;
`base` runs the steps of a fit; `samples`, `offsets` and `validation` hold the training rows,
`init_score` and the validation rows; `preparation` turns them into integers;
`warm_start` continues a model; `watch` and `scoring` look at the rounds; `params` checks the
parameters and resolves them for given data, `constraints` those that say what columns may do.
"""

from lhtree.estimators.boosting.base import BoostingEstimator
from lhtree.estimators.boosting.classifier import LHBoostClassifier
from lhtree.estimators.boosting.regressor import LHBoostRegressor

__all__ = ["BoostingEstimator", "LHBoostClassifier", "LHBoostRegressor"]
