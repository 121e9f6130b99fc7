"""A model of the exact engine as one C99 file, for small devices."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.export.boosted import PlainBoosted, UsedColumns
from lhtree.export.writing_c import quote_string, write_numbers, write_table, write_whole
from lhtree.model.ensemble_splits import CATEGORY, HYPERPLANE, LEAF, NUMBER
from lhtree.model.link import CERTAIN, LOG, LOGIT, SOFTMAX, SORTED, VOTES

HEAD = """\
/* A model made by lhtree. C99, no dependencies{library}, no heap.
 *
{api} *
 * A row holds {prefix}_n_columns numbers, NaN where a value is missing; a column of categories
 * holds codes. Compile without fused multiply-add (-ffp-contract=off) and without -ffast-math:
 * then scores are those of the package bit for bit.
 */
{include}
enum {{
{sizes}
}};

{declarations}

{tables}
"""

FLOOR = """
/* The largest integer up to x; doubles beyond 2**52 are integers. */
static double {prefix}_floor(double x) {{
  double whole;
  if (!(x > -4503599627370496.0 && x < 4503599627370496.0)) return x;
  whole = (double)(int64_t)x;
  return whole > x ? whole - 1.0 : whole;
}}
"""

PLACE = """
/* The value of used column k on its grid; `fill` if it is missing. */
static int64_t {prefix}_place(const double *row, int k, int64_t fill) {{
  const double x = row[{prefix}_used[k]];
  const double z = {prefix}_floor(x * {prefix}_first[k] * {prefix}_second[k] + 0.5)
    - {prefix}_origin[k];
  if (x != x) return fill;
  if (z < (double){prefix}_low[k]) return {prefix}_low[k];
  if (z > (double){prefix}_high[k]) return {prefix}_high[k];
  return (int64_t)z;
}}

static int {prefix}_is_below(const double *row, long plane) {{
  int64_t sum = 0;
  long k;
  for (k = {prefix}_term_start[plane]; k < {prefix}_term_start[plane + 1]; ++k)
    sum += {prefix}_coefficient[k] * {prefix}_place(row, {prefix}_term[k], {prefix}_fill[k]);
  return sum < {prefix}_cut[plane];
}}
"""

CODES = """
static int {prefix}_has_code(double x, int n_codes, long split) {{
  const int is_known = x >= 0.0 && x < n_codes && {prefix}_floor(x) == x;
  const int code = is_known ? (int)x : n_codes;
  return {prefix}_codes[{code_bytes} * split + code / 8] >> code % 8 & 1;
}}
"""

WALK = """
static int {prefix}_goes_left(const double *row, long node) {{
  const long at = {prefix}_position[node];
  switch ({prefix}_kind[node]) {{
{cases}
  }}
  return 1;
}}

void {prefix}_score(const double *row, double *score) {{
  int64_t sum[{prefix}_n_scores];
  long tree;
  int k;
  for (k = 0; k < {prefix}_n_scores; ++k) sum[k] = {prefix}_base[k];
  for (tree = 0; tree < {prefix}_n_trees; ++tree) {{
    const long root = {prefix}_tree_start[tree];
    long node = root;
    while ({prefix}_left[node] >= 0)
      node = root + {prefix}_left[node] + !{prefix}_goes_left(row, node);
{adding}
  }}
  for (k = 0; k < {prefix}_n_scores; ++k)
    score[k] = ((double)sum[k]{mean} + {origin}) * {scale_1} * {scale_2};
}}
"""

ADD_TO_ALL = """\
    for (k = 0; k < PREFIX_n_scores; ++k)
      sum[k] += PREFIX_value[PREFIX_n_scores * PREFIX_position[node] + k];"""
ADD_IN_TURN = """\
    sum[tree % PREFIX_n_scores] += PREFIX_value[PREFIX_position[node]];"""

CASES = {
    NUMBER: """\
    case 1: {
      const double x = row[PREFIX_column[node]];
      return x != x ? PREFIX_missing_left[node] : x < PREFIX_threshold[at];
    }""",
    CATEGORY: """\
    case 2: {
      const int column = PREFIX_column[node];
      return PREFIX_has_code(row[column], PREFIX_n_codes[column], at);
    }""",
    HYPERPLANE: """\
    case 3:
      return PREFIX_is_below(row, at);""",
}

NUMBERS = """
double {prefix}_predict(const double *row) {{
  double score[1];
  {prefix}_score(row, score);
  return {prediction};
}}
"""

QUANTILES = """
void {prefix}_predict(const double *row, double *prediction) {{
  int i, k;
  {prefix}_score(row, prediction);
  for (i = 1; i < {prefix}_n_scores; ++i)
    for (k = i; k > 0 && prediction[k] < prediction[k - 1]; --k) {{
      const double larger = prediction[k - 1];
      prediction[k - 1] = prediction[k];
      prediction[k] = larger;
    }}
}}
"""

CLASSES = """
int {prefix}_predict(const double *row) {{
  double score[{prefix}_n_scores];
  int best = 0{counter};
  {prefix}_score(row, score);
{choice}
  return best;
}}

