"""A minute of a new user: both classifiers on a small table."""

from sklearn.datasets import load_wine

from lhtree import LHForestClassifier, LHTClassifier, check_forest


def test_both_classifiers_learn_wine():
    X, y = load_wine(return_X_y=True, as_frame=True)
    for model in (LHTClassifier(), LHForestClassifier(random_state=0)):
        model.fit(X, y)
        check_forest(model.forest_)
        assert model.score(X, y) > 0.98
