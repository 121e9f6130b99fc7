"""Descriptions that estimators share: one text for each parameter and attribute."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from textwrap import indent

PARAMETERS = {
    "n_estimators": """int, "auto" or None
    Number of estimators (t in the paper); each has one tree per class. None: the size of
    the table decides: 100 while rows times columns that a node draws times trees per estimator
    stay below 1.5 million, beyond that 150 million divided by that product, but at least 30
    (by the paper's rules all columns count, and there are at least 15). "auto": `fit` adds
    estimators, 20 at a time, until two batches in a row raise the out-of-bag accuracy by less
    than 0.001; `beta` then follows van der Corput's sequence.""",
    "max_estimators": """int
    Largest number of estimators with n_estimators="auto".""",
    "preset": """{"accurate", "paper"}
    What "auto" stands for below. "accurate": contrast="fisher", criterion="gini",
    max_features of twice the square root of the number of columns (at most 128),
    axis_splits=True, n_hyperplanes=3, shrinkage chosen by out-of-bag votes. "paper":
    contrast="mean", criterion="purity", max_features=1.0, axis_splits=False,
    n_hyperplanes=1, shrinkage=0. Trees with contrast="fisher", criterion="gini",
    voting="membership", alpha=0 and beta=0 grow in exact integer arithmetic; all others, by
    the paper's rules, as in version 0.1.""",
    "contrast": """{"mean", "standardized", "fisher"}
    How the weights of a split are computed. "mean": the difference of the class
    means, SD, as in the paper. "standardized": SD divided by the variance in the
    node. "fisher": Fisher's direction with a shrunken within-class covariance; its
    cost grows with the square of the number of columns.""",
    "criterion": """{"purity", "gini"}
    How the threshold of a split is chosen. "purity" cuts off the largest pure group of
    rows, as in the paper. "gini" takes the cut with the lowest Gini impurity and ignores
    `gamma`.""",
    "axis_splits": """bool or "auto"
    Whether to try each column that a node draws (see `max_features`) as a split of its
    own, as random forests do.""",
    "n_hyperplanes": """int or "auto"
    Number of hyperplanes to try in each node: the first over all columns that it draws,
    the second and third over one half of them each, then quarters, and so on. The
    candidate with the lowest Gini impurity splits the node. In exact integer arithmetic, every
    other estimator tries hyperplanes (all with ``axis_splits=False``), and each term of one but
    the first costs a quarter of what a split gains by chance.""",
    "alpha": """float
    A feature takes part in a split only if its variance in the node is above `alpha`
    (α in the paper), in the units of the trees (see `standardize`).""",
    "beta": """float
    Smallest weight of a feature in a split, from 0 to 1 (β in the paper): a feature
    stays if the gap between its class means is at least `beta` times the widest
    gap. 0 keeps all features, 1 only the strongest.""",
    "gamma": """float
    Smallest pure group, in rows, that a split may cut off (γ in the paper). If every
    pure group is smaller, the split goes through the middle of the four extremes.""",
    "min_samples_split": """int or float
    Nodes with fewer rows are leaves (min_samples in the paper). A float is a
    fraction of the training rows.""",
    "max_depth": """int
    Maximum number of splits on a path (d in the paper's O(mnd)); None for no limit.""",
    "min_weight_fraction_leaf": """float
    Smallest fraction of the total weight on each side of a split. A leaf in which one
    class has less is constant.""",
    "min_samples_leaf": """int or float
    Smallest number of rows on each side of a split, counted by weight; a float is a
    fraction of the training rows. If the pure group is too small, the split goes through
    the middle; a Gini cut is the best of those allowed.""",
    "max_leaf_nodes": """int
    Maximum number of leaves of each tree. The splits that lower the Gini impurity most
    stay, each after its parent. None for no limit.""",
    "ccp_alpha": """float
    Complexity parameter of minimal cost-complexity pruning, as in scikit-learn: each
    tree loses its weakest links until the next cut would raise the Gini impurity by
    more than `ccp_alpha` per leaf saved.""",
    "max_samples": """float or int
    Rows that each estimator draws (the forest rate in the paper): a fraction or a
    number of the rows with positive weight; None for all.""",
    "bootstrap": """bool
    Whether to draw rows with replacement.""",
    "max_features": """float, int, "sqrt", "log2", "auto" or None
    Columns to draw at each node, as in scikit-learn; columns that do not vary in the
    node are skipped.""",
    "max_features_per_tree": """float, int, "sqrt", "log2" or None
    Columns to draw once for each tree (the paper's feature subsets).""",
    "shrinkage": """float or "auto"
    How strongly to pull the values of small nodes towards those of the nodes above
    them: a step from a parent of n rows to its child counts n / (n + shrinkage). 0
    changes nothing. "auto" with preset="accurate": whichever of 0, 1, 3, 10, 30, 100
    gives the out-of-bag probabilities the lowest squared error (0 if every row is
    drawn). A warm start keeps the shrinkage of its first fit.""",
    "voting": """{"membership", "margin"}
    "membership": the vote for a class is the mean membership over its trees. "margin":
    memberships are weighted by the distance to the nearest hyperplane on the path, as
    in the program that the authors published.""",
    "standardize": """bool
    Whether to grow on (x - mean) / std of each column, as the paper does for all data
    sets except MNIST. The difference of means depends on the units of the columns:
    without standardising, columns with large numbers dominate.""",
    "categorical_features": """"from_dtype", array-like of bool, int or str, or None
    Columns that hold categories: a mask, positions or names; "from_dtype" takes the
    columns of categories and text of a frame, None takes none. In exact integer arithmetic (see
    `preset`), a split divides the categories of one column into two groups; a missing category
    is one more, and one that is unknown at prediction counts as missing. By the paper's rules
    each category becomes an indicator, 0 or 1. With ``contrast="mean"`` indicators are not
    standardised: their contrast is the fraction of the category among the positive rows minus
    that among the negative rows. A category that is missing, or unknown at prediction, sets no
    indicator to 1.""",
    "max_categories": """int or None
    Largest number of categories of a column: if it has more, the rarest count as one. None for
    no limit by the paper's rules, otherwise for 255, which is the most.""",
    "class_weight": """dict or "balanced"
    Factor on the weight of each class; "balanced" gives all classes the same
    total weight.""",
    "calibration": """{"auto", "oob"} or None
    Whether to calibrate probabilities. "oob" makes the probability of a class
    proportional to (vote + offset) ** exponent; the offset is half a vote, the exponent
    minimises the log-loss of out-of-bag votes, in exact integer arithmetic (see `preset`) of at
    most 5,000 rows. "auto" does so there, unless every estimator draws all rows. Labels do not
    change.""",
    "oob_score": """bool or callable
    Whether to score the forest on out-of-bag rows; a callable
    ``metric(y_true, y_pred)`` replaces the accuracy.""",
    "warm_start": """bool
    Whether the next `fit` keeps the estimators already grown and adds to them, on the same
    rows. By the paper's rules, new estimators take the beta schedule of the new `n_estimators`
    at their index.""",
    "n_jobs": """int
    Number of threads. None uses all cores available to the process, but only one inside
    a joblib or Dask worker; -1 uses all cores. It never changes the result.""",
    "random_state": """int, RandomState instance or None
    Seed for drawing rows and columns.""",
    "verbose": """int
    Whether to print progress on standard error.""",
    "row_limit": """int
    One worker finishes each node with at most this many rows; None derives the limit
    from the memory of the workers.""",
}

