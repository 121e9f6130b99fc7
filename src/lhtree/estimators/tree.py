"""The two classifiers and their parameters."""

import numpy as np
from sklearn.base import clone
from sklearn.utils import Bunch

from lhtree import _core
from lhtree.estimators.base import HyperplaneTrees


class LHTClassifier(HyperplaneTrees):
    """Learning Hyperplane Tree: one oblique tree per class, in closed form.

    Each tree separates one class, its *target*, from the rest. A split weighs every
    feature by the difference of its means between the two groups and cuts off the
    largest pure piece; a leaf answers with a least-squares line clipped to [0, 1].
    With two classes, the second class's tree answers for both.

    Values may be missing (NaN). The statistics of a feature then use the rows of the node
    that have it, in splits and leaves, and a missing value counts as its mean in the
    node; a feature without a value on one side of a node takes no part there.

    Parameters
    ----------
    contrast : {"mean", "standardized", "fisher"}, default="mean"
        What the weights of a split are made of. "mean": the difference of the class
        means, SD (the paper's rule). "standardized": SD divided by the variance in the
        node. "fisher": Fisher's direction with the shrunken covariance within the
        classes; its cost grows with the square of the number of columns.
    threshold : {"purity", "gini"}, default="purity"
        What chooses the constant of a split. "purity": the largest pure piece is cut
        off (the paper's rule). "gini": the cut of least Gini impurity; `gamma` is then
        not used.
    alpha : float, default=0.0
        Least variance of a feature in a node to take part in its split: features
        with variance above `alpha` stay (α in the paper). In the units of the
        trees, see `standardize`.
    beta : float, default=0.0
        Least weight of a feature in a split, from 0 to 1 (β in the paper): a feature
        stays if the gap between its class means is at least `beta` times the widest
        gap. 0 keeps all features, 1 only the strongest.
    gamma : float, default=2
        Least number of rows that a pure piece must hold to be cut off (γ in the
        paper); otherwise the split goes through the middle of the four extremes.
    min_samples_split : int or float, default=2
        Nodes with fewer rows are leaves (min_samples in the paper). A float is a
        share of the training rows.
    max_depth : int, default=None
        Largest number of splits on a path (d in the paper's O(mnd)); None for no limit.
    min_weight_fraction_leaf : float, default=0.0
        Least share of the total weight on each side of a split. A leaf in which one
        class holds less is constant.
    min_samples_leaf : int or float, default=1
        Least number of rows on each side of a split; a float is a share of the training
        rows. Rows count by their weight. A pure piece that is too small gives way to
        the middle, a Gini cut to the best one that is allowed.
    max_leaf_nodes : int, default=None
        Most leaves of each tree: of the splits those that lower the Gini impurity most
        are kept, each after its parent. None for no limit.
    ccp_alpha : float, default=0.0
        Complexity parameter of minimal cost-complexity pruning, in scikit-learn's
        meaning: in each tree the weakest links are cut, until the next would raise the
        Gini impurity by more than `ccp_alpha` per leaf saved.
    standardize : bool, default=True
        Whether to grow on (x - mean) / deviation of each column, as the paper does for
        all data sets but MNIST. The contrast of means depends on the units of the
        columns: without it, columns with large numbers dominate.
    categorical_features : "from_dtype", array-like of bool, int or str, or None, \
default="from_dtype"
        Columns that hold categories: a mask, positions or names; "from_dtype" takes the
        columns of categories and text of a pandas or polars frame, None takes none.
        Each becomes one indicator (0 or 1) per category. With ``contrast="mean"`` it is not
        standardised: its contrast is the share among the targets minus that among the
        rest. Missing categories, and at prediction unknown ones, have no indicator of 1.
    max_categories : int or None, default=64
        Most indicators of a column: if there are more categories, the rarest share one.
        None for no limit.
    class_weight : dict or "balanced", default=None
        Factor of the weight of each class; "balanced" gives all classes the same
        total weight.
    n_jobs : int, default=None
        Number of threads. None uses all cores that the process may use, but one inside
        a worker of joblib or Dask; -1 all cores. It never changes the result.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_classes_ : int
        Number of classes.
    forest_ : lhtree.Forest
        The trees as flat arrays.
    trees_ : list of lhtree.Tree
        One tree per class; with two classes, one tree for the second.
    feature_importances_ : ndarray of shape (n_features,)
        How strongly the splits rely on each feature.
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Their names, where `X` had string names.
    columns_ : lhtree.data.columns.Columns
        How the columns of `X` become those that the trees see.
    column_names_ : list of str
        Names of the columns that the trees see; an indicator reads ``column=value``.
    column_source_ : ndarray of int64
        Position in `X` of the column that each of them is made from.

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
    Tree(target=0, n_nodes=5, n_leaves=3, depth=2)
    >>> feature, weight, *_ = model.trees_[0].terms(0)
    >>> X.columns[feature[abs(weight).argmax()]]
    'proline'
    """

    # A single tree per class is the forest of one member on all rows.
    _balances_members = False
    n_estimators = 1
    max_samples = None
    bootstrap = False
    preset = "paper"
    axes = False
    n_planes = 1
    max_features = None
    max_features_per_tree = None
    voting = "membership"
    shrinkage = 0.0
    max_estimators = 1
    calibration = None
    oob_score = False
    warm_start = False
    random_state = 0
    verbose = 0

    def __init__(
        self,
        *,
        contrast="mean",
        threshold="purity",
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
        self.threshold = threshold
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
            ``ccp_alphas``, ascending from 0, of all trees together, and ``impurities``,
            the Gini impurity of the leaves of the trees pruned so, averaged over the
            trees. With the last value every tree is a single leaf.

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
            risk = 2 * tree.share * (1 - tree.share) * tree.weight_sum / tree.weight_sum[0]
            impurity += risk[tree.left < 0].sum()
            links.append(np.array(_core.find_links(tree.left, risk)))
        strength, gain = np.hstack(links)
        is_cut = np.isfinite(strength)
        # Rounding may put a cut that changes nothing below 0.
        level = np.maximum(strength[is_cut], 0.0)
        alpha, place = np.unique(np.append(level, 0.0), return_inverse=True)
        step = np.bincount(place, np.append(gain[is_cut], impurity))
        return Bunch(ccp_alphas=alpha, impurities=np.cumsum(step) / len(full.trees_))
