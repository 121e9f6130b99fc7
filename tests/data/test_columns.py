"""Frames as they are: categories, their encoding, and every type of column."""

import decimal
import pickle
import tracemalloc

import numpy as np
import pytest
from numpy.testing import assert_allclose, assert_array_equal
from sklearn.base import clone

import lhtree
from forests import assert_same_model
from lhtree import LHForestClassifier, LHTClassifier
from lhtree.data import frames
from lhtree.data.columns import COLUMNS_AT_ONCE, ROWS_AT_ONCE, Category, Columns
from lhtree.explain import explain_rows, nearest_counterfactual

pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")
pa = pytest.importorskip("pyarrow")
nw = pytest.importorskip("narwhals.stable.v2")

COLOURS = ["red", "green", "blue", None]


def make_frame(n=240):
    """Return a frame with numbers, text, categories and gaps, and labels that follow both."""
    rng = np.random.default_rng(0)
    colour = rng.choice(COLOURS, n)
    size = rng.choice(["S", "M", "L"], n)
    age = np.where(rng.random(n) < 0.1, np.nan, rng.normal(size=n))
    frame = pd.DataFrame({"age": age, "colour": colour, "is_new": rng.random(n) < 0.5})
    frame["size"] = pd.Categorical(size, categories=["S", "M", "L", "XL"])
    y = np.where(colour == "red", 2, (np.nan_to_num(age) > 0) | (size == "L"))
    return frame, y.astype(int)


def encode_by_hand(frame):
    columns = {"age": frame["age"]}
    columns |= {f"colour={value}": frame["colour"] == value for value in ("blue", "green", "red")}
    columns["is_new"] = frame["is_new"]
    columns |= {f"size={value}": frame["size"] == value for value in ("L", "M", "S")}
    return pd.DataFrame(columns).astype(float)


# Before pandas 3 "str" made the text "nan" of a missing value.
TEXT = "str" if int(pd.__version__.split(".")[0]) >= 3 else "string"


def to_arrow(frame, **types):
    """Return a table of pyarrow in which some columns have other types."""
    table = pa.Table.from_pandas(frame, preserve_index=False)
    for name, dtype in types.items():
        place = table.column_names.index(name)
        table = table.set_column(place, name, table[name].cast(dtype))
    return table


def to_views(frame):
    """Return a table of pyarrow with views of text, which newer versions can cast."""
    try:
        return to_arrow(frame, colour=pa.string_view())
    except pa.ArrowNotImplementedError:
        pytest.skip("this version of pyarrow cannot cast text to views")


def to_chunks(frame):
    """Return a table of pyarrow whose chunks have dictionaries of their own."""
    parts = frame[:50], frame[50:51], frame[51:]
    return pa.concat_tables([to_arrow(part, colour=TEXT_OF_ARROW) for part in parts])


TEXT_OF_ARROW = pa.dictionary(pa.int32(), pa.string())
FORMS = {
    "pandas": lambda frame: frame,
    "pandas with types of Arrow": lambda frame: to_arrow(frame, size=pa.string()).to_pandas(
        types_mapper=pd.ArrowDtype
    ),
    "pandas with a dictionary of Arrow": lambda frame: to_arrow(
        frame, colour=TEXT_OF_ARROW
    ).to_pandas(types_mapper=pd.ArrowDtype),
    "polars": lambda frame: pl.from_pandas(frame),
    "polars with categories": lambda frame: pl.from_pandas(frame).with_columns(
        pl.col("colour").cast(pl.Categorical), pl.col("size").cast(pl.Enum(["L", "S", "M"]))
    ),
    "pyarrow": to_arrow,
    "pyarrow with plain text": lambda frame: to_arrow(frame, size=pa.string()),
    "pyarrow with large text": lambda frame: to_arrow(frame, colour=pa.large_string()),
    "pyarrow with a dictionary": lambda frame: to_arrow(frame, colour=TEXT_OF_ARROW),
    "pyarrow in chunks": to_chunks,
    "pyarrow batch": lambda frame: to_arrow(frame).combine_chunks().to_batches()[0],
    "pyarrow with views": to_views,
    "pandas with views": lambda frame: frame.assign(
        colour=pd.array(frame["colour"], dtype=pd.ArrowDtype(pa.string_view()))
    ),
    "narwhals": lambda frame: nw.from_native(pl.from_pandas(frame)),
}

