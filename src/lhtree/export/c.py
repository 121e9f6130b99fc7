"""A model as one C99 file, for small devices."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from lhtree.estimators.lookup import check_model
from lhtree.export.boosted import read_boosted
from lhtree.export.boosted_c import write_boosted
from lhtree.export.plain import PlainModel, read_model
from lhtree.export.writing_c import (
    check_prefix,
    quote_string,
    write_numbers,
    write_table,
    write_whole,
)
from lhtree.files import PathLike, write_atomically
from lhtree.model.link import is_exact
from lhtree.model.prediction import MOST_EXTREME, TIE_WEIGHT

MOST_TERMS = 250_000  # coefficients of a file: about 12 MB of text

PROGRAM = """\
/* A classifier made by lhtree. C99, no dependencies{library}, no heap.
 *
 *   int {prefix}_predict(const double *row);
 *       number of the most probable class of a row, the first of equal ones
 *   void {prefix}_predict_proba(const double *row, double *probability);
 *       probabilities of the {prefix}_n_classes classes, which sum to one
 *   const char *{prefix}_class_name(int number);
 *   const char *{prefix}_column_name(int number);
 *
 * A row holds {prefix}_n_columns numbers, NaN where a value is missing. Compile without
 * fused multiply-add (-ffp-contract=off) and without -ffast-math: then the results
 * are those of the package bit for bit.
 */
{include}
enum {{
  {prefix}_n_classes = {n_classes},
  {prefix}_n_columns = {n_columns},
  {prefix}_n_trees = {n_trees},
  {prefix}_n_trees_per_class = {n_estimators},
  {prefix}_n_positive_classes = {n_positive_classes}
}};

int {prefix}_predict(const double *row);
void {prefix}_predict_proba(const double *row, double *probability);
const char *{prefix}_class_name(int number);
const char *{prefix}_column_name(int number);

{tables}

/* Sums over the trees of each class. Of two classes only the second has trees. */
struct {prefix}_sums {{
  double vote[{prefix}_n_positive_classes];
  double distance[{prefix}_n_positive_classes]; /* signed, from the nearest hyperplane */
  double complement;
}};

/* Eight partial sums, by column, are how the package adds; the order matters. */
static double {prefix}_combine(const double *sum) {{
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}}

static double {prefix}_project(const double *z, long node) {{
  double sum[8] = {{0.0}};
  long k;
  for (k = {prefix}_start[node]; k < {prefix}_start[node + 1]; ++k) {{
    const int j = {prefix}_column[k];
    sum[j % 8] += {prefix}_weight[k] * (z[j] == z[j] ? z[j] : {prefix}_center[k]);
  }}
  return {prefix}_combine(sum);
}}

static double {prefix}_membership(const double *z, long node) {{
  double sum[8] = {{0.0}}, membership;
  const double value = {prefix}_constant[node];
  long k;
  if ({prefix}_start[node] == {prefix}_start[node + 1]) return value;
  for (k = {prefix}_start[node]; k < {prefix}_start[node + 1]; ++k) {{
    const int j = {prefix}_column[k];
    const double offset = z[j] - {prefix}_center[k];
    sum[j % 8] += {prefix}_weight[k] * (offset == offset ? offset : 0.0);
  }}
  membership = value + {prefix}_combine(sum);
  if (membership != membership) return value;
  return membership < 0.0 ? 0.0 : membership > 1.0 ? 1.0 : membership;
}}

static void {prefix}_walk(const double *z, int tree, struct {prefix}_sums *sums) {{
  const long root = {prefix}_tree_start[tree];
  const int positive_class = tree % {prefix}_n_positive_classes;
  long node = root;
  double membership, nearest = 0.0, plain = 0.0;
  while ({prefix}_left[node] >= 0) {{
    const double score = {prefix}_project(z, node), threshold = {prefix}_constant[node];
    const double gap = score < threshold ? threshold - score : score - threshold;
    const double distance = gap / {prefix}_norm[node];
    if (node == root || distance < nearest) nearest = distance;
    if (node == root || gap < plain) plain = gap;
    node = root + {prefix}_left[node] + !(score < threshold);
  }}
  membership = {prefix}_membership(z, node);
  sums->vote[positive_class] += {by_margin} ? membership * plain : membership;
  sums->distance[positive_class] += (2.0 * membership - 1.0) * nearest;
  sums->complement += (1.0 - membership) * plain;
}}

