"""A model of the exact engine as one SQL query.

Rows walk down nested CASEs, a few levels at once. Integers are kept in doubles, which hold
them exactly, so that the scores are those of the package bit for bit.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from lhtree.arrays import Ints
from lhtree.export.boosted import PlainBoosted, UsedColumns
from lhtree.export.writing_sql import DOUBLE, quote_label, quote_name, quote_number
from lhtree.model.ensemble import BoostedTree
from lhtree.model.ensemble_splits import CATEGORY, NUMBER, list_code_sides
from lhtree.model.link import CERTAIN, LOG, LOGIT, SORTED, VOTES

MOST_COLUMNS = 1900  # of an intermediate result: SQLite refuses wider ones
LEVELS_AT_ONCE = 8  # of nested cases, and
TERMS_AT_ONCE = 100  # of a sum: SQLite refuses deeper expressions
WHOLE = "4503599627370496e0"  # 2**52: larger doubles are integers


def write_boosted(plain: PlainBoosted, source: str, names: Sequence[str]) -> str:
    """Return the statement; `source` is the quoted table, `names` its columns."""
    _check_shape(plain)
    queries = [
        f"lhtree_source AS (SELECT ROW_NUMBER() OVER () AS lhtree_row, t.* FROM {source} AS t)",
        *_write_inputs(plain, names),
        *_write_scores(plain),
        *_write_ranks(plain),
    ]
    return "WITH\n" + ",\n".join(queries) + "\n" + _write_result(plain)


def _check_shape(plain: PlainBoosted) -> None:
    ensemble = plain.ensemble
    n_columns = len(ensemble) + ensemble.n_features + 4 * len(np.unique(ensemble.feature))
    if n_columns > MOST_COLUMNS:
        raise ValueError(
            f"model needs {n_columns} columns, one for each tree and more for each feature, but "
            f"one statement can hold {MOST_COLUMNS}; set n_estimators, or export to ONNX."
        )


def _write_inputs(plain: PlainBoosted, names: Sequence[str]) -> Iterator[str]:
    """Write the columns that trees see, and their values on the grids of hyperplanes."""
    used = UsedColumns.of(plain.ensemble)
    values = [f"{column} AS x{j}" for j, column in enumerate(_list_columns(plain, names))]
    yield _write_stage("lhtree_input", ["lhtree_row", *values], "lhtree_source")
    if not len(used.column):
        return
    scaled = [
        f"x{j} * {quote_number(first)} * {quote_number(second)} + 0.5e0 AS v{j}"
        for j, first, second in zip(used.column, used.first, used.second, strict=True)
    ]
    yield _write_stage("lhtree_scaled", ["*", *scaled], "lhtree_input")
    # A cast cuts off or rounds, depending on the database; the comparison repairs both.
    floored = [
        f"CASE WHEN v{j} > -{WHOLE} AND v{j} < {WHOLE} THEN CAST(CAST(v{j} AS BIGINT) AS "
        f"{DOUBLE}) - CASE WHEN CAST(v{j} AS BIGINT) > v{j} THEN 1e0 ELSE 0e0 END ELSE v{j} END "
        f"- {quote_number(origin)} AS f{j}"
        for j, origin in zip(used.column, used.origin, strict=True)
    ]
    yield _write_stage("lhtree_floored", ["*", *floored], "lhtree_scaled")
    placed = [
        f"CASE WHEN f{j} < {low}e0 THEN {low}e0 WHEN f{j} > {high}e0 THEN {high}e0 ELSE f{j} END "
        f"AS z{j}"
        for j, low, high in zip(used.column, used.low, used.high, strict=True)
    ]
    yield _write_stage("lhtree_placed", ["*", *placed], "lhtree_floored")


def _write_stage(name: str, columns: Sequence[str], source: str) -> str:
    """Write a query whose result is kept: merged ones would repeat long expressions."""
    listed = ",\n  ".join(columns)
    return f"{name} AS MATERIALIZED (SELECT {listed}\nFROM {source})"


def _list_columns(plain: PlainBoosted, names: Sequence[str]) -> Iterator[str]:
    """Yield the columns that the trees see: numbers, and codes of categories."""
    categories = {category.feature: category for category in plain.columns.categories}
    for j in plain.columns.list_sources().tolist():
        name = quote_name(names[j])
        if j not in categories:
            yield f"CAST({name} AS {DOUBLE})"
            continue
        values = [[value] for value in categories[j].values]
        values += [list(categories[j].merged)] * bool(categories[j].merged)
        cases = " ".join(
            f"WHEN {name} IN ({', '.join(map(quote_label, group))}) THEN {code}"
            for code, group in enumerate(values)
        )
        yield f"CASE {cases} END" if cases else "CAST(NULL AS INTEGER)"


def _write_scores(plain: PlainBoosted) -> Iterator[str]:
    """Write the walk down the trees, a few levels at once, then the sums of the leaves."""
    ensemble = plain.ensemble
    source = "lhtree_placed" if len(ensemble.feature) else "lhtree_input"
    carried = [f"x{j}" for j in range(ensemble.n_features)]
    carried += [f"z{j}" for j in np.unique(ensemble.feature)]
    depth = ensemble.compute_depth()
    for first in range(0, int(depth.max(initial=0)), LEVELS_AT_ONCE):
        nodes = [_write_piece(tree, first, depth[tree.nodes]) for tree in ensemble]
        listed = [f"{node} AS n{number}" for number, node in enumerate(nodes)]
        yield _write_stage(f"lhtree_walk_{first}", ["lhtree_row", *carried, *listed], source)
        source = f"lhtree_walk_{first}"
    first_factor, second_factor = map(quote_number, plain.scale)
    scores = []
    for k in range(ensemble.n_outputs):
        terms = [f"{ensemble.start[k]}e0"]
        if ensemble.n_turns > 1:
            terms += [_write_values(tree, 0) for tree in ensemble if tree.output == k]
        else:
            terms += [_write_values(tree, k) for tree in ensemble]
        total = _add_up(terms)
        if ensemble.n_averaged > 1:
            total = f"({total}) / {ensemble.n_averaged}e0"
        whole = f"{total} + {quote_number(ensemble.origin)}"
        scores.append(f"({whole}) * {first_factor} * {second_factor} AS s{k}")
    yield _write_stage("lhtree_score", ["lhtree_row", *scores], source)


def _write_ranks(plain: PlainBoosted) -> Iterator[str]:
    """Write how many scores of quantiles come before each in ascending order."""
    if plain.link.name != SORTED:
        return
    n = plain.ensemble.n_outputs
    ranks = []
    for k in range(n):
        before = [f"s{i} {'<=' if i < k else '<'} s{k}" for i in range(n) if i != k]
        counts = [f"CASE WHEN {condition} THEN 1 ELSE 0 END" for condition in before]
        ranks.append(f"{_add_up(counts) or '0'} AS r{k}")
    yield _write_stage("lhtree_rank", ["*", *ranks], "lhtree_score")


def _add_up(terms: Sequence[str]) -> str:
    """Return a sum of sums: databases refuse deep expressions, and a long sum is one."""
    if len(terms) <= TERMS_AT_ONCE:
        return " + ".join(terms)
    batches = range(0, len(terms), TERMS_AT_ONCE)
    return _add_up([f"({' + '.join(terms[k : k + TERMS_AT_ONCE])})" for k in batches])


def _write_piece(tree: BoostedTree, first: int, depth: Ints) -> str:
    """Return the node that a row reaches from some level within the next few ones."""
    is_shown = (depth >= first) & (depth <= first + LEVELS_AT_ONCE)
    text: dict[int, str] = {}
    for node in np.flatnonzero(is_shown)[::-1].tolist():
        left = int(tree.left[node])
        if left < 0 or depth[node] == first + LEVELS_AT_ONCE:
            text[node] = str(node)
            continue
        condition, is_left = _write_condition(tree, node)
        children = text.pop(left), text.pop(left + 1)
        yes, no = children if is_left else children[::-1]
        text[node] = f"CASE WHEN {condition} THEN {yes} ELSE {no} END"
    if first == 0:
        return "\n  " + text[0]
    name = f"n{tree.number}"
    cases = [f"WHEN {node} THEN {text[node]}" for node in sorted(text) if tree.left[node] >= 0]
    return f"\n  CASE {name} {' '.join(cases)} ELSE {name} END" if cases else name


def _write_values(tree: BoostedTree, output: int) -> str:
    """Return what the leaves of a tree add to a score."""
    value = tree.node_value[:, output]
    if tree.n_nodes == 1:
        return f"{value[0]}e0"
    leaves = np.flatnonzero(tree.left < 0)
    cases = " ".join(f"WHEN {leaf} THEN {value[leaf]}e0" for leaf in leaves)
    return f"\n  CASE n{tree.number} {cases} END"


def _write_condition(tree: BoostedTree, node: int) -> tuple[str, bool]:
    """Return a condition that is never unknown, and whether it sends rows to the left."""
    ensemble, k = tree.ensemble, tree.first_node + node
    kind, position = ensemble.index.kind[k], int(ensemble.index.position[k])
    name = f"x{ensemble.column[k]}"
    if kind == CATEGORY:
        return _write_codes(name, list_code_sides(ensemble, int(ensemble.column[k]), position))
    if kind == NUMBER:
        threshold, missing_left = float(ensemble.threshold[position]), ensemble.missing_left[k]
        if threshold == np.inf:
            return ("1 = 1" if missing_left else f"{name} IS NOT NULL"), True
        condition = f"{name} < {quote_number(threshold)}"
        return condition + f" OR {name} IS NULL" * bool(missing_left), True
    terms = range(*ensemble.term_start[position : position + 2].tolist())
    products = [
        f"{ensemble.coefficient[t]}e0 * COALESCE(z{ensemble.feature[t]}, {ensemble.fill[t]}e0)"
        for t in terms
    ]
    return f"{_add_up(products)} < {ensemble.cut[position]}e0", True


def _write_codes(name: str, is_left: np.ndarray) -> tuple[str, bool]:
    """Return the shorter of the conditions that list the codes of one side."""
    side = np.count_nonzero(is_left) <= len(is_left) / 2
    codes = np.flatnonzero(is_left == side).tolist()
    parts = []
    if missing := len(is_left) - 1 in codes:
        codes.pop()
    if codes:
        parts.append(f"{name} IN ({', '.join(map(str, codes))})")
    if missing:
        parts.append(f"{name} IS NULL")
    return " OR ".join(parts) or "1 = 0", bool(side)


def _write_result(plain: PlainBoosted) -> str:
    classes, scores = plain.link.classes, "lhtree_score"
    if plain.link.name == SORTED:
        columns, scores = list(_list_quantiles(plain)), "lhtree_rank"
    elif classes is None:
        columns = ["EXP(s0) AS prediction", "s0 AS score"]
        columns = columns if plain.link.name == LOG else ["s0 AS prediction"]
    else:
        labels = classes.tolist()
        columns = [f"{_write_label(plain, labels)} AS label"]
        names = [quote_name(f"probability_{label}") for label in labels]
        columns += map(" AS ".join, zip(_list_probabilities(plain), names, strict=True))
        if len(labels) > 2:
            columns += [f"s{k} AS {quote_name(f'score_{v}')}" for k, v in enumerate(labels)]
        else:
            columns += ["s0 AS score"]
    listed = ",\n  ".join(columns)
    return (
        f"SELECT lhtree_source.*,\n  {listed}\nFROM lhtree_source JOIN {scores}\n"
        f"  ON {scores}.lhtree_row = lhtree_source.lhtree_row"
    )


def _list_quantiles(plain: PlainBoosted) -> Iterator[str]:
    """Yield the predictions of quantiles, ascending, then the scores of the trees."""
    levels = plain.link.levels
    for place, level in enumerate(levels):
        cases = " ".join(f"WHEN r{k} = {place} THEN s{k}" for k in range(len(levels)))
        yield f"CASE {cases} END AS {quote_name(f'prediction_{level}')}"
    for k, level in enumerate(levels):
        yield f"s{k} AS {quote_name(f'score_{level}')}"


def _write_label(plain: PlainBoosted, labels: Sequence[object]) -> str:
    if len(labels) == 1:
        return quote_label(labels[0])
    if plain.link.is_mirrored:
        limit = "0.5e0" if plain.link.name == VOTES else "0e0"
        first, second = map(quote_label, labels)
        return f"CASE WHEN s0 > {limit} THEN {second} ELSE {first} END"
    cases = []
    for k in range(len(labels) - 1):
        others = " AND ".join(f"s{k} >= s{i}" for i in range(k + 1, len(labels)))
        cases.append(f"WHEN {others} THEN {quote_label(labels[k])}")
    return f"CASE {' '.join(cases)} ELSE {quote_label(labels[-1])} END"


def _list_probabilities(plain: PlainBoosted) -> list[str]:
    if plain.link.name == CERTAIN:
        return ["1e0"]
    if plain.link.name == VOTES:
        return _share_votes(plain)
    if plain.link.name == LOGIT:
        p = "1e0 / (1e0 + EXP(-s0))"
        return [f"1e0 - {p}", p]
    n = plain.ensemble.n_outputs
    # By the differences to each score: no exponential overflows before its probability is 0.
    return [f"1e0 / ({_add_up([_write_exp(f's{i} - s{k}') for i in range(n)])})" for k in range(n)]


def _share_votes(plain: PlainBoosted) -> list[str]:
    """Return how votes become probabilities; see `lhtree.model.votes`."""
    offset, exponent = map(quote_number, plain.link.calibration)
    votes = [f"s{k}" for k in range(plain.ensemble.n_outputs)]
    if plain.link.is_mirrored:
        votes = ["1e0 - s0", "s0"]
    shares = [f"({vote} + {offset})" for vote in votes]
    if plain.library:
        shares = [f"POWER({share}, {exponent})" for share in shares]
    return [f"{share} / ({_add_up(shares)})" for share in shares]


def _write_exp(exponent: str) -> str:
    return f"EXP(CASE WHEN {exponent} > 700e0 THEN 700e0 ELSE {exponent} END)"