MODELS = [
    LHTClassifier(),
    LHForestClassifier(5, contrast="standardized", random_state=0),
    LHForestClassifier(5, preset="paper", random_state=0),
]


@pytest.mark.parametrize("model", MODELS, ids=str)
def test_a_frame_is_the_table_of_its_indicators(model):
    frame, y = make_frame()
    by_hand = encode_by_hand(frame)
    model.fit(frame, y)
    assert model.column_names_ == list(by_hand.columns)
    assert_array_equal(model.column_source_, [0, 1, 1, 1, 2, 3, 3, 3])
    assert_array_equal(model.encode_rows(frame), by_hand.to_numpy())
    assert model.forest_.n_features == len(model.column_names_)
    assert model.n_features_in_ == len(model.feature_importances_) == 4
    assert_allclose(model.feature_importances_.sum(), 1)
    assert model.score(frame, y) > 0.95


def test_indicators_keep_their_units_in_a_contrast_of_means():
    frame, y = make_frame()
    forest = LHTClassifier().fit(frame, y).forest_
    assert_array_equal(forest.column_mean[[1, 2, 3, 5, 6, 7]], 0)
    assert_array_equal(forest.column_std[[1, 2, 3, 5, 6, 7]], 1)
    assert_allclose(forest.column_mean[[0, 4]], encode_by_hand(frame).mean()[["age", "is_new"]])


@pytest.mark.parametrize(
    "model",
    [LHTClassifier(contrast="standardized"), MODELS[1]],
    ids=str,
)
def test_a_frame_gives_the_model_of_its_indicators_by_hand(model):
    frame, y = make_frame()
    by_hand = encode_by_hand(frame).to_numpy()
    proba = model.fit(frame, y).predict_proba(frame)
    assert_array_equal(proba, model.fit(by_hand, y).predict_proba(by_hand))


@pytest.mark.parametrize(
    "change",
    [
        lambda frame: frame.astype({"colour": "category"}),
        lambda frame: frame.astype({"colour": "string", "size": "string"}),
        lambda frame: frame.astype({"colour": TEXT, "size": "object", "is_new": "boolean"}),
        lambda frame: frame.astype({"age": "Float64", "is_new": "Int64"}),
        lambda frame: frame.astype({"age": object, "is_new": np.int8}),
    ],
)
def test_the_type_of_a_frame_makes_no_difference(change):
    frame, y = make_frame()
    model = LHForestClassifier(3, random_state=0).fit(frame, y)
    other = clone(model).fit(change(frame), y)
    assert_array_equal(other.predict_proba(change(frame)), model.predict_proba(frame))
    assert other.column_names_ == model.column_names_
    assert_array_equal(model.encode_rows(change(frame)), model.encode_rows(frame))


@pytest.mark.parametrize("form", FORMS)
def test_all_libraries_give_the_same_model(form):
    frame, y = make_frame()
    X = FORMS[form](frame)
    model = LHForestClassifier(3, random_state=0).fit(frame, y)
    other = clone(model).fit(X, y)
    assert other.columns_ == model.columns_
    assert_array_equal(other.feature_names_in_, model.feature_names_in_)
    assert other.n_features_in_ == 4
    for name in ("value", "threshold", "weight"):
        assert_array_equal(getattr(other.forest_, name), getattr(model.forest_, name))
    for rows in (frame, X, pl.from_pandas(frame), to_arrow(frame)):  # of another library, too
        assert_array_equal(other.predict_proba(rows), model.predict_proba(frame))
    assert_array_equal(model.encode_rows(X), model.encode_rows(frame))
    if form == "pandas with views":
        return  # pyarrow cannot take rows of them
    some = frames.take_rows(X, np.array([7, 3, 200]))
    assert_array_equal(model.encode_rows(some), model.encode_rows(frame.iloc[[7, 3, 200]]))


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow", "pyarrow batch"])
def test_explanations_take_rows_of_all_libraries(form):
    frame, y = make_frame()
    model = LHForestClassifier(3, random_state=0).fit(frame, y)
    X = FORMS[form](frame)
    assert_array_equal(explain_rows(model, X).score, explain_rows(model, frame).score)
    place = np.flatnonzero((frame["size"] != "L") & (frame["colour"] != "red") & (y == 0))[:1]
    row = frames.take_rows(X, place)
    found = nearest_counterfactual(model, row)
    wanted = nearest_counterfactual(model, frame.iloc[place])
    assert isinstance(found.x, type(row))
    assert_array_equal(model.encode_rows(found.x), model.encode_rows(wanted.x))
    assert model.predict(found.x) == found.prediction != model.predict(row)


