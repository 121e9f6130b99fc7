"""The smallest change of a row that makes the model predict another class.

``nearest.py`` has the public function. It states the problem (``problem.py``: which row,
which classes, what may change) and solves it in one of two ways:

- ``cell_search.py`` proves the minimum where each class has a single tree. It visits the
  cells in which the votes are linear (``regions.py``), nearest first.
- ``local_search.py`` looks for short moves in forests and proves nothing.

Both see the nodes of the trees as functions of a move (``hyperplanes.py``) and compute
nearest points of polytopes (``polytope.py``).
"""

from lhtree.explain.counterfactuals.nearest import (
    Counterfactual,
    can_be_proven,
    nearest_counterfactual,
)

__all__ = ["Counterfactual", "can_be_proven", "nearest_counterfactual"]
