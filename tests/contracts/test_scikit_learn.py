"""scikit-learn's own checks of an estimator."""

from sklearn.utils.estimator_checks import parametrize_with_checks

from lhtree import (
    LHBoostClassifier,
    LHBoostRegressor,
    LHForestClassifier,
    LHForestRegressor,
    LHTClassifier,
)


def expected_failures(estimator):
    """Name the checks that cannot hold where a forest draws random rows.

    Dropping or repeating rows renumbers the others, so draws by row number differ;
    scikit-learn's random forests declare the same.
    """
    is_forest = isinstance(estimator, LHForestClassifier | LHForestRegressor)
    if is_forest and estimator.max_samples != 1.0:
        reason = "weights and repetition draw different rows"
        kinds = ("dense", "sparse")
        return {f"check_sample_weight_equivalence_on_{kind}_data": reason for kind in kinds}
    return {}


@parametrize_with_checks(
    [
        LHTClassifier(),
        LHForestClassifier(),
        LHForestClassifier(max_samples=1.0),
        LHForestClassifier(preset="paper", voting="margin", max_samples=1.0, beta=0.8),
        LHForestClassifier(contrast="standardized", max_samples=1.0),
        LHForestClassifier(20, bootstrap=True, class_weight="balanced_subsample"),
        LHTClassifier(contrast="fisher", criterion="gini"),
        LHForestRegressor(20),
        LHForestRegressor(20, max_samples=1.0, max_depth=4),
        LHBoostClassifier(n_estimators=20),
        LHBoostRegressor(n_estimators=20),
        LHBoostRegressor(n_estimators=30, n_hyperplanes=0),
        LHBoostRegressor("absolute_error", n_estimators=20),
        LHBoostRegressor("quantile", quantile=0.5, n_estimators=20),
        LHBoostRegressor("poisson", n_estimators=20),
        LHBoostRegressor("gamma", n_estimators=20),
    ],
    expected_failed_checks=expected_failures,
)
def test_scikit_learn_contract(estimator, check):
    check(estimator)
