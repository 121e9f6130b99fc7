"""The two classifiers: validate, grow, vote."""

from __future__ import annotations

import warnings
from contextlib import contextmanager
from typing import NamedTuple

import numpy as np
from joblib import effective_n_jobs
from scipy.sparse import csr_matrix
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.metrics import accuracy_score
from sklearn.utils import check_random_state
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from lhtree import _core, parameters
from lhtree.progress import Progress
from lhtree.tree import NO_MAX_DEPTH, Forest, Plan, grow_forest, join_forests
from lhtree.vote import find_probabilities
from lhtree.weights import find_class_weight, resolve_sample_weight

try:  # scikit-learn 1.9 and later
    from sklearn.callback import CallbackSupportMixin, with_callbacks
except ImportError:

    class CallbackSupportMixin:  # type: ignore[no-redef]
        """Stands for scikit-learn's class where it is absent."""

    def with_callbacks(method):
        """Return the method: there are no callbacks to run."""
        return method


class Draw(NamedTuple):
    """How the rows of each member are drawn from those of positive weight."""

    n_rows: int
    n_draws: int
    bootstrap: bool


class TrainingRows(NamedTuple):
    """The rows of positive weight, ready to grow from."""

    X: np.ndarray
    code: np.ndarray  # class of each row
    weight: np.ndarray | None  # None: every row counts once
    number: np.ndarray  # position of each row in the caller's X


@contextmanager
def _restored_on_error(estimator):
    """Leave the estimator as it was if the block raises."""
    before = dict(vars(estimator))
    try:
        yield
    except BaseException:
        vars(estimator).clear()
        vars(estimator).update(before)
        raise


def _keep_positive(rows):
    """Drop the rows that do not count."""
    if rows.weight is None or rows.weight.all():
        return rows
    return TrainingRows(*(field[rows.weight > 0] for field in rows))


def _weigh_classes(rows, class_weight, classes):
    """Multiply the weights of the rows by those of their classes."""
    factor = find_class_weight(class_weight, classes, rows.code, rows.weight)
    if factor is None:
        return rows
    weight = factor[rows.code] * (1.0 if rows.weight is None else rows.weight)
    if not weight.any():
        raise ValueError(f"class_weight={class_weight!r} leaves no row with a positive weight.")
    return _keep_positive(rows._replace(weight=weight))


def _check_overflow(rows, names):
    """Refuse columns whose sums of squares leave the range of doubles."""
    columns = _core.find_overflow(rows.X, None)
    if len(columns):
        listed = ", ".join(str(j if names is None else names[j]) for j in columns[:5])
        more = f" and {len(columns) - 5} more" if len(columns) > 5 else ""
        raise ValueError(
            f"X has values so large that their squares overflow, in column {listed}{more}; "
            "divide them by a constant."
        )
    if rows.weight is not None and len(_core.find_overflow(rows.X, rows.weight)):
        raise ValueError(
            f"sample_weight is so large that sums overflow, up to {rows.weight.max()}; "
            "divide the weights by a constant."
        )


