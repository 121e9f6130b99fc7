"""A model as one SQL query.

The nodes are rows of constants; a recursive query walks every row of the table down
every tree. Sums are written out in the order that the package defines, so that rows on
a hyperplane take the same side.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from lhtree.arrays import LANES, Floats, Ints
from lhtree.data.columns import Columns
from lhtree.data.reading import name_features
from lhtree.estimators.lookup import check_model
from lhtree.export.boosted import read_boosted
from lhtree.export.boosted_sql import write_boosted
from lhtree.export.plain import PlainModel, Terms, place_all_terms, read_model
from lhtree.export.writing_sql import DOUBLE, quote_label, quote_name, quote_number
from lhtree.model.link import is_exact
from lhtree.model.prediction import TIE_WEIGHT

MOST_NUMBERS = 500_000  # constants of a statement: about 10 MB of text


def to_sql(model: Any, table: str | Sequence[str], *, columns: Sequence[str] | None = None) -> str:
    """Return one SELECT statement that predicts the rows of a table.

    It is standard SQL with a recursive query, tested in SQLite and DuckDB; it suits single
    trees, small forests and boosted models. Its result has the number of each row
    (``lhtree_row``), the columns of the table, ``label`` and, for each class,
    ``probability_<label>``. NULL means missing. Rows come in any order.

    For a boosted model the trees are nested CASE expressions in materialized queries (SQLite
    3.35, DuckDB, PostgreSQL 12). The result also has the raw scores, the same bit for bit as
    in the package: ``score``, or ``score_<label>`` of more than two classes. For numbers it
    has ``prediction`` alone, or with its logarithm ``score`` if that is what the trees add to;
    for a list of quantiles ``prediction_<level>`` and, before sorting, ``score_<level>``.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model.
    table : str or sequence of str
        Name of the table; for one in a schema, its parts: ``("schema", "table")``.
    columns : sequence of str, optional
        Names of the table's columns in the order of the columns of `X` in `fit`; by default
        the same names. Categories are compared with the values that they had in `fit`.

    Returns
    -------
    str
        The statement, without a semicolon.

    Examples
    --------
    >>> import sqlite3
    >>> from sklearn.datasets import load_iris
    >>> from lhtree import LHTClassifier
    >>> from lhtree.export import to_sql
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LHTClassifier().fit(X, y)
    >>> database = sqlite3.connect(":memory:")
    >>> _ = database.execute("CREATE TABLE flower (x0 REAL, x1 REAL, x2 REAL, x3 REAL)")
    >>> _ = database.executemany("INSERT INTO flower VALUES (?, ?, ?, ?)", X[:3])
    >>> [label] = {row[5] for row in database.execute(to_sql(model, "flower"))}
    >>> label
    0
    >>> database.close()
    """
    check_model(model)
    names = _check_columns(model.columns_, name_features(model), columns)
    parts = [table] if isinstance(table, str) else list(table)
    if not parts or not all(isinstance(part, str) and part for part in parts):
        raise ValueError(f"table must be a name or a sequence of names, got {table!r}.")
    source = ".".join(quote_name(part) for part in parts)
    if is_exact(model):
        boosted = read_boosted(model)
        _check_size(boosted.n_numbers, "numbers")
        return write_boosted(boosted, source, names)
    plain = read_model(model)
    queries = [
        f"lhtree_source AS (SELECT ROW_NUMBER() OVER () AS lhtree_row, t.* FROM {source} AS t)",
        _write_values(plain, names),
        *_write_walk(plain),
        *_write_votes(plain),
    ]
    return "WITH RECURSIVE\n" + ",\n".join(queries) + "\n" + _write_result(plain)


def _check_columns(
    columns: Columns, feature_names: Sequence[str], given: Sequence[str] | None
) -> Sequence[str]:
    names = feature_names if given is None else list(given)
    if len(names) != columns.n_features:
        raise ValueError(
            f"columns must name the {columns.n_features} columns of the model, got {len(names)}."
        )
    return names


def _check_size(n_numbers: int, noun: str) -> None:
    if n_numbers > MOST_NUMBERS:
        raise ValueError(
            f"model has {n_numbers} {noun}, more than the {MOST_NUMBERS} that one statement "
            "can hold; use a single tree or fewer estimators, keep the trees small, or export to "
            "ONNX."
        )


def _join_sums(terms: Sequence[str]) -> str:
    """Return the sum of one expression per column, in the order of eight partial sums."""
    sums = [" + ".join(terms[lane::LANES]) for lane in range(LANES)]
    for half in (4, 2, 1):  # ((0+4)+(2+6)) + ((1+5)+(3+7))
        pairs = zip(sums[:half], sums[half:], strict=True)
        sums = [f"({a}) + ({b})" if a and b else a or b for a, b in pairs]
    return sums[0]


def _write_values(plain: PlainModel, names: Sequence[str]) -> str:
    """Write the rows in the units of the trees."""
    forest = plain.forest
    columns = zip(_list_columns(plain, names), forest.column_mean, forest.column_std, strict=True)
    values = [
        f"({column} - {quote_number(mean)}) / {quote_number(std)} AS z{j}"
        for j, (column, mean, std) in enumerate(columns)
    ]
    listed = ",\n  ".join(values)
    return f"lhtree_standardized AS (SELECT lhtree_row,\n  {listed}\nFROM lhtree_source)"


def _list_columns(plain: PlainModel, names: Sequence[str]) -> Iterator[str]:
    """Yield the columns that the trees see: numbers, and indicators of categories."""
    categories = {category.feature: category for category in plain.columns.categories}
    for j in dict.fromkeys(plain.columns.list_sources().tolist()):
        name = quote_name(names[j])
        if j not in categories:
            yield f"CAST({name} AS {DOUBLE})"
            continue
        indicated = [[value] for value in categories[j].values]
        if categories[j].has_others:
            indicated.append(list(categories[j].merged))
        for values in indicated:
            listed = ", ".join(map(quote_label, values)) or "NULL"
            yield f"(CASE WHEN {name} IN ({listed}) THEN 1e0 ELSE 0e0 END)"


def _list_rows(plain: PlainModel, node: Ints, terms: Terms, *numbers: Floats) -> Iterator[str]:
    """Yield the constants of some nodes: tree, number in the tree, `numbers`, terms."""
    tree = np.searchsorted(plain.forest.tree_start, node, side="right") - 1
    own = node - plain.forest.tree_start[tree]
    for i in range(len(node)):
        row = [str(tree[i]), str(own[i])]
        row += [quote_number(number[i]) for number in numbers]
        row += [quote_number(value) for value in terms.weight[i]]
        row += [quote_number(value) for value in terms.center[i]]
        yield "(" + ", ".join(row) + ")"


def _write_walk(plain: PlainModel) -> Iterator[str]:
    forest = plain.forest
    m = forest.n_features
    split, leaf = np.flatnonzero(forest.left >= 0), np.flatnonzero(forest.left < 0)
    has_lines = bool(np.diff(forest.start)[leaf].any())
    _check_size(2 * m * (len(split) + has_lines * len(leaf)), "coefficients")
    columns = ", ".join([f"w{j}" for j in range(m)] + [f"c{j}" for j in range(m)])
    if len(split):
        rows = _list_rows(
            plain,
            split,
            place_all_terms(forest, split),
            forest.left[split].astype(float),
            forest.threshold[split],
            forest.norm[split],
        )
        yield (
            f"lhtree_split(tree, node, child, threshold, norm, {columns}) AS (VALUES\n  "
            + ",\n  ".join(rows)
            + ")"
        )
    nothing = np.zeros((len(leaf), 0))
    kept = place_all_terms(forest, leaf) if has_lines else Terms(nothing, nothing, None)
    rows = _list_rows(plain, leaf, kept, forest.value[leaf])
    columns = f", {columns}" if has_lines else ""
    yield f"lhtree_leaf(tree, node, value{columns}) AS (VALUES\n  " + ",\n  ".join(rows) + ")"
    trees = ", ".join(f"({tree})" for tree in range(len(forest)))
    yield f"lhtree_tree(tree) AS (VALUES {trees})"
    yield _write_steps(m) if len(split) else _write_roots()
    yield _write_memberships(m if has_lines else 0)


def _write_roots() -> str:
    """Write the walk through trees that have no split."""
    nothing = ", ".join(f"CAST(NULL AS {DOUBLE})" for _ in range(2))
    return (
        "lhtree_walk(lhtree_row, tree, node, nearest, plain_nearest) AS (\n"
        f"SELECT lhtree_row, tree, 0, {nothing} FROM lhtree_standardized CROSS JOIN lhtree_tree)"
    )


def _write_steps(m: int) -> str:
    """Write the walk: each of its rows has a node and the side on which it goes on."""
    score = _join_sums([f"n.w{j} * COALESCE(r.z{j}, n.c{j})" for j in range(m)])
    node = "CAST(CASE WHEN w.gap < 0e0 THEN w.child ELSE w.child + 1e0 END AS INTEGER)"
    distance, nothing = "ABS(w.gap) / w.norm", f"CAST(NULL AS {DOUBLE})"
    return (
        "lhtree_walk(lhtree_row, tree, node, nearest, plain_nearest, child, norm, gap) AS (\n"
        f"SELECT r.lhtree_row, t.tree, 0, {nothing}, {nothing}, n.child, n.norm,\n"
        f"  ({score}) - n.threshold\n"
        "FROM lhtree_standardized AS r CROSS JOIN lhtree_tree AS t\n"
        "  LEFT JOIN lhtree_split AS n ON n.tree = t.tree AND n.node = 0\n"
        "UNION ALL\n"
        f"SELECT w.lhtree_row, w.tree, {node},\n"
        f"  CASE WHEN w.nearest <= {distance} THEN w.nearest ELSE {distance} END,\n"
        "  CASE WHEN w.plain_nearest <= ABS(w.gap) THEN w.plain_nearest ELSE ABS(w.gap) END,\n"
        f"  n.child, n.norm, ({score}) - n.threshold\n"
        "FROM lhtree_walk AS w\n"
        "  JOIN lhtree_standardized AS r ON r.lhtree_row = w.lhtree_row\n"
        f"  LEFT JOIN lhtree_split AS n ON n.tree = w.tree AND n.node = {node}\n"
        "WHERE w.child IS NOT NULL)"
    )


def _write_memberships(m: int) -> str:
    """Write the output of each tree for each row; `m` is 0 if all leaves are constant."""
    line = _join_sums([f"n.w{j} * COALESCE(r.z{j} - n.c{j}, 0e0)" for j in range(m)])
    value = f"n.value + ({line})" if m else "n.value"
    rows = "\n  JOIN lhtree_standardized AS r ON r.lhtree_row = w.lhtree_row" if m else ""
    return (
        "lhtree_output AS (SELECT lhtree_row, tree, distance, plain_distance,\n"
        "  CASE WHEN value < 0e0 THEN 0e0 WHEN value > 1e0 THEN 1e0 ELSE value END AS membership\n"
        "FROM (SELECT w.lhtree_row, w.tree, COALESCE(w.nearest, 0e0) AS distance,\n"
        f"  COALESCE(w.plain_nearest, 0e0) AS plain_distance, {value} AS value\n"
        f"  FROM lhtree_walk AS w\n  JOIN lhtree_leaf AS n ON n.tree = w.tree AND n.node = w.node"
        f"{rows}) AS arrived)"
    )


def _write_votes(plain: PlainModel) -> Iterator[str]:
    """Write the sums over trees, then the scores of the classes; see `lhtree.model.prediction`."""
    per_estimator, n_estimators = plain.n_trees_per_estimator, plain.n_estimators
    vote = "membership * plain_distance" if plain.by_margin else "membership"
    complement = "(1e0 - membership) * plain_distance"
    divisor = 1 if plain.by_margin else n_estimators
    sums = []
    for k in range(per_estimator):
        # A sum over some of the trees: the others add zeros.
        own = f"CASE WHEN tree % {per_estimator} = {k} THEN {{}} ELSE 0e0 END"
        sums.append(f"SUM({own.format(vote)}) / {quote_number(divisor)} AS v{k}")
        distance = own.format("(2e0 * membership - 1e0) * distance")
        sums.append(f"SUM({distance}) / {quote_number(n_estimators)} AS s{k}")
    sums.append(f"SUM({complement}) AS complement")
    yield (
        "lhtree_vote AS (SELECT lhtree_row,\n  "
        + ",\n  ".join(sums)
        + "\nFROM lhtree_output GROUP BY lhtree_row)"
    )
    scores = [
        f"{vote} + {quote_number(TIE_WEIGHT)} * (CASE WHEN {s} < 0e0 THEN 1e0 / (1e0 + ABS({s}))"
        f" ELSE 1e0 + ABS({s}) / (1e0 + ABS({s})) END) / 2e0"
        for vote, s in _list_votes(plain)
    ]
    listed = ",\n  ".join(f"{score} AS q{k}" for k, score in enumerate(scores))
    yield f"lhtree_score AS (SELECT lhtree_row,\n  {listed}\nFROM lhtree_vote)"
    total = " + ".join(f"q{k}" for k in range(plain.n_classes))
    plain_probabilities = ", ".join(f"q{k} / ({total}) AS p{k}" for k in range(plain.n_classes))
    yield (
        f"lhtree_probability AS (SELECT lhtree_row, {plain_probabilities}, "
        f"{_list_powers(plain)} FROM lhtree_score)"
    )


def _list_powers(plain: PlainModel) -> str:
    """List what probabilities are proportional to after calibration, which keeps the labels."""
    offset, exponent = map(quote_number, plain.calibration)
    power = f"POWER(q{{k}} + {offset}, {exponent})" if plain.is_calibrated else "q{k}"
    return ", ".join(f"{power.format(k=k)} AS r{k}" for k in range(plain.n_classes))


def _list_votes(plain: PlainModel) -> list[tuple[str, str]]:
    """Return the vote and the signed distance of each class."""
    if plain.n_classes != 2:
        return [(f"v{k}", f"s{k}") for k in range(plain.n_classes)]
    other = "complement" if plain.by_margin else "(1e0 - v0)"
    return [(other, "(-s0)"), ("v0", "s0")]


def _write_result(plain: PlainModel) -> str:
    labels = plain.classes.tolist()
    cases = []
    for k in range(plain.n_classes - 1):
        others = " AND ".join(f"p{k} >= p{i}" for i in range(k + 1, plain.n_classes))
        cases.append(f"WHEN {others} THEN {quote_label(labels[k])}")
    last = quote_label(labels[-1])
    label = f"CASE {' '.join(cases)} ELSE {last} END" if cases else last
    total = " + ".join(f"r{k}" for k in range(plain.n_classes))
    names = [quote_name(f"probability_{label}") for label in labels]
    probabilities = ",\n  ".join(f"r{k} / ({total}) AS {name}" for k, name in enumerate(names))
    return (
        f"SELECT lhtree_source.*,\n  {label} AS label,\n  {probabilities}\n"
        "FROM lhtree_source JOIN lhtree_probability\n"
        "  ON lhtree_probability.lhtree_row = lhtree_source.lhtree_row"
    )
