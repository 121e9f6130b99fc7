"""The classifier of many trees per class."""

import numpy as np
from sklearn.metrics import accuracy_score
from sklearn.utils.multiclass import check_classification_targets

from lhtree.data.reading import read_rows
from lhtree.data.warn import warn
from lhtree.estimators.averaging.classes import fit_classes
from lhtree.estimators.averaging.fit import Grown
from lhtree.estimators.averaging.params import AveragingParams
from lhtree.estimators.averaging.sequence import EstimatorSequence
from lhtree.estimators.base import restored_on_error
from lhtree.estimators.classifier import TreeClassifier
from lhtree.estimators.docstrings import BOOSTING_PARAMETERS, PARAMETERS, describe
from lhtree.estimators.params import count_threads
from lhtree.estimators.samples import keep_positive, read_samples
from lhtree.model.ensemble import Ensemble
from lhtree.model.prediction import normalize_scores
from lhtree.model.votes import UNCALIBRATED, count_votes
from lhtree.training.progress import Progress

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


ENGINE_PARAMETERS = ("max_bins", "monotonic_cst", "interaction_cst")
OWN_TEXTS |= {name: BOOSTING_PARAMETERS[name] for name in ENGINE_PARAMETERS}


@describe(**OWN_TEXTS)
class LHForestClassifier(EstimatorSequence, TreeClassifier):
    """LH Forest: estimators of one oblique tree per class, on random rows.

    Estimators differ in the rows that they see and in the columns that their splits draw.
    Each node takes the best of several candidate splits in closed form; the vote for a
    class is the mean over its trees of the share of the class in the leaf that a row reaches.
    All sums are exact integers: the model does not depend on the number of threads.
    ``preset="paper"`` gives the forest of the paper, whose estimators differ in their rows and
    in how many features their splits keep.

    Values may be missing (NaN): a split by a single column sends them to the better side, or
    divides them from all others; in a hyperplane they count as the mean of the node.

    Parameters
    ----------
    {parameters}

    Attributes
    ----------
    {attributes}
    trees_ : list of lhtree.model.ensemble.BoostedTree
        Trees ordered by estimator, then class; with two classes, each estimator has one
        tree, for the second class. By the paper's rules they are of the type lhtree.Tree.
    n_estimators_ : int
        Number of estimators grown.
    shrinkage_ : float
        Strength of shrinkage used.
    calibration_ : ndarray of shape (2,)
        Offset and exponent of the probabilities, if they are calibrated.
    estimators_samples_ : list of ndarray
        Positions of the training rows that each estimator drew.
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
        max_bins=255,
        categorical_features="from_dtype",
        max_categories=255,
        monotonic_cst=None,
        interaction_cst=None,
        class_weight=None,
        calibration="auto",
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
        self.max_bins = max_bins
        self.categorical_features = categorical_features
        self.max_categories = max_categories
        self.monotonic_cst = monotonic_cst
        self.interaction_cst = interaction_cst
        self.class_weight = class_weight
        self.calibration = calibration
        self.oob_score = oob_score
        self.warm_start = warm_start
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def _fit(self, X, y, sample_weight):
        params = AveragingParams.read(self)
        known = self.forest_ if params.shared.warm_start and hasattr(self, "forest_") else None
        if known is not None and isinstance(known, Ensemble) != params.shared.is_exact:
            raise ValueError(
                "warm_start=True adds to estimators that grew by other rules (preset, contrast, "
                "criterion, voting, alpha, beta); leave them as they were, or set "
                "warm_start=False."
            )
        if not params.shared.is_exact:
            table = self._fit_by_the_paper(X, y, sample_weight, params.shared)
            self._keep_position(table.number)
            return
        old = None
        if known is not None:
            old = Grown(known, self.columns_, self._seed, self._draw, self.shrinkage_)
        n_old = 0 if old is None else self.n_estimators_
        n_estimators = params.shared.limit_estimators(n_old)
        n_new = n_estimators and n_estimators - n_old
        progress = Progress(self, n_new, is_verbose=bool(params.shared.verbose))
        with restored_on_error(self):
            given = read_samples(self, X, y, sample_weight, params)
            check_classification_targets(given.y)
            n_samples, samples = len(given.y), keep_positive(given)
            fitted = fit_classes(self, samples, params, old, progress)
            self._keep_classes(fitted)
            if params.shared.oob_score:
                self._score_classes(fitted, params, n_samples)
            progress.end()

    _is_regressor = False

    def _keep_classes(self, fitted):
        """Set the attributes of a fit and remove stale ones."""
        grown = fitted.grown
        self.classes_, self.n_classes_ = fitted.classes, len(fitted.classes)
        self.forest_, self.shrinkage_ = grown.forest, grown.shrinkage
        self._seed, self._draw = grown.seed, grown.draw
        for name in ("calibration_", "oob_score_", "oob_decision_function_", "_standardized"):
            self.__dict__.pop(name, None)
        if fitted.calibration is not None:
            self.calibration_ = fitted.calibration
        self._keep_position(fitted.samples.number)

    def _keep_position(self, position):
        """Keep where the rows of positive weight are in X, if others are there, too."""
        self.__dict__.pop("_position", None)
        if position is not None:
            self._position = position

    def _score_classes(self, fitted, params, n_samples):
        """Set the attributes of `oob_score`."""
        votes, n_voters = fitted.score_out_of_bag()
        is_voted = n_voters > 0
        if not is_voted.all():
            warn(
                f"{np.count_nonzero(~is_voted)} rows were drawn by every estimator and have no "
                "out-of-bag votes; use more estimators.",
            )
        proba = np.full((n_samples, self.n_classes_), np.nan)
        position = getattr(self, "_position", np.arange(n_samples))[is_voted]
        proba[position] = self._normalize(votes[is_voted])
        self.oob_decision_function_ = proba
        true, found = fitted.samples.y[is_voted], votes[is_voted].argmax(axis=1)
        measure = params.shared.oob_score
        measure = measure if callable(measure) else accuracy_score
        self.oob_score_ = measure(self.classes_[true], self.classes_[found])

    def _score_rows(self, X):
        rows = read_rows(self, X)
        if not isinstance(self.forest_, Ensemble):
            return super()._score_rows(X)
        n_threads = count_threads(self.n_jobs)
        return count_votes(self.forest_, rows, n_classes=self.n_classes_, n_threads=n_threads)

    def _normalize(self, score):
        if not isinstance(self.forest_, Ensemble):
            return super()._normalize(score)
        return normalize_scores(score, *getattr(self, "calibration_", UNCALIBRATED))

    def _choose(self, score):
        if not isinstance(self.forest_, Ensemble):
            return super()._choose(score)
        return score.argmax(axis=1)