def test_unknown_and_missing_categories_have_no_indicator():
    frame, y = make_frame()
    model = LHTClassifier().fit(frame, y)
    rows = frame.iloc[:4].assign(colour=["violet", None, np.nan, "red"], age=0.0)
    table = model.encode_rows(rows)
    assert_array_equal(table[:3, 1:4], 0)
    assert_array_equal(table[3, 1:4], [0, 0, 1])
    proba = model.predict_proba(rows.assign(size="M", is_new=True))
    assert_array_equal(proba[0], proba[1])
    with_na = rows.astype({"colour": "string"})
    with_na.loc[with_na.index[1], "colour"] = pd.NA
    assert_array_equal(model.encode_rows(with_na)[1, 1:4], 0)


@pytest.mark.parametrize(
    "wanted",
    [[False, True, False, True], [1, 3], [3, 1, 1], ["colour", "size"], np.array([1, 3])],
)
def test_columns_of_categories_can_be_named(wanted):
    frame, y = make_frame()
    model = LHTClassifier(categorical_features=wanted).fit(frame, y)
    assert model.column_names_ == list(encode_by_hand(frame).columns)


def test_arrays_have_categories_if_told():
    frame, y = make_frame()
    objects = frame.astype(object).to_numpy()
    model = LHTClassifier(categorical_features=[1, 3]).fit(objects, y)
    assert_array_equal(model.encode_rows(objects), encode_by_hand(frame).to_numpy())
    assert model.column_names_[:3] == ["x0", "x1=blue", "x1=green"]
    assert_array_equal(model.encode_rows(objects.tolist()), model.encode_rows(objects))
    numbers = np.column_stack([np.arange(20) % 3, np.arange(20.0)])
    numbers[3, 0] = np.nan
    model = LHTClassifier(categorical_features=[0]).fit(numbers, np.arange(20) % 2)
    assert model.column_names_ == ["x0=0.0", "x0=1.0", "x0=2.0", "x1"]
    assert_array_equal(model.encode_rows(numbers)[3], [0, 0, 0, 3])


def test_numbers_can_be_categories():
    frame = pd.DataFrame({"code": [3, 1, 3, 2] * 5})
    model = LHTClassifier(categorical_features=["code"]).fit(frame, [0, 1, 0, 1] * 5)
    assert model.column_names_ == ["code=1", "code=2", "code=3"]
    with_gap = pd.DataFrame({"code": [3.0, np.nan, 1.0]})  # a gap makes integers floats
    assert_array_equal(model.encode_rows(with_gap), [[0, 0, 1], [0, 0, 0], [1, 0, 0]])


def test_the_rarest_categories_share_an_indicator():
    values = ["a"] * 5 + ["b"] * 4 + ["c"] * 3 + ["d"] * 2 + ["e"]
    frame = pd.DataFrame({"v": values})
    y = np.arange(15) % 2
    model = LHTClassifier(max_categories=3).fit(frame, y)
    assert model.columns_ == Columns(1, (Category(0, ("a", "b"), ("c", "d", "e")),))
    assert model.column_names_ == ["v=a", "v=b", "v=(others)"]
    table = model.encode_rows(pd.DataFrame({"v": ["b", "e", "new", None]}))
    assert_array_equal(table, [[0, 1, 0], [0, 0, 1], [0, 0, 0], [0, 0, 0]])
    assert LHTClassifier(max_categories=5).fit(frame, y).columns_.categories[0].merged == ()
    assert len(LHTClassifier(max_categories=None).fit(frame, y).column_names_) == 5


@pytest.mark.parametrize("form", ["pandas", "polars", "pyarrow", "pyarrow with views"])
def test_categories_of_weight_zero_are_absent(form):
    frame, y = make_frame()
    weight = np.where(frame["colour"] == "green", 0, np.arange(240) % 3)
    kept = frame[weight > 0]
    rows, kept_rows = FORMS[form](frame), FORMS[form](kept)
    for model in (LHTClassifier(), LHForestClassifier(3, random_state=0)):
        a = clone(model).fit(rows, y, sample_weight=weight)
        b = clone(model).fit(kept_rows, y[weight > 0], sample_weight=weight[weight > 0])
        category = next(each for each in a.columns_.categories if each.feature == 1)
        assert category.values == ("blue", "red")
        assert a.columns_ == b.columns_
        assert_same_model(a, b)
        assert_array_equal(a.predict_proba(rows), b.predict_proba(rows))


def test_rows_of_weight_zero_say_nothing_of_a_type():
    text = pd.DataFrame({"v": pd.Series(["a", "b", 3, "a"] * 5, dtype=object)})
    weight = [1, 1, 0, 1] * 5
    model = LHTClassifier().fit(text, [0, 1, 1, 0] * 5, sample_weight=weight)
    assert model.column_names_ == ["v=a", "v=b"]


def test_the_rarest_categories_are_those_of_least_weight():
    frame = pd.DataFrame({"v": ["a"] * 5 + ["b"] * 4 + ["c"] * 3})
    weight = np.repeat([1, 2, 3], [5, 4, 3])
    y = np.arange(12) % 2
    model = LHTClassifier(max_categories=2).fit(frame, y, sample_weight=weight)
    assert model.columns_.categories[0] == Category(0, ("c",), ("a", "b"))
    copies = frame.loc[np.repeat(np.arange(12), weight)]
    copied = LHTClassifier(max_categories=2).fit(copies, np.repeat(y, weight))
    assert copied.columns_ == model.columns_


def test_ten_thousand_categories_do_not_exhaust_the_memory():
    rng = np.random.default_rng(0)
    values = np.char.add("user", rng.integers(0, 10_000, 20_000).astype(str))
    frame = pd.DataFrame({"user": values, "x": rng.normal(size=20_000)})
    y = (frame["x"] > 0).to_numpy()
    tracemalloc.start()
    model = LHTClassifier().fit(frame, y)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert model.forest_.n_features == 65
    assert peak < 100e6
    assert model.score(frame, y) > 0.95


def test_a_column_without_a_category_is_ignored():
    frame, y = make_frame()
    frame["size"] = pd.Categorical([None] * len(frame), categories=["S"])
    model = LHTClassifier().fit(frame, y)
    assert model.column_names_[-1] == "size=(others)"
    assert model.feature_importances_[3] == 0
    alone = LHTClassifier().fit(frame[["size"]], y)
    assert np.isfinite(alone.predict_proba(frame[["size"]])).all()


@pytest.mark.parametrize(
    ("values", "message"),
    [
        (pd.date_range("2024-01-01", periods=20), r"has the type datetime64.* column 'when'"),
        (pd.timedelta_range(0, periods=20), "has the type timedelta64"),
        (np.arange(20) * 1j, "has the type complex128"),
        (pd.period_range("2024", periods=20, freq="D"), "has the type period"),
        ([[1, 2]] * 20, "has the type object in the column 'when', which is neither"),
        ([1, "a"] * 10, "has the type object in the column 'when', which is neither"),
    ],
)
def test_other_types_get_a_sentence(values, message):
    frame = pd.DataFrame({"x": np.arange(20.0), "when": values})
    model = LHTClassifier()
    with pytest.raises(ValueError, match=message):
        model.fit(frame, np.arange(20) % 2)
    assert vars(model) == vars(LHTClassifier())


@pytest.mark.parametrize(
    ("column", "message"),
    [
        (pl.Series(range(20)).cast(pl.Datetime), "has the type Datetime"),
        (pl.Series(range(20)).cast(pl.Duration), "has the type Duration"),
        (pl.Series([[1]] * 20), "has the type List"),
        (pl.Series([{"a": 1}] * 20), "has the type Struct"),
        (pl.Series([b"a"] * 20), "has the type Binary"),
        (pl.Series([object()] * 20, dtype=pl.Object), "has the type Object"),
        (pa.array([1] * 20, pa.timestamp("s")), "has the type timestamp"),
        (pa.array([1] * 20, pa.duration("s")), "has the type duration"),
        (pa.array([[1]] * 20), "has the type list<"),
        (pa.array([{"a": 1}] * 20), "has the type struct<a: int64> in the column 'when'"),
        (pa.array([b"a"] * 20), "has the type binary"),
        (pa.array([[("a", 1)]] * 20, pa.map_(pa.string(), pa.int64())), "has the type map<"),
    ],
    ids=lambda value: value if isinstance(value, str) else type(value).__module__,
)
def test_other_types_of_other_libraries_get_a_sentence(column, message):
    make = pl.DataFrame if isinstance(column, pl.Series) else pa.table
    with pytest.raises(ValueError, match=message):
        LHTClassifier().fit(make({"when": column}), np.arange(20) % 2)


@pytest.mark.parametrize(
    "frame",
    [
        pd.DataFrame({"v": [[1], [2]] * 10}),
        pa.table({"v": [[1], [2]] * 10}),
        pa.table({"v": [[1], [2]] * 10}).to_pandas(types_mapper=pd.ArrowDtype),
    ],
    ids=["pandas", "pyarrow", "types of Arrow"],
)
def test_lists_are_not_categories(frame):
    model = LHTClassifier(categorical_features=["v"])
    with pytest.raises(ValueError, match="in the column 'v', whose values cannot be categories"):
        model.fit(frame, np.arange(20) % 2)


NOTHING = {
    "polars": pl.DataFrame({"x": np.arange(20.0), "none": [None] * 20, "is": [True, None] * 10}),
    "pyarrow": pa.table({"x": np.arange(20.0), "none": pa.nulls(20), "is": [True, None] * 10}),
}
NOTHING["types of Arrow"] = NOTHING["pyarrow"].to_pandas(types_mapper=pd.ArrowDtype)


@pytest.mark.parametrize("name", NOTHING)
def test_null_columns_are_numbers_that_are_missing(name):
    frame, y = NOTHING[name], np.arange(20) > 9
    model = LHTClassifier().fit(frame, y)
    wanted = np.column_stack([np.arange(20.0), np.full(20, np.nan), [1.0, np.nan] * 10])
    assert_array_equal(model.encode_rows(frame), wanted)
    assert model.score(frame, y) == 1
    model = LHTClassifier(categorical_features=["none"]).fit(frame, y)
    assert model.column_names_ == ["x", "none=(others)", "is"]


def test_dictionaries_of_arrow_may_hold_numbers_gaps_and_copies():
    place = pa.array([0, 1, 2, 3, None] * 4, pa.uint8())
    codes = pa.DictionaryArray.from_arrays(place, pa.array([30, 1, None, 30]))
    frame = pa.table({"code": codes})
    model = LHTClassifier().fit(frame, np.arange(20) % 2)
    assert model.columns_.categories == (Category(0, (1, 30)),)
    assert_array_equal(model.encode_rows(frame)[:5], [[0, 1], [1, 0], [0, 0], [0, 1], [0, 0]])