BOOSTING_PARAMETERS = {
    "learning_rate": """float or "auto"
    Factor on what each tree adds; "auto" rises from 0.05 in the first round, 0.025 for
    numbers with 600 rounds or more, by 0.0005 a round to 0.3, by 0.0015 up to 1,000 and above
    20,000 rows: noisy tables stop in time, and clear ones need fewer rounds.""",
    "n_estimators": """int or "auto"
    Largest number of rounds; each adds one tree. "auto" is 600, with more than two classes
    1000, and 100 without early stopping.""",
    "subsample": """float
    Share of the rows that each round draws, without replacement, to grow its tree; below 1,
    the model depends on the order of the rows.""",
    "max_leaf_nodes": """int or "auto"
    Largest number of leaves of each tree. Trees grow best first: the split that lowers the
    loss most comes next. "auto" is 15, and 31 above 20,000 rows.""",
    "max_depth": """int
    Largest number of splits on a path; None for no limit.""",
    "min_samples_leaf": """int
    Smallest number of rows in a leaf, counted by weight.""",
    "l2_regularization": """float
    Added to the sum of the hessians of each leaf: pulls the values of small leaves to 0.""",
    "n_hyperplanes": """int
    Number of hyperplanes that each node tries beside its single columns: the first over all
    the columns that it draws, the next two over one half of them each, then quarters, and so
    on. 0 gives trees with splits by single columns only.""",
    "max_terms": """int or "auto"
    Number of columns that a node draws for its hyperplanes; "auto" is twice the square root
    of the number of columns of numbers, at most 128.""",
    "max_features": """int, float, "sqrt", "log2" or None
    Number of columns that a node draws for its splits by single columns, or the share of
    the columns; None tries all.""",
    "max_bins": """int
    Largest number of bins of a column of numbers, from 2 to 255: a split by a single column
    lies between two of them. A missing value has a bin of its own.""",
    "categorical_features": """"from_dtype", array-like of bool, int or str, or None
    Columns that hold categories: a mask, positions or names; "from_dtype" takes the
    columns of categories and text of a frame, None takes none. A split divides the
    categories of one column into two groups; a missing category is one more, and one that is
    unknown at prediction counts as missing.""",
    "max_categories": """int
    Largest number of categories of a column, at most 255: if it has more, the rarest count
    as one.""",
    "monotonic_cst": """array-like of int, dict or None
    For each column of `X`, or by the names of some: 1 if what is predicted (of two classes,
    the probability of the second) never falls as the column rises, -1 if it never rises, 0
    for neither. It holds for all present values of columns of numbers, with all others
    equal; a missing value has no place among them. More than two classes, or several
    predictions per row, take none.""",
    "interaction_cst": """{"pairwise", "no_interactions"}, list of sets of int or str, or None
    Groups of columns, by positions or names, that may meet on the path to a leaf; columns in
    no group form one more. "no_interactions" makes each column a group of its own,
    "pairwise" each pair. The columns of a hyperplane are of one group. None: all may
    meet.""",
    "early_stopping": """bool or "auto"
    Whether to stop after `n_iter_no_change` rounds that did not lower the loss of validation
    rows, which are `X_val` of `fit` or a part of the rows; the model goes back to the best
    round. "auto" does so for 100 rows or more, or with `X_val`.""",
    "refit": """bool or "auto"
    Whether a model that a part of the rows stopped is grown anew from all rows, with more
    rounds in proportion. `train_score_` and `validation_score_` stay those of the first
    model. "auto" does so up to 20,000 rows, but not with `warm_start`.""",
    "validation_fraction": """float or "auto"
    Fraction of the rows that early stopping takes for validation, if `fit` gets none; "auto"
    is 0.2, and 0.1 above 20,000 rows.""",
    "n_iter_no_change": """int
    Number of rounds without a lower validation loss before boosting stops.""",
    "tol": """float
    By how much a round must improve the validation loss or score to count for
    `n_iter_no_change`; the model goes back to the last round that counted.""",
    "scoring": """"loss", str, callable or None
    What `train_score_` and `validation_score_` hold, and early stopping watches: "loss" for
    minus the loss, the name of a scorer of scikit-learn such as "roc_auc", a callable
    ``scorer(estimator, X, y)``, or None for the method `score`. Scorers see rows as
    they were given, at most 10,000 of those to train on, and cost their time after every
    round.""",
    "warm_start": """bool
    Whether the next `fit` continues the model up to the new `n_estimators`. It needs the same
    rows, targets and weights; without early stopping the model is that of one long fit.""",
    "random_state": """int, RandomState instance or None
    Seed for drawing rows, columns and validation rows.""",
}

