"""A forest as a sequence of its estimators."""

from __future__ import annotations

from operator import index
from typing import Any

from sklearn.utils.validation import check_is_fitted

from lhtree.arrays import Ints
from lhtree.training.averaging import list_draws


class EstimatorSequence:
    """How many estimators a fitted forest has, what they drew, and which trees they are."""

    forest_: Any
    _seed: Any
    _draw: Any

    @property
    def n_estimators_(self) -> int:
        """Number of estimators grown.

        Returns
        -------
        int
            What `n_estimators` came to.
        """
        check_is_fitted(self)
        return len(self.forest_) // self._n_trees

    @property
    def _n_trees(self) -> int:
        """Trees of an estimator: one per class, but one for two classes and for numbers."""
        n_classes: int = getattr(self, "n_classes_", 1)
        return n_classes if n_classes > 2 else 1

    @property
    def estimators_samples_(self) -> list[Ints]:
        """The rows that each estimator drew.

        Returns
        -------
        list of ndarray
            Positions in the training rows, ascending; with `bootstrap`, a row that was drawn
            twice is there twice.
        """
        draws = list_draws(self._seed, self.n_estimators_, self._draw)
        position = getattr(self, "_position", None)
        return [row if position is None else position[row] for row in draws]

    def __bool__(self) -> bool:
        """Return True: a forest that is not fitted yet counts as true, too."""
        return True

    def __len__(self) -> int:
        """Return the number of estimators."""
        return self.n_estimators_

    def __getitem__(self, position: int) -> Any:
        """Return the tree of an estimator; a tuple of them where it has one for each class."""
        n_trees = self._n_trees
        number = range(len(self))[index(position)] * n_trees
        if n_trees == 1:
            return self.forest_[number]
        return tuple(self.forest_[number + k] for k in range(n_trees))