class _HyperplaneTrees(CallbackSupportMixin, ClassifierMixin, BaseEstimator):
    """What both classifiers are: members with one tree per class each."""

    classes_: np.ndarray
    n_classes_: int
    forest_: Forest
    _seed: int
    _draw: Draw

    @with_callbacks
    def fit(self, X, y, sample_weight=None):
        """Grow the trees.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Training rows: finite numbers. float32 and float64 in C order are read
            without a copy.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the rows. A row of integer weight w counts like w copies of
            it, a row of weight 0 like none. If any weight is not an integer, the
            weights are first scaled to mean one over the positive ones.

        Returns
        -------
        object
            The fitted classifier itself.
        """
        parameters.check_rules(self)
        parameters.check_members(self)
        goes_on = self.warm_start and hasattr(self, "forest_")
        n_old = self._n_members if goes_on else 0
        if self.n_estimators < n_old:
            raise ValueError(
                f"n_estimators={self.n_estimators} must be at least {n_old}, the number of "
                "members already grown, when warm_start=True."
            )
        progress = Progress(self, self.n_estimators - n_old)
        with _restored_on_error(self):
            self._fit(X, y, sample_weight, n_old, progress)
        progress.end()
        return self

    def _fit(self, X, y, sample_weight, n_old, progress):
        X, y = self._validate(X, y, reset=n_old == 0)
        check_classification_targets(y)
        classes, code = np.unique(y, return_inverse=True)
        if n_old and not np.array_equal(classes, self.classes_):
            raise ValueError(
                f"y has the classes {classes.tolist()}, but warm_start=True adds to a forest "
                f"with {self.classes_.tolist()}; use the same classes or warm_start=False."
            )
        weight = resolve_sample_weight(sample_weight, len(X))
        rows = _keep_positive(TrainingRows(X, code.astype(np.int32), weight, np.arange(len(X))))
        _check_overflow(rows, getattr(self, "feature_names_in_", None))
        scale = self._find_scale(rows, n_old)
        if not self._balances_members:
            rows = _weigh_classes(rows, self.class_weight, classes)
        draw = self._find_draw(len(rows.X), n_old)
        seed = self._seed if n_old else self._find_seed()
        plan = self._plan(rows, draw, seed, n_old, len(classes))
        progress.n_trees_per_member = len(plan.target)
        self._grow(rows, plan, scale, progress)
        self.classes_, self.n_classes_ = classes, len(classes)
        self._seed, self._draw = seed, draw
        if self.oob_score:
            self._score_left_out(rows, len(X))

    def _find_scale(self, rows, n_old):
        """Return mean and deviation of the columns; a warm start keeps its units."""
        if n_old:
            return self.forest_.column_mean, self.forest_.column_deviation
        n_features = rows.X.shape[1]
        if not self.standardize:
            return np.zeros(n_features), np.ones(n_features)
        return _core.find_scale(rows.X, rows.weight)

    def _find_draw(self, n_rows, n_old):
        n_draws = parameters.count_draws(self.max_samples, n_rows, bootstrap=self.bootstrap)
        draw = Draw(n_rows, n_draws, bool(self.bootstrap))
        if self.oob_score and not self.bootstrap and n_draws >= n_rows:
            raise ValueError(
                f"oob_score={self.oob_score!r} needs rows that are left out, but "
                f"max_samples={self.max_samples!r} draws all {n_rows}; use a smaller "
                "max_samples or bootstrap=True."
            )
        if n_old and draw != self._draw:
            raise ValueError(
                f"warm_start=True needs the draws of the members already grown, {self._draw}, "
                f"got {draw}; give the same rows, max_samples and bootstrap, or set "
                "warm_start=False."
            )
        return draw

    def _find_seed(self):
        return int(check_random_state(self.random_state).randint(2**31 - 1))

    def _plan(self, rows, draw, seed, n_old, n_classes):
        n_rows, n_features = rows.X.shape
        t = self.n_estimators
        beta = [self.beta * i / t for i in range(n_old, t)] if t > 1 else [self.beta][n_old:]
        count = parameters.count_columns
        return Plan(
            n_classes=n_classes,
            target=(1,) if n_classes == 2 else tuple(range(n_classes)),
            beta=tuple(map(float, beta)),
            n_draws=draw.n_draws,
            seed=seed,
            first_member=n_old,
            bootstrap=draw.bootstrap,
            balance=self._balances_members,
            alpha=float(self.alpha),
            gamma=float(self.gamma),
            min_samples_split=parameters.count_min_samples(self.min_samples_split, n_rows),
            max_depth=NO_MAX_DEPTH if self.max_depth is None else int(self.max_depth),
            min_weight_fraction_leaf=float(self.min_weight_fraction_leaf),
            n_columns=count("max_features", self.max_features, n_features),
            n_columns_per_tree=count(
                "max_features_per_tree", self.max_features_per_tree, n_features
            ),
        )

    def _grow(self, rows, plan, scale, progress):
        if not plan.beta:
            warnings.warn(
                f"n_estimators={self.n_estimators} members are grown already; with "
                "warm_start=True fit adds none.",
                stacklevel=5,
            )
            return
        forest = grow_forest(
            _core.standardize(rows.X, *scale) if self.standardize else rows.X,
            rows.code,
            rows.weight,
            plan,
            scale=scale,
            n_threads=effective_n_jobs(self.n_jobs),
            progress=progress,
        )
        self.forest_ = join_forests([self.forest_, forest]) if plan.first_member else forest

    def _score_left_out(self, rows, n_samples):
        """Set the out-of-bag attributes from the members that did not see a row."""
        n_members = self._n_members
        left_out = _core.find_left_out(self._seed, n_members, *self._draw)
        bits = np.unpackbits(left_out.view(np.uint8), axis=1, bitorder="little")
        n_voters = bits[:, : len(rows.X)].sum(axis=0, dtype=np.int64)
        is_voted = n_voters > 0
        if not is_voted.all():
            warnings.warn(
                f"{np.count_nonzero(~is_voted)} rows were seen by every member and have no "
                "out-of-bag votes; use more members.",
                stacklevel=5,
            )
        sums = self._vote(rows.X, left_out=left_out)
        proba = self._find_probabilities(sums, np.maximum(n_voters, 1)[:, np.newaxis])
        self.oob_decision_function_ = np.full((n_samples, self.n_classes_), np.nan)
        self.oob_decision_function_[rows.number[is_voted]] = proba[is_voted]
        score = self.oob_score if callable(self.oob_score) else accuracy_score
        predicted = self.classes_[proba[is_voted].argmax(axis=1)]
        self.oob_score_ = score(self.classes_[rows.code[is_voted]], predicted)

    @property
    def _balances_members(self):
        """Whether classes weigh alike in the rows of each member; the core sees to it."""
        return isinstance(self.class_weight, str) and self.class_weight == "balanced_subsample"

    @property
    def _n_members(self):
        return len(self.forest_) // (1 if self.n_classes_ == 2 else self.n_classes_)

    def _validate(self, X, *y, reset=False):
        """Return finite rows in C order, without a copy where they are so already."""
        return validate_data(self, X, *y, dtype=[np.float64, np.float32], order="C", reset=reset)

    def _validate_rows(self, X):
        """Return rows to answer.

        A plain array that needs no change passes at once: for a single row,
        scikit-learn's checks take longer than the answer.
        """
        is_plain = (
            type(X) is np.ndarray
            and X.dtype in (np.float64, np.float32)
            and X.ndim == 2
            and X.shape[0] > 0
            and X.shape[1] == self.n_features_in_
            and X.flags.c_contiguous
            and X.flags.aligned
            and not hasattr(self, "feature_names_in_")
        )
        if is_plain and _core.is_finite(X):
            return X
        return self._validate(X)

    def _vote(self, X, left_out=None):
        return self.forest_.vote(
            X,
            n_classes=self.n_classes_,
            by_margin=self.voting == "margin",
            left_out=left_out,
            n_trees_per_member=len(self.forest_) // self._n_members,
            n_threads=effective_n_jobs(self.n_jobs),
        )

    def _find_probabilities(self, sums, n_members):
        return find_probabilities(sums, n_members, by_margin=self.voting == "margin")

    def predict_proba(self, X):
        """Return the share of the votes that each class gets.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Probabilities in the order of ``classes_``; rows sum to one.
        """
        check_is_fitted(self)
        return self._find_probabilities(self._vote(self._validate_rows(X)), self._n_members)

    def predict_log_proba(self, X):
        """Return the logarithm of the class probabilities.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            Logarithms of :meth:`predict_proba`.
        """
        return np.log(self.predict_proba(X))

    def predict(self, X):
        """Return the most probable class of each row, the first of equal ones.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of shape (n_samples,)
            Labels from ``classes_``.
        """
        proba = self.predict_proba(X)
        return self.classes_[proba.argmax(axis=1)]

    def apply(self, X):
        """Return the leaf that each row reaches in each tree.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        ndarray of int64, shape (n_samples, n_trees)
            Node numbers within each tree of ``trees_``.
        """
        check_is_fitted(self)
        return self.forest_.apply(self._validate_rows(X), n_threads=effective_n_jobs(self.n_jobs))

    def decision_path(self, X):
        """Return the nodes that each row passes.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features)
            Rows with the columns of the training data.

        Returns
        -------
        indicator : sparse matrix of shape (n_samples, n_nodes)
            Nonzero where a row passes a node; the nodes of all trees one after
            the other.
        n_nodes_ptr : ndarray of shape (n_trees + 1,)
            Columns ``n_nodes_ptr[k]:n_nodes_ptr[k + 1]`` belong to tree ``k``.
        """
        leaf = self.apply(X)
        start, parent = self.forest_.tree_start, self.forest_.find_parent()
        row = np.repeat(np.arange(len(leaf)), leaf.shape[1])
        node = (leaf + start[:-1]).ravel()
        rows, nodes = [], []
        while len(node):
            rows.append(row)
            nodes.append(node)
            is_inner = parent[node] >= 0
            row, node = row[is_inner], parent[node[is_inner]]
        row, node = np.concatenate(rows), np.concatenate(nodes)
        shape = len(leaf), int(start[-1])
        return csr_matrix((np.ones(len(node), dtype=np.int64), (row, node)), shape), start.copy()

    def get_depth(self):
        """Return the number of splits on the longest path of any tree.

        Returns
        -------
        int
            Depth of the deepest tree.
        """
        check_is_fitted(self)
        return int(self.forest_.find_depth().max())

    def get_n_leaves(self):
        """Return the number of leaves of all trees.

        Returns
        -------
        int
            Sum over ``trees_``.
        """
        check_is_fitted(self)
        return int(np.count_nonzero(self.forest_.left < 0))

    @property
    def trees_(self):
        """Trees of all members, ordered by member, then class.

        Returns
        -------
        list of lhtree.Tree
            ``tree.target`` is the index of the class that a tree votes for.
        """
        check_is_fitted(self)
        return list(self.forest_)

    @property
    def feature_importances_(self):
        """How strongly the splits rely on each feature.

        In each split a feature counts ``|weight| * deviation`` (in the split's rows),
        normalised to sum one over the features; splits count by the weighted share of
        rows that reach them; each tree is normalised to sum one; trees without a split
        are left out; the rest is averaged.

        Returns
        -------
        ndarray of shape (n_features,)
            Sums to one, or all zeros if no tree has a split.
        """
        check_is_fitted(self)
        return self.forest_.find_importances()