AVERAGING_PARAMETERS = {
    "n_estimators": """int or None
    Number of estimators, of one tree each. None: the size of the table decides: 100 while
    rows times columns that a node draws stay below 1.5 million, beyond that 150 million divided
    by that product, but at least 30.""",
    "axis_splits": """bool
    Whether to try each column that a node draws (see `max_features`) as a split of its
    own, as random forests do.""",
    "n_hyperplanes": """int
    Number of hyperplanes to try in each node: the first over all columns of numbers that it
    draws, the second and third over one half of them each, then quarters, and so on. Every
    other tree tries them, all trees with ``axis_splits=False``. The candidate that lowers the
    squared error most splits the node, but each term of a hyperplane but one costs half of
    what a split gains by chance.""",
    "max_features": """float, int, "sqrt", "log2", "auto" or None
    Columns to draw at each node, as in scikit-learn; columns that do not vary in the
    node are skipped. "auto": half of the columns, or twice the square root of their number if
    that is more; at most 128.""",
    "min_samples_split": """int or float
    Nodes with fewer rows, counted by weight, are leaves. A float is a fraction of the
    training rows.""",
    "min_samples_leaf": """int or float
    Smallest number of rows on each side of a split, counted by weight; a float is a
    fraction of the training rows.""",
    "max_depth": """int
    Maximum number of splits on a path; None for no limit.""",
    "max_leaf_nodes": """int
    Maximum number of leaves of each tree, which then grows best first: the split that lowers
    the squared error most comes next. None for no limit.""",
    "max_samples": """float or int
    Rows that each estimator draws: a fraction or a number of the rows with positive weight;
    None for all.""",
    "shrinkage": """float or "auto"
    How strongly to pull the values of small nodes towards those of the nodes above
    them: a step from a parent of n rows to its child counts n / (n + shrinkage). 0
    changes nothing. "auto": whichever of 0, 1, 3, 10, 30, 100 gives the out-of-bag
    predictions the lowest squared error (0 if every row is drawn). A warm start keeps the
    shrinkage of its first fit.""",
    "oob_score": """bool or callable
    Whether to score the forest on out-of-bag rows; a callable
    ``metric(y_true, y_pred)`` replaces R2.""",
    "warm_start": """bool
    Whether the next `fit` keeps the estimators already grown and adds to them, on the same
    rows. If `shrinkage` is a number, the forest is that of one long fit.""",
    "random_state": """int, RandomState instance or None
    Seed for drawing rows and columns.""",
}

AVERAGING_ATTRIBUTES = """forest_ : lhtree.model.ensemble.Ensemble
    The trees as flat arrays.
trees_ : list of lhtree.model.ensemble.BoostedTree
    The trees, one for each estimator, with splits and values in the units of the data.
n_estimators_ : int
    Number of estimators grown.
shrinkage_ : float
    Strength of shrinkage used.
leaf_rows_ : lhtree.model.leaf_rows.LeafRows
    The training targets in each leaf, for quantiles and intervals.
oob_score_ : float
    Score on out-of-bag rows; only with `oob_score`.
oob_prediction_ : ndarray of shape (n_samples,)
    Out-of-bag predictions of the training rows, NaN for rows that every estimator drew; only
    with `oob_score`.
estimators_samples_ : list of ndarray
    Positions of the training rows that each estimator drew.
feature_importances_ : ndarray of shape (n_features,)
    How much of the lowered squared error is due to the splits by each feature; sums to one.
n_features_in_ : int
    Number of columns seen in `fit`.
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Their names, where `X` had string names.
columns_ : lhtree.data.columns.Columns
    How the columns of `X` are encoded for the trees."""

BOOSTING_ATTRIBUTES = """forest_ : lhtree.model.ensemble.Ensemble
    The trees as flat arrays.
trees_ : list of lhtree.model.ensemble.BoostedTree
    The trees, each with splits and values in the units of the data.
n_iter_ : int
    Number of rounds that the model keeps.
train_score_ : ndarray of shape (n_rounds + 1,)
    Minus the mean loss of the training rows before the first and after each round, or their
    scores by `scoring`. Squared errors and deviances are halved; the loss of several
    quantiles is the mean over their levels.
validation_score_ : ndarray
    The same for the validation rows; empty without them.
feature_importances_ : ndarray of shape (n_features,)
    How much of the lowered loss is due to the splits by each feature; sums to one.
n_features_in_ : int
    Number of columns seen in `fit`.
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Their names, where `X` had string names.
columns_ : lhtree.data.columns.Columns
    How the columns of `X` are encoded for the trees."""

