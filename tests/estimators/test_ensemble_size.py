"""How many members a forest has, its shrinkage, and its probabilities."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import make_classification
from sklearn.metrics import log_loss

import lhtree
import reference
from lhtree import LHForestClassifier, check_forest
from lhtree.data.rows import TrainingRows
from lhtree.estimators import out_of_bag
from lhtree.model.prediction import normalize_scores
from lhtree.training import ensemble_size, shrinkage
from lhtree.training.calibration import fit_exponent


@pytest.fixture(scope="module")
def noisy():
    """Return rows of which a third has a random label."""
    return make_classification(600, 8, n_informative=4, flip_y=0.35, random_state=0)


@pytest.fixture(scope="module")
def three():
    """Return rows of three classes."""
    return make_classification(400, 10, n_informative=5, n_classes=3, random_state=1)


def assert_same_trees(a, b):
    for name, array in vars(a.forest_).items():
        assert_array_equal(array, getattr(b.forest_, name), name)


# ---- Number of members


def test_the_size_of_the_table_decides_the_number_of_members(three):
    assert ensemble_size.count_members(1_500_000, 1, 1) == 100
    assert ensemble_size.count_members(200_000, 2, 5) == 75
    assert ensemble_size.count_members(10**9, 1, 1) == 15
    model = LHForestClassifier(random_state=0).fit(*three)
    assert model.n_estimators is None
    assert model.n_estimators_ == 100
    assert len(model.trees_) == 300
    assert_same_trees(model, LHForestClassifier(100, random_state=0).fit(*three))


def test_van_der_corput_fills_the_interval_wherever_it_ends():
    beta = ensemble_size.schedule_beta(1.0, 0, 64, None)
    for end in (8, 16, 64):
        assert_array_equal(np.sort(beta[:end]), np.arange(end) / end)
    assert ensemble_size.schedule_beta(0.5, 6, 8, None) == (0.1875, 0.4375)
    assert ensemble_size.schedule_beta(0.5, 0, 1, 1) == (0.5,)
    assert ensemble_size.schedule_beta(0.5, 2, 4, 4) == (0.25, 0.375)


@pytest.mark.parametrize(
    ("scores", "enough"),
    [
        ([], False),
        ([0.9], False),
        ([0.9, 0.9], False),
        ([0.9, 0.9, 0.9], True),
        ([0.9, 0.9009, 0.9009], True),
        ([0.9, 0.9009, 0.902], False),
        ([0.9, 0.95, 0.949], False),
        ([0.9, 0.95, 0.949, 0.9505], True),
    ],
)
def test_two_batches_without_improvement_are_enough(scores, enough):
    assert ensemble_size.is_enough(scores) is enough


@pytest.mark.filterwarnings("ignore:.*seen by every member:UserWarning")
def test_members_are_added_until_the_out_of_bag_score_stays(three):
    X, y = three
    model = LHForestClassifier("auto", beta=0.5, oob_score=True, random_state=0).fit(X, y)
    n = model.n_estimators_
    assert 60 <= n < 500
    assert n % 20 == 0
    # The rule in plain words, from forests of each size.
    scores = []
    for t in range(20, n + 1, 20):
        part = LHForestClassifier(
            "auto", max_estimators=t, beta=0.5, shrinkage=0, oob_score=True, random_state=0
        ).fit(X, y)
        assert part.n_estimators_ == t
        scores.append(part.oob_score_)
    assert ensemble_size.is_enough(scores)
    assert not ensemble_size.is_enough(scores[:-1])
    plain = part.forest_
    assert_array_equal(plain.left, model.forest_.left)
    two = clone(model).set_params(n_jobs=2).fit(X, y)
    assert_same_trees(model, two)


def test_growing_on_by_score_adds_to_the_members_there(three):
    X, y = three
    model = LHForestClassifier("auto", max_estimators=30, warm_start=True, random_state=0)
    model.fit(X, y)
    assert model.n_estimators_ == 30
    old = model.forest_
    model.set_params(max_estimators=70).fit(X, y)
    assert 50 <= model.n_estimators_ <= 70
    assert_array_equal(model.forest_.share[: len(old.share)], old.share)
    check_forest(model.forest_)
    with pytest.raises(ValueError, match="max_estimators=10 must be at least"):
        model.set_params(max_estimators=10).fit(X, y)


def test_growing_by_score_reports_every_member_once(three):
    pytest.importorskip("sklearn.callback", reason="scikit-learn 1.9 has callbacks")
    heard = []

    class Recorder:
        def setup(self, estimator, context):
            pass

        def on_fit_task_begin(self, estimator, context):
            pass

        def on_fit_task_end(self, estimator, context):
            heard.append((context.task_name, context.task_id))

        def teardown(self, estimator, context):
            pass

    model = LHForestClassifier("auto", max_estimators=45, random_state=0)
    model.set_callbacks(Recorder()).fit(*three)
    assert heard == [*(("member", i) for i in range(45)), ("fit", 0)]


def test_growing_by_score_needs_rows_left_out(three):
    with pytest.raises(ValueError, match="n_estimators='auto' needs rows that are left out"):
        LHForestClassifier("auto", max_samples=None).fit(*three)


# ---- Shrinkage


def shrink_plainly(tree, strength):
    """Return the shares of one tree, node by node from the root."""
    share = tree.share.copy()
    for node in np.flatnonzero(tree.left >= 0):
        factor = tree.weight_sum[node] / (tree.weight_sum[node] + strength)
        for child in (tree.left[node], tree.left[node] + 1):
            step = tree.share[child] - tree.share[node]
            share[child] = share[node] + factor * step
    return share


@pytest.mark.parametrize("strength", [1.0, 30.0])
def test_shares_move_towards_those_above(three, strength):
    X, y = three
    plain = LHForestClassifier(4, shrinkage=0, random_state=0).fit(X, y)
    model = LHForestClassifier(4, shrinkage=strength, random_state=0).fit(X, y)
    assert model.shrinkage_ == strength
    check_forest(model.forest_)
    for before, after in zip(plain.trees_, model.trees_, strict=True):
        expected = shrink_plainly(before, strength)
        assert_allclose(after.share, expected, rtol=0, atol=1e-15)
        assert ((after.share >= 0) & (after.share <= 1)).all()
        is_leaf = before.left < 0
        assert_array_equal(after.threshold[is_leaf], after.share[is_leaf])
        assert_array_equal(after.threshold[~is_leaf], before.threshold[~is_leaf])
    plain.forest_ = shrinkage.shrink(plain.forest_, strength)
    assert_array_equal(plain.predict_proba(X), model.predict_proba(X))


def find_left_out_error(strength, X, y, n_members):
    """Return squared errors of out-of-bag votes, row by row."""
    model = LHForestClassifier(n_members, shrinkage=strength, oob_score=True, random_state=0)
    return np.square(model.fit(X, y).oob_decision_function_ - np.eye(2)[y]).sum(axis=1)


@pytest.mark.parametrize("voting", ["membership", "margin"])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_votes_under_several_strengths_are_those_of_shrunk_forests(noisy, voting, kind):
    X, y = noisy
    X = kind(np.round(X))  # leaves of equal rows have shares between 0 and 1
    model = LHForestClassifier(4, max_depth=4, voting=voting, random_state=0).fit(X, y)
    how = {"n_classes": 2, "by_margin": voting == "margin", "n_trees_per_member": 1}
    bits = model._find_left_out().bits
    found = model.forest_.vote_shrunk(X, (0.0, 1.0, 30.0), left_out=bits, **how)
    for strength, *sums in zip((0.0, 1.0, 30.0), *found, strict=True):
        shrunk = shrinkage.shrink(model.forest_, strength)
        for part, expected in zip(sums, shrunk.vote(X, left_out=bits, **how), strict=True):
            assert_array_equal(part, expected)


@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_errors_of_shrunk_votes_do_not_depend_on_pieces(noisy, kind, monkeypatch):
    X, y = noisy
    model = LHForestClassifier(10, random_state=0).fit(kind(X), y)
    rows = TrainingRows(kind(X), y.astype(np.int32), None, None)
    whole = model._measure_shrunk(rows, model._find_left_out())
    monkeypatch.setattr(out_of_bag, "MOST_AT_ONCE", 64)
    assert_array_equal(model._measure_shrunk(rows, model._find_left_out()), whole)


@pytest.mark.filterwarnings("ignore:.*seen by every member:UserWarning")
def test_out_of_bag_votes_choose_the_shrinkage(noisy):
    X, y = noisy
    model = LHForestClassifier(40, random_state=0).fit(X, y)
    is_out = np.ones((40, len(y)), dtype=bool)
    for i in range(40):
        is_out[i, reference.draw_rows(model._seed, i, 600, 480, False)[0]] = False
    half, whole = is_out[:20].sum(axis=0), is_out.sum(axis=0)
    kept = half > 0
    errors = []
    for strength in shrinkage.STRENGTHS:
        few, every = (find_left_out_error(strength, X, y, t)[kept] for t in (20, 40))
        # Per row: a constant, plus another one divided by the number of votes.
        slope = (few - every).sum() / (1 / half[kept] - 1 / whole[kept]).sum()
        errors.append((every - slope * (1 / whole[kept] - 1 / 40)).sum())
    chosen = shrinkage.STRENGTHS.index(model.shrinkage_)
    assert chosen == np.argmin(errors)
    assert model.shrinkage_ > 0  # labels are noisy


def test_shrinkage_is_zero_where_nothing_can_choose_it(noisy):
    X, y = noisy
    assert LHForestClassifier(10, preset="paper").fit(X, y).shrinkage_ == 0
    assert LHForestClassifier(10, max_samples=None).fit(X, y).shrinkage_ == 0
    assert LHForestClassifier(1).fit(X, y).shrinkage_ == 0
    all_drawn = LHForestClassifier(2, bootstrap=True, max_samples=50_000, random_state=0)
    assert all_drawn.fit(X, y).shrinkage_ == 0


def test_shrinkage_helps_where_labels_are_noisy(noisy):
    X, y = noisy
    fit = {
        name: LHForestClassifier(60, oob_score=True, random_state=0, shrinkage=name).fit(X, y)
        for name in (0, "auto")
    }
    assert fit["auto"].oob_score_ > fit[0].oob_score_ + 0.01


def test_the_error_counts_rows_by_their_weight():
    proba, code = np.array([[0.2, 0.8], [0.6, 0.4]]), np.array([1, 1], dtype=np.int32)
    error = shrinkage.measure_error(proba, code)
    assert_allclose(error, [0.08, 0.72])
    same = (np.array([1, 2]),) * 2
    for weight in ([1.0, 1.0], [3.0, 1.0]):
        found = shrinkage.extrapolate_error((error, error), same, 2, np.array(weight))
        assert_allclose(found, weight @ error)


# ---- Probabilities


def test_the_exponent_has_the_least_log_loss():
    rng = np.random.default_rng(0)
    score = rng.uniform(0.01, 1, (5000, 3))
    true = normalize_scores(score, 0.0, 2.5)
    code = (true.cumsum(axis=1) < rng.uniform(size=(5000, 1))).sum(axis=1)
    for weight in (None, rng.integers(1, 4, 5000).astype(float)):
        best = fit_exponent(np.log(score), code, weight)
        assert abs(best - 2.5) < 0.3

        def loss(exponent, weight=weight):
            return log_loss(code, normalize_scores(score, 0, exponent), sample_weight=weight)

        assert loss(best) <= min(loss(best * factor) for factor in (0.99, 1.01)) + 1e-12


def test_the_exponent_stays_in_bounds():
    certain = np.log([[0.9, 0.1], [0.1, 0.9]])
    assert fit_exponent(certain, np.array([0, 1]), None) == pytest.approx(20, abs=1e-3)
    assert fit_exponent(certain, np.array([1, 0]), None) == pytest.approx(0.01, abs=1e-3)
    assert np.isfinite(fit_exponent(np.zeros((3, 2)), np.array([0, 1, 1]), None))


def test_calibration_of_votes_that_know_nothing_keeps_the_labels():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(300, 3)), rng.integers(0, 3, 300)
    for seed in range(4):
        model = LHForestClassifier(4, calibration="oob", random_state=seed).fit(X, y)
        assert model.calibration_[1] >= 0.01
        proba = model.predict_proba(X)
        assert_array_equal(model.classes_[proba.argmax(axis=1)], model.predict(X))


def test_members_that_leave_out_no_judge_are_grown_all_the_same(monkeypatch):
    monkeypatch.setattr("lhtree.estimators.out_of_bag.MOST_JUDGES", 2)
    X = np.arange(60.0).reshape(-1, 1)
    model = LHForestClassifier("auto", max_estimators=1, max_samples=59, random_state=1)
    rows = TrainingRows(X, X[:, 0], None, X)
    _, left_out = model.fit(X, X[:, 0] > 30)._find_judges(rows, None)
    assert not left_out.n_voters.any()


@pytest.mark.parametrize("table", ["noisy", "three"])
def test_calibration_keeps_labels_and_lowers_the_log_loss(table, request):
    X, y = request.getfixturevalue(table)
    train, test = np.arange(len(y)) % 3 != 0, np.arange(len(y)) % 3 == 0
    plain = LHForestClassifier(60, random_state=0).fit(X[train], y[train])
    model = LHForestClassifier(60, calibration="oob", random_state=0).fit(X[train], y[train])
    offset, exponent = model.calibration_
    assert not hasattr(plain, "calibration_")
    assert offset == 0.5 / 60
    assert_array_equal(model.predict(X), plain.predict(X))
    # The formula, from the plain scores.
    sums = model._vote(np.ascontiguousarray(X))
    q = reference_scores(sums, 60)
    expected = (q + offset) ** exponent
    assert_allclose(
        model.predict_proba(X), expected / expected.sum(axis=1, keepdims=True), rtol=1e-9
    )
    before, after = (log_loss(y[test], m.predict_proba(X[test])) for m in (plain, model))
    assert after < before + 0.01


def reference_scores(sums, n_members):
    """Return q as SPEC defines it."""
    vote, distance = sums[0] / n_members, sums[1] / n_members
    if vote.shape[1] == 2:
        vote = np.column_stack([1 - vote[:, 1], vote[:, 1]])
        distance = np.column_stack([-distance[:, 1], distance[:, 1]])
    return vote + 1e-6 * (1 + distance / (1 + np.abs(distance))) / 2


def test_calibration_needs_memberships_and_rows_left_out(three):
    with pytest.raises(ValueError, match="calibration='oob' needs voting='membership'"):
        LHForestClassifier(3, calibration="oob", voting="margin").fit(*three)
    with pytest.raises(ValueError, match="calibration='oob' needs rows that are left out"):
        LHForestClassifier(3, calibration="oob", max_samples=None).fit(*three)


def test_judges_are_every_so_manieth_row(three):
    X, y = three
    model = LHForestClassifier(5, random_state=0).fit(X, y)
    is_out = np.ones((5, len(y)), dtype=bool)
    for i in range(5):
        is_out[i, reference.draw_rows(model._seed, i, 400, 320, False)[0]] = False
    whole = model._find_left_out()
    assert_array_equal(whole.n_voters, is_out.sum(axis=0))
    rows = TrainingRows(X, y.astype(np.int32), None, np.arange(len(X)))
    for step in (1, 3, 7):
        some, left_out = rows.take_every(step), whole.take_every(step)
        assert_array_equal(some.number, np.arange(0, 400, step))
        assert_array_equal(left_out.n_voters, is_out[:, ::step].sum(axis=0))
        assert_array_equal(
            model._vote_left_out(some, left_out), model._vote_left_out(rows, whole)[::step]
        )


def test_a_saved_model_keeps_its_calibration_and_shrinkage(noisy, tmp_path):
    X, y = noisy
    model = LHForestClassifier(30, calibration="oob", random_state=0).fit(X, y)
    lhtree.save(model, tmp_path / "model.safetensors")
    loaded = lhtree.load(tmp_path / "model.safetensors")
    assert loaded.shrinkage_ == model.shrinkage_
    assert_array_equal(loaded.calibration_, model.calibration_)
    assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
