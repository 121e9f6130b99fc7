"""Models that were stopped early and grown anew from all rows."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from sklearn.base import clone

from lhtree import LHBoostClassifier, LHBoostRegressor, load, save


@pytest.fixture
def rows():
    """Return rows and noisy numbers."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, X[:, 0] + rng.normal(size=300)


@pytest.mark.parametrize("kind", [LHBoostRegressor, LHBoostClassifier])
def test_a_refitted_model_is_loaded_as_it_was_saved(kind, rows, tmp_path):
    X, y = rows
    y = y if kind is LHBoostRegressor else y > 0
    model = kind(n_iter_no_change=1, random_state=0).fit(X, y)
    assert model.n_iter_ > len(model.train_score_) - 1  # more rounds than were scored
    save(model, tmp_path / "m")
    copy = load(tmp_path / "m")
    assert_array_equal(copy.predict(X), model.predict(X))
    assert set(vars(copy)) == set(vars(model))
    assert copy._best_round == model._best_round == np.argmax(model.validation_score_)


@pytest.mark.parametrize("n_estimators", [4, "auto"])
def test_a_refitted_model_is_not_continued(n_estimators, rows, tmp_path):
    model = LHBoostRegressor(n_estimators=n_estimators, random_state=0).fit(*rows)
    save(model, tmp_path / "m")
    for each in (model, load(tmp_path / "m")):
        before = vars(each) | {"warm_start": True, "n_estimators": 900}
        each.set_params(warm_start=True, n_estimators=900)
        with pytest.raises(ValueError, match="cannot continue a model that was grown anew"):
            each.fit(*rows)
        assert vars(each) == before
        each.set_params(warm_start=False, refit=False).fit(*rows)
        n_rounds = each.n_iter_
        assert each.set_params(warm_start=True).fit(*rows).n_iter_ >= n_rounds


def test_lines_of_progress_name_the_best_round_and_those_of_the_model(rows, capsys):
    model = LHBoostRegressor(random_state=0, verbose=1).fit(*rows)
    best = np.argmax(model.validation_score_)
    line = f"[lhtree] best round: {best}; refit: {model.n_iter_} rounds on all rows\n"
    assert capsys.readouterr().err.endswith(line)


def test_a_next_fit_forgets_that_the_model_was_refitted(rows):
    model = LHBoostRegressor(random_state=0).fit(*rows)
    model.set_params(early_stopping=False, n_estimators=4).fit(*rows)
    assert set(vars(model)) == set(vars(clone(model).fit(*rows)))