class LHTClassifier(_HyperplaneTrees):
    """Learning Hyperplane Tree: one oblique tree per class, in closed form.

    Each tree separates one class, its *target*, from the rest. A split weighs every
    feature by the difference of its means between the two groups and cuts off the
    largest pure piece; a leaf answers with a least-squares line clipped to [0, 1].
    With two classes, the second class's tree answers for both.

    Parameters
    ----------
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
    standardize : bool, default=True
        Whether to grow on (x - mean) / deviation of each column, as the paper does for
        all data sets but MNIST. The contrast of means depends on the units of the
        columns: without it, columns with large numbers dominate.
    class_weight : dict or "balanced", default=None
        Factor of the weight of each class; "balanced" gives all classes the same
        total weight.
    n_jobs : int, default=None
        Number of threads, in scikit-learn's meaning: None is 1, -1 all cores. It
        never changes the result.

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
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where `X` had string names.

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
    max_features = None
    max_features_per_tree = None
    voting = "membership"
    oob_score = False
    warm_start = False
    random_state = 0
    verbose = 0

    def __init__(
        self,
        *,
        alpha=0.0,
        beta=0.0,
        gamma=2,
        min_samples_split=2,
        max_depth=None,
        min_weight_fraction_leaf=0.0,
        standardize=True,
        class_weight=None,
        n_jobs=None,
    ):
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.min_samples_split = min_samples_split
        self.max_depth = max_depth
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.standardize = standardize
        self.class_weight = class_weight
        self.n_jobs = n_jobs


class LHForestClassifier(_HyperplaneTrees):
    """LH Forest: members of one oblique tree per class, on random rows.

    Members differ by the rows that they see and by how many features their splits
    keep. All trees are grown as in :class:`LHTClassifier`; a class's vote is the
    mean membership over its trees.

    Parameters
    ----------
    n_estimators : int, default=50
        Number of members (t in the paper): trees per class.
    alpha : float, default=0.0
        Least variance of a feature in a node to take part in its split: features
        with variance above `alpha` stay (α in the paper). In the units of the
        trees, see `standardize`.
    beta : float, default=0.5
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
    max_samples : float or int, default=0.8
        Rows that each member draws (the forest rate in the paper): a share or a
        number of the rows with positive weight; None for all.
    bootstrap : bool, default=False
        Whether rows are drawn with replacement.
    max_features : float, int, "sqrt", "log2" or None, default=1.0
        Columns drawn for each node, in scikit-learn's meaning; columns that cannot
        split the node are passed over.
    max_features_per_tree : float, int, "sqrt", "log2" or None, default=1.0
        Columns drawn once for each tree (the feature subsets of the paper).
    voting : {"membership", "margin"}, default="membership"
        "membership": a class's vote is the mean membership over its trees. "margin":
        memberships are weighted by the distance to the nearest hyperplane of the
        path, the rule of the paper's published program.
    standardize : bool, default=True
        Whether to grow on (x - mean) / deviation of each column, as the paper does for
        all data sets but MNIST.
    class_weight : dict, "balanced" or "balanced_subsample", default=None
        Factor of the weight of each class; "balanced" gives all classes the same
        total weight, "balanced_subsample" does so within the rows of each member.
    oob_score : bool or callable, default=False
        Whether to score the forest on the rows that members left out; a callable
        ``metric(y_true, y_pred)`` replaces the accuracy.
    warm_start : bool, default=False
        Whether another `fit` with more members keeps those already grown. New members
        take the beta schedule of the new `n_estimators` at their index.
    n_jobs : int, default=None
        Number of threads, in scikit-learn's meaning: None is 1, -1 all cores. It
        never changes the result.
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
    n_features_in_ : int
        Number of columns seen in `fit`.
    feature_names_in_ : ndarray of shape (n_features_in_,)
        Their names, where `X` had string names.
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
        n_estimators=50,
        *,
        alpha=0.0,
        beta=0.5,
        gamma=2,
        min_samples_split=2,
        max_depth=None,
        min_weight_fraction_leaf=0.0,
        max_samples=0.8,
        bootstrap=False,
        max_features=1.0,
        max_features_per_tree=1.0,
        voting="membership",
        standardize=True,
        class_weight=None,
        oob_score=False,
        warm_start=False,
        n_jobs=None,
        random_state=None,
        verbose=0,
    ):
        self.n_estimators = n_estimators
        self.alpha = alpha
        self.beta = beta
        self.gamma = gamma
        self.min_samples_split = min_samples_split
        self.max_depth = max_depth
        self.min_weight_fraction_leaf = min_weight_fraction_leaf
        self.max_samples = max_samples
        self.bootstrap = bootstrap
        self.max_features = max_features
        self.max_features_per_tree = max_features_per_tree
        self.voting = voting
        self.standardize = standardize
        self.class_weight = class_weight
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose
