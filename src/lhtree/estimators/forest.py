"""The classifier of many trees per class."""

from lhtree.estimators.classifier import TreeClassifier
from lhtree.estimators.docstrings import PARAMETERS, describe

OWN_TEXTS = {
    "contrast": PARAMETERS["contrast"].replace("{", '{"auto", ', 1),
    "criterion": PARAMETERS["criterion"].replace("{", '{"auto", ', 1),
    "beta": """float
    End of a schedule (β' in the paper): estimator i = 0 ... t - 1 keeps the features
    whose gap between class means is at least ``beta * i / t`` times the widest gap. A
    single estimator uses `beta` itself.""",
    "class_weight": """dict, "balanced" or "balanced_subsample"
    Factor on the weight of each class; "balanced" gives all classes the same
    total weight, "balanced_subsample" does so within the rows of each estimator.""",
}


@describe(**OWN_TEXTS)
class LHForestClassifier(TreeClassifier):
    """LH Forest: estimators of one oblique tree per class, on random rows.

    Estimators differ in the rows that they see and in the columns that their splits draw.
    Each node takes the best of several candidate splits in closed form; the vote for a
    class is the mean membership over its trees. ``preset="paper"`` gives the forest of the
    paper, whose estimators differ in their rows and in how many features their splits keep.

    Values may be missing (NaN), as in :class:`LHTClassifier`; they count as the mean of
    the node in the correlations of ``contrast="fisher"``, too.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    trees_ : list of lhtree.Tree
        Trees ordered by estimator, then class; with two classes, each estimator has one
        tree, for the second class.
    n_estimators_ : int
        Number of estimators grown.
    shrinkage_ : float
        Strength of shrinkage used.
    calibration_ : ndarray of shape (2,)
        Offset and exponent of the probabilities; only with `calibration`.
    oob_score_ : float
        Score on out-of-bag rows; only with `oob_score`.
    oob_decision_function_ : ndarray of shape (n_samples, n_classes)
        Out-of-bag probabilities of the training rows, NaN for rows without any; only with
        `oob_score`.

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
        criterion="auto",
        axis_splits="auto",
        n_hyperplanes="auto",
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
        self.criterion = criterion
        self.axis_splits = axis_splits
        self.n_hyperplanes = n_hyperplanes
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