static double {prefix}_break_tie(double distance) {{
  const double size = distance < 0.0 ? -distance : distance;
  const double rank = distance < 0.0 ? 1.0 / (1.0 + size) : 1.0 + size / (1.0 + size);
  return {tie_weight} * rank / 2.0;
}}

/* Add as NumPy does: eight sums, or halves of long arrays. */
static double {prefix}_add(const double *value, int n) {{
  double sum[8], total;
  int i, j;
  if (n < 8) {{
    total = value[0];
    for (i = 1; i < n; ++i) total += value[i];
    return total;
  }}
  if (n > 128) {{
    const int half = n / 2 - n / 2 % 8;
    return {prefix}_add(value, half) + {prefix}_add(value + half, n - half);
  }}
  for (j = 0; j < 8; ++j) sum[j] = value[j];
  for (i = 8; i + 8 <= n; i += 8)
    for (j = 0; j < 8; ++j) sum[j] += value[i + j];
  total = ((sum[0] + sum[1]) + (sum[2] + sum[3])) + ((sum[4] + sum[5]) + (sum[6] + sum[7]));
  for (; i < n; ++i) total += value[i];
  return total;
}}

static void {prefix}_score_sums(const struct {prefix}_sums *sums, double *score) {{
  int k;
  for (k = 0; k < {prefix}_n_positive_classes; ++k) {{
    const double vote = {by_margin} ? sums->vote[k] : sums->vote[k] / {prefix}_n_trees_per_class;
    const double distance = sums->distance[k] / {prefix}_n_trees_per_class;
    if ({prefix}_n_classes == 2) {{
      score[0] = ({by_margin} ? sums->complement : 1.0 - vote) + {prefix}_break_tie(-distance);
      score[{prefix}_n_classes - 1] = vote + {prefix}_break_tie(distance);
    }} else {{
      score[k] = vote + {prefix}_break_tie(distance);
    }}
  }}
}}

/* Scores of the classes; the largest one is predicted. */
static void {prefix}_score_row(const double *row, double *score) {{
  struct {prefix}_sums sums = {{{{0.0}}, {{0.0}}, 0.0}};
  double z[{prefix}_n_columns];
  int j, tree;
  for (j = 0; j < {prefix}_n_columns; ++j) {{
    z[j] = (row[j] - {prefix}_mean[j]) / {prefix}_std[j];
    if (z[j] > {limit}) z[j] = {limit};
    if (z[j] < -{limit}) z[j] = -{limit};
  }}
  for (tree = 0; tree < {prefix}_n_trees; ++tree) {prefix}_walk(z, tree, &sums);
  {prefix}_score_sums(&sums, score);
}}

static void {prefix}_normalize(double *score) {{
  const double total = {prefix}_add(score, {prefix}_n_classes);
  int k;
  for (k = 0; k < {prefix}_n_classes; ++k) score[k] /= total;
}}

void {prefix}_predict_proba(const double *row, double *probability) {{
{scores}  {prefix}_normalize(probability);
}}

int {prefix}_predict(const double *row) {{
  double probability[{prefix}_n_classes];
  int k, best = 0;
  {prefix}_score_row(row, probability);
  {prefix}_normalize(probability);
  for (k = 1; k < {prefix}_n_classes; ++k)
    if (probability[k] > probability[best]) best = k;
  return best;
}}

const char *{prefix}_class_name(int number) {{ return {prefix}_classes[number]; }}

const char *{prefix}_column_name(int number) {{ return {prefix}_columns[number]; }}
"""

CALIBRATION = """\
  double best = 0.0;
  int k;
  {prefix}_score_row(row, probability);
  for (k = 0; k < {prefix}_n_classes; ++k) {{
    probability[k] += {offset};
    if (probability[k] > best) best = probability[k];
  }}
  for (k = 0; k < {prefix}_n_classes; ++k)
    probability[k] = pow(probability[k] / best, {exponent});
