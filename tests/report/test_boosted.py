"""Reports of boosted models: their numbers, and their pages without a browser."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn import metrics as sk

from boosted import CLASSIFIERS, NAMES, fit_boosted, make_frame
from lhtree import LHBoostClassifier, LHBoostRegressor
from lhtree.explain import explain_rows
from lhtree.report import write_report
from lhtree.report.numbers import (
    NumberPredictions,
    choose_number_rows,
    compute_number_metrics,
    draw_learning,
    draw_predictions,
    draw_residuals,
)
from report_pages import read_data


def report(name, folder, **options):
    """Return a fitted model, rows, their targets, and the path of a report about them."""
    model, _ = fit_boosted(name)
    X, y = make_frame()
    if name in CLASSIFIERS:
        n_classes = CLASSIFIERS[name][1]
        y = np.searchsorted(np.quantile(y, np.linspace(0, 1, n_classes + 1)[1:-1]), y)
    return model, X, y, write_report(model, X, y, folder / "r.html", **options)


@pytest.mark.parametrize("name", NAMES)
def test_contributions_add_up_in_the_decimals_shown(name, tmp_path):
    model, X, _, path = report(name, tmp_path, max_rows=9)
    data = read_data(path)
    unit = 10 ** data["digits"]
    explained = explain_rows(model, X)
    assert data["outputs"] == list(explained.output_names)
    assert len(data["rows"]) == 9
    for row in data["rows"]:
        for k, (base, features, values, n_other, other, score) in enumerate(row["why"]):
            assert base + sum(values) + other == score
            assert (other == 0) or n_other
            assert score == round(unit * explained.score[row["number"], k])
            contribution = explained.contribution[row["number"], k, features]
            assert_allclose(values, unit * contribution, atol=1.0)
            assert all(row["values"][str(j)].startswith(X.columns[j]) for j in features)
    largest = np.abs(explained.score).max()
    assert 1e4 <= unit * largest < 3e5 or largest < 1 / unit


@pytest.mark.parametrize("name", ["numbers", "three classes"])
def test_the_trees_of_the_page_are_those_of_the_model(name, tmp_path):
    model, X, _, path = report(name, tmp_path, max_rows=7, max_trees=4)
    data = read_data(path)
    number = [row["number"] for row in data["rows"]]
    leaf, (passes, start) = model.apply(X), model.decision_path(X)
    n_passing = np.asarray(passes.sum(axis=0)).ravel()
    assert [tree["number"] for tree in data["trees"]] == [0, 1, 2, 3]
    for each, tree in zip(data["trees"], model.trees_, strict=False):
        assert each["left"] == tree.left.tolist()
        assert each["leaf"] == leaf[number, tree.number].tolist()
        first = start[tree.number]
        assert each["counted"] == n_passing[first : first + tree.n_nodes].tolist()
        assert_allclose(each["value"], tree.value, rtol=1e-4)
        assert_allclose(each["fraction"], tree.fraction, rtol=1e-3)
        for node, (split, terms) in enumerate(zip(each["splits"], each["terms"], strict=True)):
            assert (split is None) == (tree.left[node] < 0)
            assert (terms is None) == (tree.column[node] >= 0 or tree.left[node] < 0)
            if terms is not None:
                assert terms[2][0] in (1, -1)
                coefficient = tree.split(node).coefficient[: len(terms[1])]
                assert_allclose(terms[1], coefficient / np.abs(coefficient[0]), rtol=1e-4)


def test_the_page_of_a_regressor_has_its_errors(tmp_path):
    model, X, y, path = report("numbers", tmp_path)
    text = path.read_text(encoding="utf-8")
    predicted = model.predict(X)
    assert f"<b>{sk.r2_score(y, predicted):.3f}</b><span>R2 on 400 rows" in text
    assert f"<b>{sk.root_mean_squared_error(y, predicted):.4g}</b><span>root of the mean" in text
    assert f"<b>{sk.mean_absolute_error(y, predicted):.4g}</b><span>mean absolute error" in text
    assert f"<b>{y.std():.4g}</b><span>RMSE of always predicting the mean" in text
    assert text.count('<circle class="point"') == 400
    assert "accuracy" not in text.split("<script")[0]
    data = read_data(path)
    assert data["classes"] == []
    for row in data["rows"]:
        assert row["true"] == pytest.approx(y[row["number"]], rel=1e-6)
        assert row["predicted"] == pytest.approx(predicted[row["number"]], rel=1e-6)
        assert "counterfactual" not in row
        assert "proba" not in row


def test_the_page_of_a_classifier_has_probabilities_and_counterfactuals(tmp_path):
    model, X, y, path = report("three classes", tmp_path, max_rows=5)
    text = path.read_text(encoding="utf-8")
    assert f"<b>{100 * model.score(X, y):.1f} %</b><span>accuracy on 400 rows" in text
    assert "The five most important features for the score of each class" in text
    probability = model.predict_proba(X)
    for row in read_data(path)["rows"]:
        assert_allclose(row["proba"], probability[row["number"]], atol=6e-5)
        assert row["counterfactual"]["predicted"] != row["predicted"]
    assert "By class" not in report("two classes", tmp_path)[3].read_text(encoding="utf-8")


def test_metrics_of_numbers_are_scikit_learns():
    rng = np.random.default_rng(0)
    true = rng.normal(size=200)
    predicted = true + rng.normal(size=200) / 3
    metrics = compute_number_metrics(NumberPredictions(true, predicted))
    assert metrics.r2 == pytest.approx(sk.r2_score(true, predicted))
    assert metrics.rmse == pytest.approx(sk.root_mean_squared_error(true, predicted))
    assert metrics.mae == pytest.approx(sk.mean_absolute_error(true, predicted))
    assert metrics.baseline == pytest.approx(true.std())
    assert dict(metrics.quantiles)[0.25] == pytest.approx(np.quantile(true - predicted, 0.25))
    assert np.isnan(compute_number_metrics(NumberPredictions(np.ones(3), np.ones(3))).r2)


def test_charts_have_each_row_once():
    true = np.arange(1000.0)
    predictions = NumberPredictions(true, true + np.where(true < 300, 2.0, -1.0))
    chart = draw_predictions(predictions)
    assert len(chart["points"]) == 400
    assert chart["n_hidden"] == 600
    assert (chart["low"], chart["high"]) == (0, 999)
    assert all(40 <= x <= 240 and 10 <= y <= 210 for x, y in chart["points"])
    bars = draw_residuals(predictions)
    assert sum(bar["count"] for bar in bars["bars"]) == 1000
    assert [bar["count"] for bar in bars["bars"] if bar["count"]] == [300, 700]
    assert bars["largest"] == 2
    assert draw_residuals(NumberPredictions(true, true))["largest"] == 1


def test_a_quarter_of_the_rows_explained_have_the_largest_errors():
    true = np.zeros(100)
    predictions = NumberPredictions(true, np.where(np.arange(100) % 9 == 0, 5.0, 0.1))
    chosen = choose_number_rows(predictions, 40)
    assert len(chosen) == len(set(chosen.tolist())) == 40
    assert set(range(0, 82, 9)) <= set(chosen.tolist())
    assert len(choose_number_rows(predictions, 1)) == 1
    assert choose_number_rows(predictions, 200).tolist() == list(range(100))


@pytest.fixture
def noisy():
    """Return rows of two classes that few rounds tell apart as well as can be."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 3))
    return X, X[:, 0] + rng.normal(size=300) > 0


