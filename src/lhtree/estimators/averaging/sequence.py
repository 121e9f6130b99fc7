"""A forest as a sequence of its estimators."""

from __future__ import annotations

from operator import index
from typing import Any

from sklearn.utils.validation import check_is_fitted


class EstimatorSequence:
    """What `len`, positions and loops give of a fitted forest."""

    forest_: Any

    @property
    def n_estimators_(self) -> int:
        """Number of estimators grown."""
        raise NotImplementedError

    def __bool__(self) -> bool:
        """Return True: a forest that is not fitted yet counts as true, too."""
        return True

    def __len__(self) -> int:
        """Return the number of estimators."""
        check_is_fitted(self)
        return self.n_estimators_

    def __getitem__(self, position: int) -> Any:
        """Return the tree of an estimator; a tuple of them where it has one for each class."""
        t = len(self)
        n_trees = len(self.forest_) // t
        number = range(t)[index(position)] * n_trees
        if n_trees == 1:
            return self.forest_[number]
        return tuple(self.forest_[number + k] for k in range(n_trees))