@pytest.mark.parametrize("make", [pd.DataFrame, pl.DataFrame, pa.table])
def test_numbers_of_all_libraries_can_be_categories(make):
    values = {"code": [3, None, 1], "size": [0.5, None, -1.0], "is": [True, None, False]}
    columns = {name: pa.array(list(each) * 10) for name, each in values.items()}
    if make is pd.DataFrame:
        frame = pa.table(columns).to_pandas(types_mapper=pd.ArrowDtype)
    else:
        frame = make({name: each.to_pylist() for name, each in columns.items()})
    model = LHTClassifier(categorical_features=[0, 1, 2]).fit(frame, np.arange(30) % 2)
    categories = [each.values for each in model.columns_.categories]
    assert categories == [(1, 3), (-1.0, 0.5), (False, True)]
    assert [type(each[0]) for each in categories] == [int, float, bool]
    wanted = [[0, 1, 0, 1, 0, 1], [0] * 6, [1, 0, 1, 0, 1, 0]]
    assert_array_equal(model.encode_rows(frame)[:3], wanted)


def test_missing_floats_are_not_categories():
    values = [1.5, np.nan, None, 2.5] * 5
    for frame in (pl.DataFrame({"v": values}, strict=False), pa.table({"v": values})):
        model = LHTClassifier(categorical_features=["v"]).fit(frame, np.arange(20) % 2)
        assert model.column_names_ == ["v=1.5", "v=2.5"]
        assert_array_equal(model.encode_rows(frame)[:4], [[1, 0], [0, 0], [0, 0], [0, 1]])


def test_numbers_are_read_alike_by_all_libraries():
    n = ROWS_AT_ONCE + 100
    rng = np.random.default_rng(0)
    columns: dict[str, np.ndarray] = {
        f"x{j}": rng.normal(size=n) for j in range(COLUMNS_AT_ONCE + 8)
    }
    columns["large"] = rng.integers(2**60, 2**62, n)  # not all of them are floats
    columns["small"] = rng.integers(0, 9, n).astype(np.uint8)
    columns["half"] = rng.normal(size=n).astype(np.float16)
    columns["single"] = rng.normal(size=n).astype(np.float32)
    table = np.column_stack([column.astype(float) for column in columns.values()])
    model = LHTClassifier().fit(pd.DataFrame(columns), columns["x0"] > 0)
    arrow = pa.table(columns)
    for frame in (arrow, arrow.to_pandas(types_mapper=pd.ArrowDtype)):
        assert_array_equal(model.encode_rows(frame), table)
    plain = arrow.drop_columns(["half"])  # which polars has only in newer versions
    model = LHTClassifier().fit(plain, columns["x0"] > 0)
    assert_array_equal(model.encode_rows(pl.from_arrow(plain)), np.delete(table, -2, axis=1))


def test_lazy_frames_are_refused():
    frame, y = make_frame()
    duckdb = pytest.importorskip("duckdb")
    for lazy, method in (
        (pl.from_pandas(frame).lazy(), "collect"),
        (nw.from_native(frame).lazy(), "collect"),
        (duckdb.from_arrow(to_arrow(frame)), "fetch_arrow_table"),
    ):
        with pytest.raises(TypeError, match=rf"must be in memory, got .*; call its {method}\(\)"):
            LHTClassifier().fit(lazy, y)


def test_names_are_checked_in_all_libraries():
    frame, y = make_frame()
    model = LHTClassifier().fit(to_arrow(frame), y)
    for rows in (to_arrow(frame), pl.from_pandas(frame)):
        with pytest.raises(ValueError, match="must be in the same order"):
            model.predict(rows.select(["colour", "age", "is_new", "size"]))
        with pytest.raises(ValueError, match="Feature names seen at fit time, yet now missing"):
            model.predict(rows.select(["age", "colour"]))
    twice = pa.table([frame["age"], frame["age"]], names=["age", "age"])
    with pytest.raises(ValueError, match="several columns with the name 'age'"):
        LHTClassifier().fit(twice, y)


def test_scikit_learn_without_narwhals_reads_names_by_a_protocol(monkeypatch):
    monkeypatch.setattr(frames, "validation", object())
    frame, _ = make_frame()
    for form in ("polars", "pyarrow", "pyarrow batch"):
        shown = frames.show_names(FORMS[form](frame))
        assert shown.shape == frame.shape
        assert shown.__dataframe__().column_names() == list(frame.columns)
    assert frames.show_names(frame) is frame


