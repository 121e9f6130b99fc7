"""Categories as codes: what forests on the exact engine read."""

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

from lhtree import LHForestClassifier

pd = pytest.importorskip("pandas")


def make_frame(n=240):
    """Return a frame with numbers, text, categories and gaps, and labels that follow both."""
    rng = np.random.default_rng(0)
    colour = rng.choice(np.array(["red", "green", "blue", None], dtype=object), n)
    size = rng.choice(["S", "M", "L"], n)
    age = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    frame = pd.DataFrame({"age": age, "colour": colour, "is_new": rng.random(n) < 0.5})
    frame["size"] = pd.Categorical(size, categories=["S", "M", "L", "XL"])
    y = np.where(colour == "red", 2, (np.nan_to_num(age) > 0) | (size == "L"))
    return frame, y.astype(int)


def test_exact_forests_read_categories_as_codes():
    frame, y = make_frame()
    model = LHForestClassifier(5, random_state=0).fit(frame, y)
    codes = model.encode_rows(frame)
    assert model.column_names_ == list(frame)
    assert_array_equal(model.column_source_, [0, 1, 2, 3])
    assert_array_equal(codes[:, [0, 2]], frame[["age", "is_new"]].astype(float))
    expected = frame["colour"].map({"blue": 0, "green": 1, "red": 2}).astype(float)
    assert_array_equal(codes[:, 1], expected)
    assert model.n_features_in_ == model.forest_.n_features == len(model.feature_importances_) == 4
    assert_allclose(model.feature_importances_.sum(), 1)
    assert model.score(frame, y) > 0.95
    by_hand = clone(model).set_params(categorical_features=[1, 3]).fit(codes, y)
    assert_array_equal(by_hand.predict_proba(codes), model.predict_proba(frame))


@pytest.mark.parametrize(("given", "n_codes"), [(None, 255), (255, 255), (40, 40)])
def test_the_rarest_of_many_categories_share_a_code(given, n_codes):
    rng = np.random.default_rng(0)
    number = np.concatenate([np.arange(300), rng.integers(0, 20, 2000)])
    frame = pd.DataFrame({"user": np.char.add("u", number.astype(str))})
    model = LHForestClassifier(3, max_categories=given, random_state=0).fit(frame, number % 3)
    assert len(np.unique(model.encode_rows(frame))) == n_codes
    rows = pd.DataFrame({"user": ["u0", "unheard of", None]})
    codes = model.encode_rows(rows)[:, 0]
    assert codes[0] == 0
    assert np.isnan(codes[1:]).all()  # what training lacked is missing
    assert_allclose(model.predict_proba(rows).sum(axis=1), 1)


def test_exact_forests_refuse_a_warm_start_with_other_categories():
    frame, y = make_frame()
    model = LHForestClassifier(2, warm_start=True, random_state=0).fit(frame, y)
    before = dict(vars(model.set_params(n_estimators=3)))
    with pytest.raises(ValueError, match="but the columns of the rows have changed"):
        model.fit(frame.assign(colour="violet"), y)
    assert all(vars(model)[name] is before[name] for name in before)
