"""The two classifiers and their parameters."""

from lhtree.estimators.base import HyperplaneTrees


class LHForestClassifier(HyperplaneTrees):
    """LH Forest: members of one oblique tree per class, on random rows.

    Members differ by the rows that they see and by the columns that their splits
    draw. In each node several hyperplanes in closed form compete; a class's vote is
    the mean membership over its trees. ``preset="paper"`` gives the forest of the
    paper, whose members differ by rows and by how many features their splits keep.

    Values may be missing (NaN), as in :class:`LHTClassifier`; in the correlations of
    ``contrast="fisher"``, too, they count as the mean of the node.

    Parameters
    ----------
    n_estimators : int, "auto" or None, default=None
        Number of members (t in the paper): trees per class. None: by the size of the
        table, 100 as long as rows times columns times trees of a member stay below
        1.5 million, beyond that 150 million divided by that product, at least 15.
        "auto": members are added, 20 at a time, until two batches in a row raise the
        out-of-bag accuracy by less than 0.001; `beta` then follows van der Corput's
        sequence.
    max_estimators : int, default=500
        Largest number of members with n_estimators="auto".
    preset : {"accurate", "paper"}, default="accurate"
        What "auto" means below. "accurate": contrast="fisher", threshold="gini",
        max_features of twice the square root of the number of columns (at most 128),
        axes=True, n_planes=3, shrinkage chosen out of bag. "paper": contrast="mean",
        threshold="purity", max_features=1.0, axes=False, n_planes=1, shrinkage=0.
    contrast : {"auto", "mean", "standardized", "fisher"}, default="auto"
        What the weights of a split are made of. "mean": the difference of the class
        means, SD (the paper's rule). "standardized": SD divided by the variance in the
        node. "fisher": Fisher's direction with the shrunken covariance within the
        classes; its cost grows with the square of the number of columns.
    threshold : {"auto", "purity", "gini"}, default="auto"
        What chooses the constant of a split. "purity": the largest pure piece is cut
        off (the paper's rule). "gini": the cut of least Gini impurity; `gamma` is then
        not used.
    axes : bool or "auto", default="auto"
        Whether each column that a node draws (see `max_features`) is tried as a split
        of its own, as in random forests.
    n_planes : int or "auto", default="auto"
        Contrasts tried in each node: the first over all columns that it draws, the
        second and third over one half of them each, then quarters, and so on. Of all
        candidates of a node the one of least Gini impurity splits it.
    alpha : float, default=0.0
        Least variance of a feature in a node to take part in its split: features
        with variance above `alpha` stay (α in the paper). In the units of the
        trees, see `standardize`.
    beta : float, default=0.0
        End of the schedule of least weights (β' in the paper): member i = 0 ... t - 1
        keeps the features whose gap between class means is at least ``beta * i / t``
        times the widest. With one member, `beta` itself.
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
    max_samples : float or int, default=0.8
        Rows that each member draws (the forest rate in the paper): a share or a
        number of the rows with positive weight; None for all.
    bootstrap : bool, default=False
        Whether rows are drawn with replacement.
    max_features : float, int, "sqrt", "log2", "auto" or None, default="auto"
        Columns drawn at each node, in scikit-learn's meaning; columns that do not vary
        in the node are passed over.
    max_features_per_tree : float, int, "sqrt", "log2" or None, default=1.0
        Columns drawn once for each tree (the feature subsets of the paper).
    shrinkage : float or "auto", default="auto"
        How strongly the shares of small nodes are moved towards those of the nodes
        above: a step from a parent of n rows to its child counts n / (n + shrinkage).
        0 leaves them as they are. "auto" with preset="accurate": the one of 0, 1, 3,
        10, 30, 100 with the least squared error of the probabilities, estimated out of
        bag (0 if no row is left out). A warm start keeps the shrinkage of its first fit.
    voting : {"membership", "margin"}, default="membership"
        "membership": a class's vote is the mean membership over its trees. "margin":
        memberships are weighted by the distance to the nearest hyperplane of the
        path, the rule of the paper's published program.
    standardize : bool, default=True
        Whether to grow on (x - mean) / deviation of each column, as the paper does for
        all data sets but MNIST.
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
    class_weight : dict, "balanced" or "balanced_subsample", default=None
        Factor of the weight of each class; "balanced" gives all classes the same
        total weight, "balanced_subsample" does so within the rows of each member.
    calibration : {"oob"} or None, default=None
        Whether probabilities are calibrated: a class's probability is then
        proportional to (score + offset) ** exponent, with the exponent of least
        log-loss on out-of-bag votes and half a vote as offset. Labels do not change.
    oob_score : bool or callable, default=False
        Whether to score the forest on the rows that members left out; a callable
        ``metric(y_true, y_pred)`` replaces the accuracy.
    warm_start : bool, default=False
        Whether another `fit` with more members keeps those already grown. New members
        take the beta schedule of the new `n_estimators` at their index.
    n_jobs : int, default=None
        Number of threads. None uses all cores that the process may use, but one inside
        a worker of joblib or Dask; -1 all cores. It never changes the result.
    random_state : int, RandomState instance or None, default=None
        Seed of the rows and columns drawn.
    verbose : int, default=0
        Whether to print progress on standard error.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Class labels.
    n_classes_ : int
        Number of classes.
    forest_ : lhtree.Forest
        The trees as flat arrays.
    trees_ : list of lhtree.Tree
        Trees ordered by member, then class; with two classes, each member has one
        tree, for the second class.
    feature_importances_ : ndarray of shape (n_features,)
        How strongly the splits rely on each feature.
    n_estimators_ : int
        Number of members grown.
    shrinkage_ : float
        Strength of the shrinkage used.
    calibration_ : ndarray of shape (2,)
        Offset and exponent of the probabilities; only with `calibration`.
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
    oob_score_ : float
        Score on the rows left out; only with `oob_score`.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Probabilities from the members that left a row out, NaN where there is none;
        only with `oob_score`.

    See Also
    --------
    LHTClassifier : One tree per class, made to be read.

    Examples
    --------
    >>> from sklearn.datasets import load_wine
    >>> from sklearn.model_selection import cross_val_score
    >>> from lhtree import LHForestClassifier
    >>> X, y = load_wine(return_X_y=True)
    >>> model = LHForestClassifier(random_state=0)
    >>> bool(cross_val_score(model, X, y).mean() > 0.95)
    True
    """

    def __init__(
        self,
        n_estimators=None,
        *,
        max_estimators=500,
        preset="accurate",
        contrast="auto",
        threshold="auto",
        axes="auto",
        n_planes="auto",
        alpha=0.0,
        beta=0.0,
        gamma=2,
        min_samples_split=2,
        max_depth=None,
        min_weight_fraction_leaf=0.0,
        min_samples_leaf=1,
        max_leaf_nodes=None,
        ccp_alpha=0.0,
        max_samples=0.8,
        bootstrap=False,
        max_features="auto",
        max_features_per_tree=1.0,
        shrinkage="auto",
        voting="membership",
        standardize=True,
        categorical_features="from_dtype",
        max_categories=64,
        class_weight=None,
        calibration=None,
        oob_score=False,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_estimators = n_estimators
        self.max_estimators = max_estimators
        self.preset = preset
        self.contrast = contrast
        self.threshold = threshold
        self.axes = axes
        self.n_planes = n_planes
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.min_samples_split = min_samples_split
        self.max_depth = max_depth
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.min_samples_leaf = min_samples_leaf
        self.max_leaf_nodes = max_leaf_nodes
        self.ccp_alpha = ccp_alpha
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.max_features = max_features
        self.max_features_per_tree = max_features_per_tree
        self.shrinkage = shrinkage
        self.voting = voting
        self.standardize = standardize
        self.categorical_features = categorical_features
        self.max_categories = max_categories
        self.class_weight = class_weight
        self.calibration = calibration
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
