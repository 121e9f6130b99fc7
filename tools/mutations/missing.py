"""Bugs of missing values."""

from mutations.mutation import Mutation


def in_core(name: str, old: str, new: str) -> Mutation:
    """Return a bug of the native core that only missing values meet."""
    return Mutation(name, "native", old, new, ("test_missing.py", "test_bad_input.py"))


# fmt: off
MUTATIONS = (
    in_core("missing-mean", "sum0 = load(sum + column), square0 = load(square + column);\n"
            "  Lanes present0 = load(present + column);",
            "sum0 = load(sum + column), square0 = load(square + column);\n"
            "  Lanes present0 = fill(0.0);"),
    in_core("missing-weight", "fill_present(value, is_weighted ? weight[i] : 1.0)",
            "fill_present(value, 1.0)"),
    in_core("missing-counted", "has_missing() ? present_rest[j] : weight_rest", "weight_rest"),
    in_core("missing-subtract", "whole.present_target[j] -= part.present_target[j];", ""),
    in_core("missing-subtract-weighted", "!(moments.has_missing() && weight_)", "true"),
    in_core("missing-zero", "fill_missing(load(row + column), load(form.center + column))",
            "fill_missing(load(row + column), fill(0.0))"),
    in_core("missing-zero-last", "fill_missing(load(row + n_whole), last_center)",
            "fill_missing(load(row + n_whole), fill(0.0))"),
    in_core("missing-zero-sparse", "(value == value ? value : form.center[k])",
            "(value == value ? value : 0.0)"),
    in_core("missing-zero-trial", "fill_missing(value, n, moments.mean());",
            "fill_missing(value, n, 0.0);"),
    in_core("missing-in-leaf",
            "lane_count, form.weight[k] * (offset == offset ? offset : 0.0));",
            "lane_count, form.weight[k] * (offset == offset ? offset : -center[k]));"),
    in_core("missing-side-trial", "!present_.has_both_sides() ||", "present_.size() < 2 ||"),
    in_core("missing-weight-trial",
            "moments.weight_rest = std::accumulate(middle, present_.weight.end(), 0.0);", ""),
    in_core("missing-constant", "value < first || value > first", "!(value == first)"),
    in_core("missing-fisher-contrast",
            "contrast[i] *= column.weight_target * column.weight_rest / pairs;", ""),
    in_core("missing-fisher-deviation", "deviation[i] *= std::sqrt(present);", ""),
    in_core("missing-fisher-sum", "return sum() * (all / weight());", "return sum();"),
    in_core("missing-fisher-square", "return square + (all - weight()) * shift * shift;",
            "return square;"),
    in_core("missing-few", "vote_row(forest, block.row(i), block.has_missing,",
            "vote_row(forest, block.row(i), false,"),
    in_core("missing-scale-first", "if (value != value) continue;\n      first", "first"),
    in_core("missing-beyond", "std::abs(static_cast<double>(row[j])) > limit",
            "!(std::abs(static_cast<double>(row[j])) <= limit)"),
)