ATTRIBUTES = """classes_ : ndarray of shape (n_classes,)
    Class labels.
n_classes_ : int
    Number of classes.
forest_ : lhtree.Forest
    The trees as flat arrays; in exact integer arithmetic lhtree.model.ensemble.Ensemble.
feature_importances_ : ndarray of shape (n_features,)
    How strongly the splits rely on each feature.
n_features_in_ : int
    Number of columns seen in `fit`.
feature_names_in_ : ndarray of shape (`n_features_in_`,)
    Their names, where `X` had string names.
columns_ : lhtree.data.columns.Columns
    How the columns of `X` are encoded for the trees.
column_names_ : list of str
    Names of the columns that the trees see; an indicator reads ``column=value``.
column_source_ : ndarray of int64
    Position in `X` of the column behind each of them."""


def describe(**own: str) -> Callable[[type], type]:
    """Return a decorator that fills "{parameters}" and "{attributes}" in a class docstring.

    Parameters
    ----------
    **own : str
        Descriptions that replace the shared ones.
    """
    return _describe(PARAMETERS | own, ATTRIBUTES)


def describe_boosting(**own: str) -> Callable[[type], type]:
    """Return such a decorator for boosted estimators.

    Parameters
    ----------
    **own : str
        Descriptions that replace the shared ones.
    """
    return _describe(PARAMETERS | BOOSTING_PARAMETERS | own, BOOSTING_ATTRIBUTES)


def describe_averaging(**own: str) -> Callable[[type], type]:
    """Return such a decorator for forests of numbers.

    Parameters
    ----------
    **own : str
        Descriptions that replace the shared ones.
    """
    texts = PARAMETERS | BOOSTING_PARAMETERS
    shared = {name: PARAMETERS[name] for name in ("bootstrap", "n_jobs", "verbose")}
    return _describe(texts | shared | AVERAGING_PARAMETERS | own, AVERAGING_ATTRIBUTES)


def _describe(texts: dict[str, str], attributes: str) -> Callable[[type], type]:
    def fill(cls: type) -> type:
        if cls.__doc__:  # python -OO has none
            listed = "\n".join(
                _describe_parameter(name, parameter.default, texts[name])
                for name, parameter in inspect.signature(cls).parameters.items()
            )
            text = inspect.cleandoc(cls.__doc__)
            text = text.replace("{parameters}", listed).replace("{attributes}", attributes)
            cls.__doc__ = indent(text, "    ").strip() + "\n    "
        return cls

    return fill


def _describe_parameter(name: str, default: object, text: str) -> str:
    kind, _, rest = text.partition("\n")
    shown = f'"{default}"' if isinstance(default, str) else repr(default)
    return f"{name} : {kind}, default={shown}\n{rest}"
