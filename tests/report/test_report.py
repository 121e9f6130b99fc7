"""The report: its numbers and its file."""

import re
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from numpy.testing import assert_allclose
from sklearn import metrics as sk
from sklearn.datasets import load_digits, load_wine
from sklearn.exceptions import NotFittedError

import lhtree.report
from lhtree import LHForestClassifier, LHTClassifier
from lhtree.explain import explain_rows, nearest_counterfactual, split_view
from lhtree.explain.row_text import describe_values
from lhtree.report import write_report
from lhtree.report.metrics import Predictions, compute_metrics
from lhtree.report.render import _format_percent
from lhtree.report.rows import choose_rows, round_to_sum
from report_pages import EVIL, EVIL_CLASS, read_data

WRONG = load_wine(as_frame=True).data.iloc[:, :2]


# What the page says


@pytest.mark.parametrize("form", ["csr_array", "csc_array", "coo_array", "coo_matrix"])
def test_a_sparse_table_is_reported_without_a_dense_copy(form, tmp_path, monkeypatch):
    X = scipy.sparse.coo_array(scipy.sparse.random(200, 30, 0.1, random_state=0))
    y = np.ravel(X.sum(axis=1) > 1.5)
    model = LHTClassifier().fit(X, y)
    dense = write_report(model, X.toarray(), y, tmp_path / "dense.html", max_rows=3)
    most = []
    encode = type(model).encode_rows
    monkeypatch.setattr(type(model), "encode_rows", lambda m, x: most.append(x) or encode(m, x))
    monkeypatch.setattr(lhtree.report, "MOST_COUNTED", 20)
    table = getattr(scipy.sparse, form)(X)
    sparse = write_report(model, table, y, tmp_path / "sparse.html", max_rows=3)
    assert max(part.shape[0] for part in most) < 30
    assert f"{len(y):,} rows" in sparse.read_text(encoding="utf-8")
    assert dense.stat().st_size > 0


def test_metrics_are_scikit_learns():
    rng = np.random.default_rng(0)
    probability = rng.dirichlet([0.5] * 4, size=300)
    y = rng.integers(0, 4, 300)
    predicted = probability.argmax(axis=1)
    metrics = compute_metrics(Predictions(y, predicted, probability))
    assert metrics.accuracy == pytest.approx(sk.accuracy_score(y, predicted))
    assert metrics.log_loss == pytest.approx(sk.log_loss(y, probability))
    one_hot = np.eye(4)[y]
    assert metrics.brier == pytest.approx(np.square(probability - one_hot).sum(axis=1).mean())
    assert (metrics.confusion == sk.confusion_matrix(y, predicted)).all()
    precision, recall, f1, _ = sk.precision_recall_fscore_support(y, predicted)
    assert_allclose([metrics.precision, metrics.recall, metrics.f1], [precision, recall, f1])
    place = np.digitize(probability.max(axis=1), np.arange(0.1, 1, 0.1))
    gaps = [
        abs((predicted == y)[place == b].mean() - probability.max(axis=1)[place == b].mean())
        * (place == b).mean()
        for b in np.unique(place)
    ]
    assert metrics.reliability.error == pytest.approx(sum(gaps))


def test_the_page_has_the_metrics_of_all_rows(model, wine, page):
    X, y = wine
    text = page.read_text(encoding="utf-8")
    assert f"<b>{100 * model.score(X, y):.1f} %</b><span>accuracy on 178 rows" in text
    for name, count in zip(*np.unique(y, return_counts=True), strict=True):
        assert re.search(rf"{name.replace('_', '_<wbr>')}</th><td>{count}</td>", text)


def test_the_page_predicts_what_the_model_does_where_probabilities_are_equal(wine, tmp_path):
    X, y = wine
    model = LHForestClassifier(5, calibration="oob", random_state=0).fit(X, y)
    model.calibration_ = np.array([0.1, 0.0])  # all classes are as likely
    assert (model.predict_proba(X).argmax(axis=1) == 0).all()
    path = write_report(model, X, y, tmp_path / "equal.html", max_rows=20)
    text = path.read_text(encoding="utf-8")
    assert f"<b>{100 * model.score(X, y):.1f} %</b><span>accuracy on 178 rows" in text
    for row in read_data(path)["rows"]:
        label = model.classes_[row["predicted"]]
        assert label == model.predict(X.iloc[[row["number"]]])[0]


def test_one_hundred_percent_means_all():
    assert [_format_percent(value) for value in (0.9991, 0.9996, 1.0)] == [
        "99.9 %",
        ">99.9 %",
        "100.0 %",
    ]