@pytest.mark.parametrize("refit", [True, False])
def test_the_learning_curve_has_the_losses_of_the_rounds(refit, noisy):
    settings = {"early_stopping": True, "n_iter_no_change": 4, "refit": refit}
    model = LHBoostClassifier(**settings, random_state=0).fit(*noisy)
    curve = draw_learning(model)
    assert [line["name"] for line in curve["lines"]] == ["training", "validation"]
    for line, loss in zip(
        curve["lines"], (model.train_score_, model.validation_score_), strict=True
    ):
        assert line["last"] == -loss[-1]
        assert len(line["points"]) == len(loss) == curve["n_rounds"] + 1
    assert curve["best_round"] == np.argmax(model.validation_score_) == curve["n_rounds"] - 4
    assert curve["n_refitted"] == (model.n_iter_ if refit else None)
    assert curve["high"] == max(-model.train_score_.min(), -model.validation_score_.min())
    model = LHBoostClassifier(n_estimators=3).fit(noisy[0], np.zeros(300))
    assert draw_learning(model) is None


def test_the_page_says_which_rounds_the_model_has(noisy, tmp_path):
    model = LHBoostClassifier(n_iter_no_change=4, random_state=0).fit(*noisy)
    best, n_rounds = np.argmax(model.validation_score_), len(model.train_score_) - 1
    assert model.n_iter_ > best
    page = write_report(model, *noisy, tmp_path / "r.html").read_text("utf-8")
    words = f"rounds: lower is better. Round {best} was the best; the model was then grown anew "
    assert words + f"from all rows, with {model.n_iter_} rounds." in page
    model.set_params(refit=False, scoring="roc_auc").fit(*noisy)
    best, n_rounds = np.argmax(model.validation_score_), len(model.train_score_) - 1
    page = write_report(model, *noisy, tmp_path / "r.html").read_text("utf-8")
    assert "<p>The score (roc_auc) of the training and of the validation rows" in page
    assert f"each of {n_rounds} rounds: higher is better. The model keeps {best} of them." in page
    assert f"training: {model.train_score_[-1]:.4g}" in page


def test_a_report_of_a_boosted_model_is_small_and_written_the_same_again(tmp_path):
    model, X, y, path = report("five classes", tmp_path, max_rows=10)
    again = write_report(model, X, y, tmp_path / "again.html", max_rows=10)
    assert path.read_bytes() == again.read_bytes()
    assert path.stat().st_size < 1_000_000
    assert re.search("Nearest counterfactuals come from a short search", path.read_text("utf-8"))


@pytest.mark.parametrize(
    ("y", "message"),
    [
        (np.zeros(3), "y must have one number for each of the 10 rows"),
        (np.array(["a"] * 10), "y must be numbers: the model predicts numbers"),
        (np.full(10, np.nan), "y must be finite numbers; leave out rows without a target"),
    ],
)
def test_bad_targets_get_one_sentence_and_no_file(y, message, tmp_path):
    X = np.arange(10.0)[:, np.newaxis]
    model = LHBoostRegressor(n_estimators=2).fit(X, X[:, 0])
    with pytest.raises(ValueError, match=message):
        write_report(model, X, y, tmp_path / "r.html")
    assert list(tmp_path.iterdir()) == []