void {prefix}_predict_proba(const double *row, double *probability) {{
{probability}}}

const char *{prefix}_class_name(int number) {{ return {prefix}_classes[number]; }}
"""

CHOICES = {
    CERTAIN: "",
    LOGIT: "  best = score[0] > 0.0;",
    SOFTMAX: """\
  for (k = 1; k < PREFIX_n_classes; ++k)
    if (score[k] > score[best]) best = k;""",
}
CHOICES[VOTES] = CHOICES[SOFTMAX]
CHOICE_OF_PAIR = "  best = score[0] > 0.5;"

PROBABILITIES = {
    CERTAIN: """\
  (void)row;
  probability[0] = 1.0;
""",
    LOGIT: """\
  double score[1];
  PREFIX_score(row, score);
  probability[1] = 1.0 / (1.0 + exp(-score[0]));
  probability[0] = 1.0 - probability[1];
""",
    SOFTMAX: """\
  double largest, total = 0.0;
  int k;
  PREFIX_score(row, probability);
  largest = probability[0];
  for (k = 1; k < PREFIX_n_classes; ++k)
    if (probability[k] > largest) largest = probability[k];
  for (k = 0; k < PREFIX_n_classes; ++k) {
    probability[k] = exp(probability[k] - largest);
    total += probability[k];
  }
  for (k = 0; k < PREFIX_n_classes; ++k) probability[k] /= total;
""",
}
VOTES_TO_PROBABILITIES = """\
  double largest = 0.0, total = 0.0;
  int k;
  PREFIX_score(row, probability);
{other}  for (k = 0; k < PREFIX_n_classes; ++k) {{
    probability[k] += {offset};
    if (probability[k] > largest) largest = probability[k];
  }}
  for (k = 0; k < PREFIX_n_classes; ++k) {{
    probability[k] = {power};
    total += probability[k];
  }}
  (void)largest;
  for (k = 0; k < PREFIX_n_classes; ++k) probability[k] /= total;
"""
OTHER_VOTE = """\
  probability[1] = probability[0];
  probability[0] = 1.0 - probability[1];
"""

NAMES = """
const char *{prefix}_column_name(int number) {{ return {prefix}_columns[number]; }}
"""

CATEGORY_NAMES = """
static int {prefix}_equals(const char *a, const char *b) {{
  while (*a && *a == *b) ++a, ++b;
  return *a == *b;
}}

double {prefix}_code(int column, const char *category) {{
  int k;
  for (k = 0; k < {n_categories}; ++k)
    if ({prefix}_category_column[k] == column && {prefix}_equals({prefix}_category[k], category))
      return {prefix}_category_code[k];
  return NAN;
}}
"""

API_CLASSES = """\
 *   int {prefix}_predict(const double *row);
 *       number of the most probable class of a row, the first of equal ones
 *   void {prefix}_predict_proba(const double *row, double *probability);
 *       probabilities of the {prefix}_n_classes classes
 *   void {prefix}_score(const double *row, double *score);
 *       the {prefix}_n_scores raw scores
 *   const char *{prefix}_class_name(int number);
 *   const char *{prefix}_column_name(int number);