def test_the_page_says_what_it_does_not_show(wine, model, page, tmp_path):
    text = page.read_text(encoding="utf-8")
    assert "Rows: 40 of 178 are explained" in text
    assert "the 10 strongest of 13" in text
    assert "Trees: the first" not in text
    path = write_report(model, *wine, tmp_path / "few.html", max_rows=3, max_trees=2)
    assert "Trees: the first 2 of 3 are shown" in path.read_text(encoding="utf-8")
    data = read_data(path)
    assert [tree["number"] for tree in data["trees"]] == [0, 1]
    assert len(data["rows"]) == 3


def test_contributions_add_up_in_whole_units_to_the_vote(model, wine, page):
    X, _ = wine
    data = read_data(page)
    number = [row["number"] for row in data["rows"]]
    explained = explain_rows(model, X.iloc[number])
    for i, row in enumerate(data["rows"]):
        for k, (base, features, values, n_other, other, vote) in enumerate(row["why"]):
            assert base + sum(values) + other == vote
            assert (other == 0) or n_other
            assert vote == round(10_000 * explained.score[i, k])
            assert_allclose(values, 10_000 * explained.contribution[i, k, features], atol=1.0)
            contribution = explained.contribution[i, k]
            others = contribution.sum() - contribution[features].sum()
            assert other == pytest.approx(10_000 * others, abs=1.5)  # base and vote are rounded
            assert all(row["values"][str(j)].startswith(X.columns[j]) for j in features)


def test_distributions_and_leaves_are_those_of_the_rows(model, wine, page):
    X, y = wine
    data = read_data(page)
    leaf = model.apply(X)
    number = [row["number"] for row in data["rows"]]
    for tree in data["trees"]:
        assert tree["leaf"] == leaf[number, tree["number"]].tolist()
        for node, split in enumerate(tree["splits"]):
            if split is None:
                assert tree["left"][node] < 0
                continue
            view = split_view(model, tree["number"], node, X, y)
            threshold, _, kind, extremes, pure, (_, _, positive, negative) = split
            assert threshold == pytest.approx(view.threshold, rel=1e-4)
            assert_allclose(extremes, view.extremes, rtol=1e-4)
            assert kind == view.threshold_kind
            assert sum(positive) == view.is_positive.sum()
            assert sum(negative) == (~view.is_positive).sum()
            sides = [side for side, _ in pure]
            assert sides == {"both": ["left", "right"], "none": []}.get(
                view.pure_side, [view.pure_side]
            )


def test_counterfactuals_of_single_trees_are_the_proven_ones(model, wine, page):
    X, _ = wine
    for row in read_data(page)["rows"][:4]:
        nearest = nearest_counterfactual(model, X.iloc[[row["number"]]])
        assert row["counterfactual"]["message"] == nearest.message
        names = [name for name, *_ in row["counterfactual"]["changes"]]
        changed = {name for name, by in zip(X.columns, nearest.change, strict=True) if by != 0}
        assert set(names) <= changed
        assert len(names) == min(len(changed), 10)


