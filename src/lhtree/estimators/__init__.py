"""What users touch: the estimators, their parameters, and how they are fitted.

`tree` and `forest` hold parameters and docstrings, `params` checks the parameters and says
what they mean for given data.
"""

from lhtree.estimators.forest import LHForestClassifier
from lhtree.estimators.tree import LHTClassifier

__all__ = ["LHForestClassifier", "LHTClassifier"]