def test_decimals_and_empty_columns_are_numbers():
    frame = pd.DataFrame({"price": [decimal.Decimal(i) / 4 for i in range(20)]})
    frame["nothing"] = None
    model = LHTClassifier().fit(frame, np.arange(20) > 9)
    assert_array_equal(model.encode_rows(frame)[:, 0], np.arange(20) / 4)
    assert np.isnan(model.encode_rows(frame)[:, 1]).all()
    assert model.score(frame, np.arange(20) > 9) == 1


def test_columns_are_checked_by_name():
    frame, y = make_frame()
    model = LHTClassifier().fit(frame, y)
    with pytest.raises(ValueError, match="must be in the same order"):
        model.predict(frame[["colour", "age", "is_new", "size"]])
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.predict(frame.rename(columns={"age": "Age"}))
    with pytest.raises(ValueError, match="X has text or categories in the column 'age'"):
        model.predict(frame.assign(age="old"))
    with pytest.raises(ValueError, match=r"X has text .* in the column 'colour', .*; name it"):
        LHTClassifier(categorical_features=None).fit(frame, y)
    with pytest.raises(ValueError, match="infinity"):
        model.predict(frame.assign(age=np.inf))


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("auto", "'auto' is not one of these"),
        ([7], "7 is not a position from 0 to 3"),
        (["weight"], "'weight' is not a column of X"),
        ([True, False], "does not have one entry for each of the 4 columns"),
        ([1.5], "1.5 is neither a name nor a position"),
        ([[1, 2]], "is not a list"),
        (3, "3 is not a list"),
    ],
)
def test_wrong_categorical_features(value, message):
    frame, y = make_frame()
    with pytest.raises(ValueError, match="categorical_features must be") as caught:
        LHTClassifier(categorical_features=value).fit(frame, y)
    assert message in str(caught.value)


def test_wrong_max_categories():
    frame, y = make_frame()
    with pytest.raises(ValueError, match="max_categories must be an integer of at least 2"):
        LHTClassifier(max_categories=1).fit(frame, y)


def test_overflowing_columns_of_frames_are_named():
    frame, y = make_frame()
    with pytest.raises(ValueError, match="in column is_new; divide"):
        LHTClassifier().fit(frame.assign(is_new=1e200), y)


def test_models_of_frames_survive_copies(tmp_path):
    frame, y = make_frame()
    model = LHForestClassifier(3, max_categories=2, random_state=0).fit(frame, y)
    path = tmp_path / "model.safetensors"
    lhtree.save(model, path)
    for copy in (pickle.loads(pickle.dumps(model)), lhtree.load(path)):
        assert copy.columns_ == model.columns_
        assert_array_equal(copy.predict_proba(frame), model.predict_proba(frame))


def test_categories_of_the_same_text_are_one(tmp_path):
    day = pd.Timestamp("2026-01-01")
    values = [day, str(day), "other", None] * 5
    frame = pd.DataFrame({"day": pd.Categorical(values, categories=[day, str(day), "other"])})
    model = LHTClassifier().fit(frame, [0, 0, 1, 1] * 5)
    assert model.columns_.categories == (Category(0, (str(day), "other")),)
    assert_array_equal(model.encode_rows(frame.iloc[:4]), [[1, 0], [1, 0], [0, 1], [0, 0]])
    lhtree.save(model, tmp_path / "model.safetensors")
    assert lhtree.load(tmp_path / "model.safetensors").columns_ == model.columns_


def test_warm_start_keeps_the_categories():
    frame, y = make_frame()
    model = LHForestClassifier(2, contrast="mean", warm_start=True, random_state=0).fit(frame, y)
    columns = model.columns_
    other = frame.assign(colour="violet")
    with pytest.warns(UserWarning, match="only unknown categories in the column 'colour'"):
        assert model.set_params(n_estimators=3).fit(other, y).columns_ == columns


def test_a_single_row_of_numbers_passes_at_once():
    X = np.arange(40.0).reshape(20, 2)
    model = LHTClassifier().fit(X, np.arange(20) % 2)
    row = X[:1].copy()
    assert model.encode_rows(row) is row
    row[0, 0] = np.nan
    assert model.encode_rows(row) is row