@pytest.mark.parametrize("max_rows", [1, 7, 50, 99, 100, 200])
def test_half_of_the_rows_explained_may_be_wrong_ones(max_rows):
    y = np.zeros(100, dtype=int)
    predicted = (np.arange(100) % 4 == 0).astype(int)  # 25 wrong
    chosen = choose_rows(y, predicted, max_rows)
    assert len(chosen) == min(max_rows, 100)
    assert len(set(chosen.tolist())) == len(chosen)
    n_wrong = int(predicted[chosen].sum())
    assert n_wrong == min(25, max(max_rows // 2, max_rows - 75))


def test_rounded_numbers_keep_their_sum():
    rng = np.random.default_rng(0)
    for _ in range(200):
        value = rng.normal(size=rng.integers(1, 12)) * 100
        total = round(value.sum())
        whole = round_to_sum(value, total)
        assert sum(whole) == total
        error = np.array(whole) - value
        assert np.abs(error).max() <= 1
        is_up = error > 0
        if is_up.any() and not is_up.all():  # the largest remainders are rounded up
            assert (value % 1)[is_up].min() >= (value % 1)[~is_up].max()


def test_a_forest_report_is_small_and_written_the_same_again(wine, tmp_path):
    X, y = load_digits(return_X_y=True)
    model = LHForestClassifier(n_estimators=10, random_state=0).fit(X, y)
    first = write_report(model, X, y, tmp_path / "a.html", max_rows=4)
    second = write_report(model, X, y, tmp_path / "b.html", max_rows=4)
    assert first.read_bytes() == second.read_bytes()
    assert first.stat().st_size < 1_000_000


@pytest.mark.parametrize(
    ("X", "y"),
    [
        (np.arange(30.0).reshape(15, 2), np.repeat([False, True], [7, 8])),
        (np.arange(6.0).reshape(3, 2), np.array(["only"] * 3)),
        (np.zeros((4, 1)), np.array([3, 7, 3, 7])),
    ],
    ids=["two classes", "one class", "no split"],
)
def test_small_models_have_a_report(X, y, tmp_path):
    data = read_data(write_report(LHTClassifier().fit(X, y), X, y, tmp_path / "r.html"))
    assert len(data["rows"]) == len(y)
    assert data["classes"] == [str(label) for label in np.unique(y)]


def test_missing_values_add_nothing_and_are_named(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    y = (X[:, 0] + X[:, 1] > 0).astype(int)
    X[::3, 1] = np.nan
    model = LHTClassifier().fit(X, y)
    data = read_data(write_report(model, X, y, tmp_path / "r.html"))
    for row in data["rows"]:
        assert ("1" in row["values"]) == (row["number"] % 3 != 0)
    assert describe_values(explain_rows(model, X), 3)[1] == "missing"


def test_categories_and_shrinkage_are_described_as_they_are(tmp_path):
    rng = np.random.default_rng(0)
    X = pd.DataFrame({"size": rng.normal(size=200), "colour": rng.choice(["red", "<b>"], 200)})
    y = np.where((X["colour"] == "red") ^ (rng.random(200) < 0.2), "yes", "no")
    model = LHForestClassifier(n_estimators=5, random_state=0).fit(X, y)
    data = read_data(write_report(model, X, y, tmp_path / "r.html", max_rows=20))
    assert data["columns"] == model.column_names_
    assert data["is_shrunk"] == (model.shrinkage_ > 0)
    for row in data["rows"]:
        assert row["values"]["1"] == f"colour = {X['colour'][row['number']]}"
        assert row["counterfactual"]["predicted"] in (None, 1 - row["predicted"])


# Its file


def test_names_with_html_are_escaped_in_the_file(evil_page):
    text = evil_page.read_text(encoding="utf-8")
    assert EVIL not in text
    assert "<img" not in text
    assert text.count("</script>") == 2
    assert text.count("<title>") == text.count("</title>") == 1
    data = read_data(evil_page)
    assert EVIL in data["columns"]
    assert EVIL_CLASS in data["classes"]


def test_the_page_allows_no_scripts_but_its_own(page):
    policy = re.search(r'Policy" content="([^"]*)"', page.read_text(encoding="utf-8"))[1]
    assert policy.startswith("default-src 'none'; ")
    assert "unsafe" not in policy
    assert "http" not in policy


def test_an_old_report_stays_until_the_new_one_is_complete(model, wine, tmp_path, monkeypatch):
    path = tmp_path / "report.html"
    path.write_text("old")

    def fail(*_):
        raise MemoryError("the new page is not complete")

    monkeypatch.setattr(lhtree.report, "render", fail)
    with pytest.raises(MemoryError):
        write_report(model, *wine, path, max_rows=1)
    assert path.read_text() == "old"
    monkeypatch.undo()
    write_report(model, *wine, path, max_rows=1)
    assert path.read_text().startswith("<!doctype html>")
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"model": LHTClassifier()}, NotFittedError, "not fitted"),
        ({"model": None}, TypeError, "got NoneType"),
        ({"y": ["class_0"]}, ValueError, "one label for each of the 178 rows"),
        ({"y": ["class_9"] * 178}, ValueError, "y has class_9, but"),
        ({"X": WRONG}, ValueError, "feature names|columns"),
        ({"max_trees": 0}, ValueError, "max_trees must be .* got 0"),
        ({"max_rows": 1.5}, ValueError, "max_rows must be .* got 1.5"),
        ({"title": 3}, TypeError, "title must be a string or None, got 3"),
        ({"path": "no/such/folder/r.html"}, FileNotFoundError, "make no/such/folder first"),
        ({"path": "."}, IsADirectoryError, "is a folder"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_bad_input_gets_one_sentence_and_no_file(
    model, wine, tmp_path, monkeypatch, change, error, message
):
    monkeypatch.chdir(tmp_path)
    arguments = {"model": model, "X": wine[0], "y": wine[1], "path": "r.html"} | change
    with pytest.raises(error, match=message):
        write_report(**arguments)
    assert list(tmp_path.iterdir()) == []


def test_without_jinja_the_import_names_the_extra():
    code = "import sys; sys.modules['jinja2'] = None; import lhtree.report"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ImportError: lhtree.report needs Jinja2: pip install 'lhtree[report]'." in run.stderr
