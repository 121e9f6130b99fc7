"""Forests of numbers on the exact engine: trees on random rows, whose values are averaged.

`regressor` holds parameters, docstrings and what users ask a forest for; `fit` runs the steps
of a fit, and of a warm start; `params` checks the parameters and resolves them for given data;
`levels` checks what quantiles and intervals are asked for.
"""

from lhtree.estimators.averaging.regressor import LHForestRegressor

__all__ = ["LHForestRegressor"]
