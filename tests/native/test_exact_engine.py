"""The exact engine: columns, sums, splits and boosting, equal to the reference bit for bit."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from scipy.sparse import csr_array

from exact import arithmetic, boosting
from exact.columns import encode, learn_columns
from lhtree import _core
from lhtree.model.ensemble import Ensemble, GridColumns
from lhtree.training.boosting import Encoded, Rows, encode_rows, learn_rows

COLUMNS = {
    "real": lambda rng, n: rng.normal(size=n),
    "small integers": lambda rng, n: rng.integers(-3, 4, n),
    "constant": lambda rng, n: np.full(n, 7.0),
    "huge": lambda rng, n: rng.normal(size=n) * 1e300,
    "widest": lambda rng, n: rng.choice([-1.7e308, 0.0, 1.7e308], n),
    "denormal": lambda rng, n: rng.integers(0, 3, n) * 5e-324,
    "many zeros": lambda rng, n: np.where(rng.random(n) < 0.6, 0.0, rng.normal(size=n)),
    "sentinels": lambda rng, n: np.where(rng.random(n) < 0.1, 999999999.0, rng.integers(9, 99, n)),
    "far from zero": lambda rng, n: 1e8 + 1e-3 * rng.normal(size=n),
    "signed zeros": lambda rng, n: rng.choice([-0.0, 0.0], n),
    "categories": lambda rng, n: np.minimum(rng.geometric(0.3, n) - 1, 11),
}
N_CODES = 12  # of a column of categories; some may not occur


def count_codes(kinds):
    """Return the number of codes of each column; 0 for numbers."""
    return np.array([N_CODES * (kind == "categories") for kind in kinds], dtype=np.int32)


@st.composite
def tables(draw):
    """Tables of nasty columns, with gaps, duplicated rows and weights: X, n_codes, weight."""
    n = draw(st.one_of(st.integers(1, 40), st.integers(300, 700)))
    kinds = draw(st.lists(st.sampled_from(sorted(COLUMNS)), min_size=1, max_size=5))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    X = np.column_stack([COLUMNS[kind](rng, n) for kind in kinds]).astype(np.float64)
    X[rng.random(X.shape) < draw(st.sampled_from([0.0, 0.0, 0.1, 0.9]))] = np.nan
    if draw(st.booleans()):
        X = np.repeat(X, 2, axis=0)  # rows with conflicting targets
    weight = draw(
        st.sampled_from(
            [
                lambda n: None,
                lambda n: rng.integers(1, 4, n),
                lambda n: 1 + np.floor(np.asarray(rng.exponential(2**16, n))).astype(np.int64),
                lambda n: rng.integers(1, 2**29, n),
            ]
        )
    )(len(X))
    return X, count_codes(kinds), weight


def learn(X, n_codes, weight, n_threads=1):
    """Learn and encode a table natively."""
    return learn_rows(X, weight, n_codes, wants_z=True, n_threads=n_threads)


@given(table=tables())
def test_columns_are_those_of_the_reference(table):
    X, n_codes, weight = table
    expected = learn_columns(X, weight, n_codes)
    codes, z = encode(expected, X)
    for order in (slice(None), slice(None, None, -1)):  # whatever the order of rows
        rows = np.ascontiguousarray(X[order])
        own = None if weight is None else np.ascontiguousarray(weight[order])
        found, encoded = learn(rows, n_codes, own)
        assert_array_equal(encoded.bin[order], codes)
        assert_array_equal(encoded.z[order], z)
        for j, column in enumerate(expected):
            bounds = slice(*found.threshold_start[j : j + 2])
            assert_array_equal(found.threshold[bounds], column.thresholds)
            assert (found.fill[j], found.has_gaps[j]) == (column.fill, column.has_gaps)


@given(table=tables())
def test_threads_and_float32_change_no_column(table):
    X, n_codes, weight = table
    single = np.clip(X, -3e38, 3e38).astype(np.float32)
    columns, encoded = learn(single.astype(np.float64), n_codes, weight)
    for rows, n_threads in ((single, 1), (single.astype(np.float64), 3)):
        others, other = learn(rows, n_codes, weight, n_threads)
        assert_array_equal(other.bin, encoded.bin)
        assert_array_equal(other.z, encoded.z)
        for name, array in vars(columns).items():
            assert_array_equal(getattr(others, name), array, name)


plans = st.builds(
    boosting.Plan,
    n_rounds=st.just(3),
    learning_rate=st.sampled_from([0.1, 0.3, 1.0]),
    l2_regularization=st.sampled_from([0.0, 1.0, 3.5]),
    min_hessian=st.sampled_from([0.0, 1.0, 5.0]),
    min_weight=st.sampled_from([0, 0, 3, 40]),
    unit_weight=st.sampled_from([1, 2**16]),
    max_leaf_nodes=st.integers(2, 12),
    max_depth=st.sampled_from([1, 3, 99]),
    seed=st.integers(0, 3),
    first_round=st.sampled_from([0, 7]),
    n_hyperplanes=st.sampled_from([0, 1, 3, 7]),
    max_terms=st.integers(2, 5),
    shrinkage=st.sampled_from([0.0, 0.05, 0.3]),
)


def make_target(loss, n, seed):
    """Return integer targets and the scores before the first round."""
    rng = np.random.default_rng(seed)
    if loss == "log_loss":
        return rng.integers(0, 2, n), rng.integers(-(2**25), 2**25, n)
    return rng.integers(-(2**30), 2**30, n) // rng.choice([1, 2**12, 2**29]), np.zeros(n)


def boost(table, loss, plan, seed, *, n_held_out=0, n_threads=1, is_sparse=False):
    """Boost natively; some of the last rows are held out."""
    X, n_codes, weight = table
    n = len(X) - n_held_out
    y, score = make_target(loss, len(X), seed)

    def cut(part):
        rows = csr_array(X[part]) if is_sparse else np.ascontiguousarray(X[part])
        own = None if weight is None else np.ascontiguousarray(weight[part])
        return rows, own, y[part].astype(np.int32), score[part].astype(np.int64)

    rows, own, *target = cut(slice(0, n))
    options = {"wants_z": True, "n_threads": n_threads}
    columns, encoded = learn_rows(rows, own, n_codes, **options)
    training = make_rows(encoded, own, *target)
    rows, own, *target = cut(slice(n, None))
    held_out = make_rows(encode_rows(rows, columns, **options), own, *target)
    return columns, _core.boost(columns, training, held_out, loss, plan, n_threads)


def make_rows(encoded, weight, y, score):
    """Return rows as the core reads them."""
    return Rows(**vars(encoded), y=y, weight=weight, score=score)


def boost_by_reference(table, loss, plan, seed, n_held_out=0):
    """Boost the same rows by the reference."""
    X, n_codes, weight = table
    n = len(X) - n_held_out
    y, score = make_target(loss, len(X), seed)

    def cut(part):
        own = None if weight is None else weight[part]
        return boosting.Rows(X[part], y[part], own, score[part].astype(np.int64))

    training = cut(slice(0, n))
    own = None if weight is None else weight[:n]
    columns = learn_columns(training.X, own, n_codes)
    held_out = cut(slice(n, None)) if n_held_out else None
    return boosting.boost(columns, training, held_out, loss, plan)


def word_of(codes, k):
    """Return the bits of the codes from 64 * k on."""
    return sum(1 << (code & 63) for code in codes if code >> 6 == k)


def assert_same_trees(arrays, trees):
    """Demand the nodes of the reference, to the bit."""
    assert len(arrays["tree_start"]) == len(trees) + 1
    nodes = [node for tree in trees for node in tree]
    for name in ("left", "column", "value", "weight"):
        assert_array_equal(arrays[name], [getattr(node, name) for node in nodes], name)
    splits = [node for node in nodes if node.left >= 0]
    is_split = arrays["left"] >= 0
    assert_array_equal(arrays["gain"][is_split], [node.gain for node in splits])
    numbers = [n for n in splits if n.column >= 0 and not n.codes]
    categories = [node for node in splits if node.codes]
    planes = [node.hyperplane for node in splits if node.column < 0]
    assert_array_equal(arrays["threshold"], [node.threshold for node in numbers])
    is_number = is_split & (arrays["column"] >= 0)
    assert_array_equal(
        arrays["missing_left"][is_number],
        [node.missing_left and not node.codes for node in splits if node.column >= 0],
    )
    words = [
        [sum(1 << (c & 63) for c in n.codes if c >> 6 == w) for w in range(4)] for n in categories
    ]
    assert_array_equal(arrays["codes"], np.array(words, dtype=np.uint64).reshape(-1, 4))
    terms = [
        (j, w, f) for p in planes for j, w, f in zip(p.columns, p.weights, p.fills, strict=True)
    ]
    found = zip(arrays["feature"], arrays["coefficient"], arrays["fill"], strict=True)
    assert [tuple(map(int, term)) for term in found] == terms
    assert_array_equal(np.diff(arrays["term_start"]), [len(plane.columns) for plane in planes])
    assert_array_equal(arrays["cut"], [plane.cut for plane in planes])


seeds = st.integers(0, 2**32 - 1)
losses = st.sampled_from(["squared_error", "log_loss"])


@given(table=tables(), loss=losses, plan=plans, seed=seeds)
def test_boosting_is_the_reference(table, loss, plan, seed):
    expected = boost_by_reference(table, loss, plan, seed)
    columns, found = boost(table, loss, plan, seed)
    assert_same_trees(found["trees"], expected.trees)
    assert_array_equal(found["score"], expected.training_score)
    assert_array_equal(found["training_loss"], [float(loss) for loss in expected.training_loss])
    check_walk(columns, found, table[0], make_target(loss, len(table[0]), seed)[1])


def check_walk(columns, found, X, score):
    """Demand that training rows take the same path in a prediction."""
    trees = {name: array for name, array in found["trees"].items() if name != "gain"}
    ensemble = Ensemble(
        columns=columns.without_bins(),
        base=np.zeros(1, dtype=np.int64),
        power=0,
        origin=0.0,
        importance=np.zeros(len(columns.n_codes)),
        **trees,
    )
    assert_array_equal(ensemble.sum_values(X)[:, 0] + score, found["score"])


@given(table=tables(), loss=losses, plan=plans, seed=seeds, n_held_out=st.integers(1, 20))
def test_validation_is_the_reference(table, loss, plan, seed, n_held_out):
    n_held_out = min(n_held_out, len(table[0]) - 1)
    if n_held_out == 0:
        return
    plan = replace(plan, n_rounds=6, patience=2, learning_rate=1.0)
    expected = boost_by_reference(table, loss, plan, seed, n_held_out)
    _, found = boost(table, loss, plan, seed, n_held_out=n_held_out)
    losses_of_rows = [float(loss) for loss in expected.held_out_loss]
    assert_array_equal(found["validation_loss"], losses_of_rows)
    assert_array_equal(found["held_out_score"], expected.held_out_score)
    assert_same_trees(found["trees"], expected.trees[: int(np.argmin(losses_of_rows))])


def assert_same_result(first, second):
    """Demand equal trees, scores and losses."""
    for name, array in first["trees"].items():
        assert_array_equal(second["trees"][name], array, name)
    for name in ("score", "held_out_score", "training_loss", "validation_loss"):
        assert_array_equal(second[name], first[name], name)


@given(table=tables(), loss=losses, plan=plans, seed=seeds, n_threads=st.sampled_from([2, 7]))
def test_threads_change_nothing(table, loss, plan, seed, n_threads):
    n_held_out = len(table[0]) // 4
    results = [
        boost(table, loss, plan, seed, n_held_out=n_held_out, n_threads=n)[1]
        for n in (1, n_threads)
    ]
    assert_same_result(*results)


@given(table=tables(), loss=losses, plan=plans, seed=seeds)
def test_sparse_tables_are_like_dense_ones(table, loss, plan, seed):
    X, n_codes, weight = table
    numbers = np.where(np.isnan(X), 0.0, X) + 0.0
    table = numbers, np.zeros_like(n_codes), weight
    n_held_out = len(X) // 4
    _, dense = boost(table, loss, plan, seed, n_held_out=n_held_out)
    _, sparse = boost(table, loss, plan, seed, n_held_out=n_held_out, is_sparse=True)
    assert_same_result(dense, sparse)


def test_products_of_a_block_fit_a_word():
    # 128 rows at the low end of 12 bits about the mean: their squares reach 2**31.
    x = np.concatenate([np.zeros(128), np.full(200, (1 - 1e-5) * 328 / 200)])
    X = np.column_stack([x, np.random.default_rng(0).normal(size=len(x))])
    table = X, np.zeros(2, dtype=np.int32), None
    plan = boosting.Plan(n_hyperplanes=1, max_terms=2, min_weight=0)
    for order in (slice(None), np.random.default_rng(1).permutation(len(x))):
        rows = X[order], *table[1:]
        expected = boost_by_reference(rows, "squared_error", plan, 0)
        assert_same_trees(boost(rows, "squared_error", plan, 0)[1]["trees"], expected.trees)


def make_large_table(n, seed):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 9))
    X[rng.random(X.shape) < 0.05] = np.nan
    X[:, 3] = rng.integers(0, N_CODES, n)
    n_codes = np.zeros(9, dtype=np.int32)
    n_codes[3] = N_CODES
    return X, n_codes, None


@pytest.mark.parametrize("loss", ["squared_error", "log_loss"])
@pytest.mark.parametrize("is_weighted", [False, True])
def test_large_tables_do_not_depend_on_threads_or_the_order_of_rows(loss, is_weighted):
    X, n_codes, _ = make_large_table(40_000, 0)
    weight = np.arange(len(X)) % 3 + 1 if is_weighted else None
    plan = boosting.Plan(n_rounds=3, max_leaf_nodes=31, n_hyperplanes=3, max_terms=6, min_weight=0)
    y, score = make_target(loss, len(X), 0)
    if loss == "squared_error":  # random targets would leave hyperplanes nothing to find
        y = ((np.nan_to_num(X[:, :3]).sum(axis=1) + X[:, 3] % 3) * 2**20).astype(np.int64)
    order = np.random.default_rng(1).permutation(len(X))
    results = []
    for rows, n_threads in ((np.arange(len(X)), 1), (np.arange(len(X)), 3), (order, 2)):
        own = None if weight is None else weight[rows]
        some = np.ascontiguousarray(X[rows])
        columns, encoded = learn_rows(some, own, n_codes, wants_z=True, n_threads=n_threads)
        target = y[rows].astype(np.int32), score[rows].astype(np.int64)
        training = make_rows(encoded, own, *target)
        empty = Encoded(encoded.bin[:0], encoded.z[:0])
        held_out = make_rows(empty, None, *(each[:0] for each in target))
        result = _core.boost(columns, training, held_out, loss, plan, n_threads)
        result["score"] = result["score"][np.argsort(rows)]
        results.append(result)
    assert len(results[0]["trees"]["feature"]) > 0
    assert len(results[0]["trees"]["codes"]) > 0
    for other in results[1:]:
        assert_same_result(results[0], other)


@given(table=tables(), loss=losses, plan=plans, seed=seeds)
def test_weights_are_copies(table, loss, plan, seed):
    X, n_codes, _ = table
    rng = np.random.default_rng(seed)
    weight = rng.integers(1, 4, len(X))
    plan = replace(plan, unit_weight=1, min_weight=0)
    y, score = make_target(loss, len(X), seed)
    results = []
    for copies, own in ((1, weight), (weight, None)):
        rows = np.repeat(np.arange(len(X)), copies)
        columns, encoded = learn_rows(
            np.ascontiguousarray(X[rows]), own, n_codes, wants_z=True, n_threads=1
        )
        target = y[rows].astype(np.int32), score[rows].astype(np.int64)
        empty = Encoded(encoded.bin[:0], encoded.z[:0])
        held_out = make_rows(empty, None, *(each[:0] for each in target))
        training = make_rows(encoded, own, *target)
        results.append(_core.boost(columns, training, held_out, loss, plan, 1)["trees"])
    for name, array in results[0].items():
        assert_array_equal(results[1][name], array, name)


def test_exp_and_log_are_those_of_the_reference():
    x = np.random.default_rng(0).uniform(-701, 701, 20_000)
    y = np.exp(np.clip(x, -700, 700))
    assert_array_equal([_core.compute_exp(v) for v in x.tolist()], arithmetic.exp(x))
    assert_array_equal([_core.compute_log(v) for v in y.tolist()], arithmetic.log(y))


def make_small_case():
    columns, encoded = learn(np.array([[0.0], [1.0], [4.0]]), np.zeros(1, dtype=np.int32), None)
    rows = make_rows(encoded, None, np.zeros(3, np.int32), np.zeros(3, np.int64))
    return columns, rows


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bin": np.full((3, 1), 9, dtype=np.uint8)}, "a bin is out of range"),
        ({"bin": np.zeros((2, 1), dtype=np.uint8)}, "bin must have one entry per row"),
        ({"z": np.zeros((3, 2), dtype=np.int32)}, "z must have the shape of bin"),
        ({"score": np.zeros(2, dtype=np.int64)}, "score must have one entry per row"),
        ({"weight": np.zeros(3, dtype=np.int64)}, "weights must be positive"),
        ({"weight": np.ones(2, dtype=np.int64)}, "weight must have one entry per row"),
        ({"y": np.zeros(3)}, "the array 'y' has the wrong type"),
    ],
)
def test_the_core_refuses_rows_that_do_not_fit(changes, message):
    columns, rows = make_small_case()
    plan = boosting.Plan(n_hyperplanes=1, min_weight=0)
    with pytest.raises(ValueError, match=message):
        _core.boost(columns, SimpleNamespace(**(vars(rows) | changes)), rows, "log_loss", plan, 1)


def test_the_core_refuses_unknown_losses_and_columns():
    columns, rows = make_small_case()
    with pytest.raises(ValueError, match="loss is unknown"):
        _core.boost(columns, rows, rows, "huber", boosting.Plan(min_weight=0), 1)
    broken = GridColumns(**(vars(columns) | {"power": np.array([4000], dtype=np.int16)}))
    with pytest.raises(ValueError, match="the power of a grid is out of range"):
        _core.boost(broken, rows, rows, "log_loss", boosting.Plan(min_weight=0), 1)
