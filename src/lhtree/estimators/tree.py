"""The classifier of one tree per class."""

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch

from lhtree import _core
from lhtree.estimators.classifier import TreeClassifier
from lhtree.estimators.docstrings import describe


@describe()
class LHTClassifier(TreeClassifier):
    """Learning Hyperplane Tree: one oblique tree per class, in closed form.

    Each tree separates one class, its *positive class*, from all others. A split weighs
    every feature by the difference of its means over positive and negative rows, then cuts
    off the largest pure group of rows. A leaf outputs a straight line per feature, clipped
    to [0, 1]. With two classes, the tree of the second class serves both.

    Values may be missing (NaN). The statistics of a feature use the rows of the node that
    have a value, and a missing value counts as the mean of its feature in the node. A
    feature that is missing in all positive or all negative rows of a node takes no part
    there.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    trees_ : list of lhtree.Tree
        One tree per class; with two classes, one tree for the second.

    See Also
    --------
    LHForestClassifier : Several trees per class, more accurate.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from lhtree import LHTClassifier
    >>> X, y = load_wine(return_X_y=True, as_frame=True)
    >>> model = LHTClassifier(beta=0.25).fit(X, y)
    >>> model.trees_[0]
    Tree(positive_class=0, n_nodes=5, n_leaves=3, depth=2)
    >>> feature, weight, *_ = model.trees_[0].terms(0)
    >>> X.columns[feature[abs(weight).argmax()]]
    'proline'
    """

    def __init__(
        self,
        *,
        contrast="mean",
        criterion="purity",
        alpha=0.0,
        beta=0.0,
        gamma=2,
        min_samples_split=2,
        max_depth=None,
        min_weight_fraction_leaf=0.0,
        min_samples_leaf=1,
        max_leaf_nodes=None,
        ccp_alpha=0.0,
        standardize=True,
        categorical_features="from_dtype",
        max_categories=64,
        class_weight=None,
        n_jobs=None,
    ):
        self.contrast = contrast
        self.criterion = criterion
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.min_samples_split = min_samples_split
        self.max_depth = max_depth
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.ccp_alpha = ccp_alpha
        self.standardize = standardize
        self.categorical_features = categorical_features
        self.max_categories = max_categories
        self.class_weight = class_weight
        self.n_jobs = n_jobs

    def cost_complexity_pruning_path(self, X, y, sample_weight=None):
        """Return the values of `ccp_alpha` at which the trees become smaller.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows, as in :meth:`fit`.

        Returns
        -------
        sklearn.utils.Bunch
            ``ccp_alphas``, ascending from 0, for all trees together, and ``impurities``,
            the mean Gini impurity of the leaves of the trees pruned with each of them.
            At the last value every tree is a single leaf.

        Examples
        --------
        >>> from sklearn.datasets import load_wine
        >>> from lhtree import LHTClassifier
        >>> X, y = load_wine(return_X_y=True)
        >>> path = LHTClassifier().cost_complexity_pruning_path(X, y)
        >>> small = LHTClassifier(ccp_alpha=path.ccp_alphas[-2]).fit(X, y)
        >>> small.get_n_leaves() < LHTClassifier().fit(X, y).get_n_leaves()
        True
        """
        full = clone(self).set_params(ccp_alpha=0.0).fit(X, y, sample_weight)
        links, impurity = [], 0.0
        for tree in full.trees_:
            risk = 2 * tree.value * (1 - tree.value) * tree.weight_sum / tree.weight_sum[0]
            impurity += risk[tree.left < 0].sum()
            links.append(np.array(_core.list_pruning_links(tree.left, risk)))
        strength, gain = np.hstack(links)
        is_cut = np.isfinite(strength)
        # Rounding may put a cut that changes nothing below 0.
        level = np.maximum(strength[is_cut], 0.0)
        alpha, position = np.unique(np.append(level, 0.0), return_inverse=True)
        step = np.bincount(position, np.append(gain[is_cut], impurity))
        return Bunch(ccp_alphas=alpha, impurities=np.cumsum(step) / len(full.trees_))