"""
API_NUMBERS = """\
 *   double {prefix}_predict(const double *row);
 *       the predicted number of a row
 *   void {prefix}_score(const double *row, double *score);
 *       the {prefix}_n_scores raw scores
 *   const char *{prefix}_column_name(int number);
"""
API_QUANTILES = """\
 *   void {prefix}_predict(const double *row, double *prediction);
 *       the {prefix}_n_scores predicted quantiles of a row: {levels}
 *   void {prefix}_score(const double *row, double *score);
 *       the same as the trees give them, not sorted
 *   const char *{prefix}_column_name(int number);
"""
API_CODES = """\
 *   double {prefix}_code(int column, const char *category);
 *       code of a category in UTF-8; NaN if it is unknown
"""


def write_boosted(plain: PlainBoosted, prefix: str) -> str:
    """Return the text of the file."""
    kinds = set(plain.ensemble.index.kind.tolist())
    parts = [_write_head(plain, prefix)]
    if kinds & {HYPERPLANE, CATEGORY}:
        parts.append(FLOOR.format(prefix=prefix))
    if HYPERPLANE in kinds:
        parts.append(PLACE.format(prefix=prefix))
    if CATEGORY in kinds:
        parts.append(CODES.format(prefix=prefix, code_bytes=_count_code_bytes(plain)))
    cases = [CASES[kind].replace("PREFIX", prefix) for kind in sorted(kinds - {LEAF})]
    first, second = (factor.hex() for factor in plain.scale)
    parts.append(
        WALK.format(
            prefix=prefix,
            cases="\n".join(cases) or "    default: (void)row, (void)at;",
            mean=_divide(plain),
            adding=_add_values(plain).replace("PREFIX", prefix),
            origin=plain.ensemble.origin.hex(),
            scale_1=first,
            scale_2=second,
        )
    )
    parts.append(_write_predictions(plain, prefix))
    parts.append(NAMES.format(prefix=prefix))
    if plain.columns.categories:
        n_categories = len(_list_categories(plain))
        parts.append(CATEGORY_NAMES.format(prefix=prefix, n_categories=n_categories))
    return "".join(parts)


def _write_head(plain: PlainBoosted, prefix: str) -> str:
    has_codes = bool(plain.columns.categories)
    has_infinity = bool(np.isinf(plain.ensemble.threshold).any())
    uses_math = bool(plain.library) or has_codes or has_infinity
    api = API_CLASSES if plain.link.is_of_classes else API_NUMBERS
    api = API_QUANTILES if plain.link.levels else api
    levels = ", ".join(map(str, plain.link.levels))
    api = (api + API_CODES * has_codes).format(prefix=prefix, levels=levels)
    declared = [line[5:] for line in api.splitlines() if line.endswith(";")]
    ensemble = plain.ensemble
    sizes = {
        "n_columns": ensemble.n_features,
        "n_scores": ensemble.n_outputs,
        "n_trees": len(ensemble),
    }
    if plain.link.classes is not None:
        sizes["n_classes"] = len(plain.link.classes)
    return HEAD.format(
        prefix=prefix,
        library=f" but the C library's {plain.library}" if plain.library else "",
        api=api,
        include="#include <math.h>\n" * uses_math + "#include <stdint.h>\n",
        sizes=",\n".join(f"  {prefix}_{name} = {size}" for name, size in sizes.items()),
        declarations="\n".join(declared),
        tables="\n".join(_list_tables(plain, prefix)),
    )


def _write_predictions(plain: PlainBoosted, prefix: str) -> str:
    link = plain.link.name
    if link == SORTED:
        return QUANTILES.format(prefix=prefix)
    if plain.link.classes is None:
        prediction = "exp(score[0])" if link == LOG else "score[0]"
        return NUMBERS.format(prefix=prefix, prediction=prediction)
    choice = CHOICE_OF_PAIR if plain.link.is_mirrored and link == VOTES else CHOICES[link]
    probability = _calibrate(plain) if link == VOTES else PROBABILITIES[link]
    return CLASSES.format(
        prefix=prefix,
        counter=", k" if "k" in choice else "",
        choice=choice.replace("PREFIX", prefix),
        probability=probability.replace("PREFIX", prefix),
    )


def _calibrate(plain: PlainBoosted) -> str:
    """Return how votes become probabilities; see `lhtree.model.votes`."""
    offset, exponent = plain.link.calibration
    power = "probability[k]"
    if plain.library:
        power = f"pow(probability[k] / largest, {exponent.hex()})"
    other = OTHER_VOTE if plain.link.is_mirrored else ""
    return VOTES_TO_PROBABILITIES.format(other=other, offset=offset.hex(), power=power)


def _add_values(plain: PlainBoosted) -> str:
    is_in_turn = plain.ensemble.n_turns > 1
    return ADD_IN_TURN if is_in_turn else ADD_TO_ALL


def _list_tables(plain: PlainBoosted, prefix: str) -> Iterator[str]:
    ensemble = plain.ensemble
    kinds = set(ensemble.index.kind.tolist())
    if plain.link.classes is not None:
        names = [quote_string(str(label)) for label in plain.link.classes.tolist()]
        yield write_table(f"const char *const {prefix}_classes", names)
    columns = map(quote_string, plain.column_names)
    yield write_table(f"const char *const {prefix}_columns", columns)
    whole: dict[str, NDArray[Any]] = {
        "base": ensemble.start,
        "tree_start": ensemble.tree_start,
        "left": ensemble.left,
        "kind": ensemble.index.kind,
        "position": ensemble.index.position,
        "value": ensemble.value.ravel(),
    }
    if kinds & {NUMBER, CATEGORY}:
        whole["column"] = ensemble.column
    if NUMBER in kinds:
        whole["missing_left"] = ensemble.missing_left
        yield write_numbers(f"{prefix}_threshold", ensemble.threshold)
    if CATEGORY in kinds:
        whole["n_codes"] = ensemble.columns.n_codes
        n_bytes = _count_code_bytes(plain)
        codes = ensemble.codes.view(np.uint8).reshape(-1, 32)[:, :n_bytes].ravel()
        yield write_table(f"const unsigned char {prefix}_codes", map(str, codes.tolist()))
    if HYPERPLANE in kinds:
        used = UsedColumns.of(ensemble)
        for name in ("first", "second", "origin"):
            yield write_numbers(f"{prefix}_{name}", getattr(used, name))
        whole |= {
            "used": used.column,
            "low": used.low,
            "high": used.high,
            "term_start": ensemble.term_start,
            "term": used.position,
            "coefficient": ensemble.coefficient,
            "fill": ensemble.fill,
            "cut": ensemble.cut,
        }
    for name, array in whole.items():
        yield write_whole(f"{prefix}_{name}", array)
    if plain.columns.categories:
        column, code, text = zip(*_list_categories(plain), strict=True)
        yield write_whole(f"{prefix}_category_column", np.array(column))
        yield write_whole(f"{prefix}_category_code", np.array(code))
        yield write_table(f"const char *const {prefix}_category", map(quote_string, text))


def _divide(plain: PlainBoosted) -> str:
    n_averaged = plain.ensemble.n_averaged
    return f" / {n_averaged}.0" if n_averaged > 1 else ""


def _count_code_bytes(plain: PlainBoosted) -> int:
    """Return how many bytes hold the codes of any column, and that of missing ones."""
    return int(plain.ensemble.columns.n_codes.max()) // 8 + 1


def _list_categories(plain: PlainBoosted) -> list[tuple[int, int, str]]:
    """Return column, code and text of all categories."""
    source = plain.columns.list_sources().tolist()
    listed = [
        (source.index(category.feature), code, str(value))
        for category in plain.columns.categories
        for value, code in category.list_slots().items()
    ]
    return listed or [(-1, 0, "")]