"""


def to_c(model: Any, path: PathLike | None = None, *, prefix: str = "lhtree") -> str:
    """Write a fitted model as one C99 file that needs no library and no heap.

    Its functions predict the label and the probabilities of one row, bit for bit as the
    package does (with ``calibration``, which needs ``pow`` of the C library, up to the last
    digit). It suits single trees, small forests and boosted models. A row holds the columns
    of ``column_names_``: for a table with categories, the indicator columns.

    Of a boosted model the raw scores are the same bit for bit, and so are labels and
    predicted numbers; probabilities, and predictions that are exponentials, need ``exp`` of
    the C library and agree up to the last digits. A column of categories holds codes: the
    function ``lhtree_code`` returns that of a category.

    Parameters
    ----------
    model : classifier or regressor of this package
        A fitted model.
    path : str or path-like, optional
        The file to write; an existing one is replaced once the new one is complete.
    prefix : str, default="lhtree"
        Start of all names in the file, so that a program can use several models.

    Returns
    -------
    str
        The text of the file.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from lhtree import LHTClassifier
    >>> from lhtree.export import to_c
    >>> text = to_c(LHTClassifier().fit(*load_iris(return_X_y=True)), prefix="iris")
    >>> "int iris_predict(const double *row);" in text
    True
    """
    check_model(model)
    check_prefix(prefix)
    if is_exact(model):
        boosted = read_boosted(model)
        _check_size(boosted.n_numbers, "numbers")
        text = write_boosted(boosted, prefix)
    else:
        plain = read_model(model)
        _check_size(len(plain.forest.weight), "coefficients")
        text = _write(plain, prefix)
    if path is not None:
        write_atomically(path, text)
    return text


def _check_size(n_numbers: int, noun: str) -> None:
    if n_numbers > MOST_TERMS:
        raise ValueError(
            f"model has {n_numbers} {noun}, more than the {MOST_TERMS} that a C file should "
            "hold; use a single tree or fewer estimators, keep the trees small, or export to ONNX."
        )


def _write(plain: PlainModel, prefix: str) -> str:
    offset, exponent = (value.hex() for value in plain.calibration)
    scores = f"  {prefix}_score_row(row, probability);\n"
    if plain.is_calibrated:
        scores = CALIBRATION.format(prefix=prefix, offset=offset, exponent=exponent)
    return PROGRAM.format(
        prefix=prefix,
        library=" but the C library's pow" if plain.is_calibrated else "",
        include="#include <math.h>\n" if plain.is_calibrated else "",
        n_classes=plain.n_classes,
        n_columns=plain.forest.n_features,
        n_trees=len(plain.forest),
        n_estimators=plain.n_estimators,
        n_positive_classes=plain.n_trees_per_estimator,
        by_margin=int(plain.by_margin),
        tie_weight=TIE_WEIGHT.hex(),
        limit=MOST_EXTREME.hex(),
        scores=scores,
        tables="\n".join(_list_tables(plain, prefix)),
    )


def _list_tables(plain: PlainModel, prefix: str) -> Iterable[str]:
    forest = plain.forest
    names = [str(label) for label in plain.classes.tolist()]
    yield write_table(f"const char *const {prefix}_classes", map(quote_string, names))
    yield write_table(f"const char *const {prefix}_columns", map(quote_string, plain.column_names))
    integers: dict[str, NDArray[Any]] = {
        "tree_start": forest.tree_start,
        "left": forest.left,
        "start": forest.start,
        "column": forest.list_columns(),
    }
    for name, array in integers.items():
        yield write_whole(f"{prefix}_{name}", array)
    numbers = {
        "weight": forest.weight,
        "center": forest.center,
        # One table for both saves memory: splits use the threshold only, leaves the value.
        "constant": np.where(forest.left < 0, forest.value, forest.threshold),
        "norm": forest.norm,
        "mean": forest.column_mean,
        "std": forest.column_std,
    }
    for name, array in numbers.items():
        yield write_numbers(f"{prefix}_{name}", array)
