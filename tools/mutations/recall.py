"""Bugs of projections that are guessed."""

from mutations.mutation import Mutation


def in_recall(name: str, old: str, new: str) -> Mutation:
    """Return a bug of the guesses."""
    return Mutation(name, "native", old, new, ("test_recall.py",))


# fmt: off
MUTATIONS = (
    in_recall("recall-no-error", "reach * static_cast<double>(length)", "0.0"),
    in_recall("recall-no-residual", "residual * (1 + 1e-9) + tiny", "tiny"),
    in_recall("recall-no-shift", "static_cast<double>(known) + shift;",
              "static_cast<double>(known);"),
    in_recall("recall-no-factor", "return factor * static_cast<double>(known)",
              "return static_cast<double>(known)"),
    in_recall("recall-targets-only", "std::max(target.min, rest.min),", "target.min,"),
    in_recall("recall-middle-unsure", "      project_listed(rows, bench);\n",
              "      bench.n_listed = 0;\n"),
    in_recall("recall-pure-other-side", "rule == Rule::n2 || rule == Rule::n4",
              "rule == Rule::n2"),
    in_recall("recall-other-anchor", "node->anchor = parent.anchor;", ""),
    in_recall("recall-near-length", "near_length_[i] = lengths_.length[row[i]];",
              "near_length_[i] = ShortLength(0.0f);"),
    in_recall("recall-first-is-longest", "length[i] <= longest ? longest : length[i]",
              "i > 0 ? longest : length[i]"),
    in_recall("recall-roughly-targets-only", "std::max(target.min, rest.min) + error",
              "target.min + error"),
    in_recall("recall-roughly-no-error", "return transfer_.find_error(lengths_.longest);",
              "return 0.0;"),
    in_recall("recall-known-not-moved", "if (known_) move_left(",
              "if (false) move_left("),
    in_recall("remember-no-middle", "keep_known(score, n, middle_score, rows.known + begin);",
              "keep_known(score, n, 0.0, rows.known + begin);"),
    in_recall("remember-first-piece", "project_part({rows.target.row + begin, n, nullptr},",
              "project_part({rows.target.row, n, nullptr},"),
    in_recall("recall-overflow",
              "std::isfinite(known) ? known : std::numeric_limits<float>::quiet_NaN()", "known"),
    in_recall("recall-unsure-left",
              "bench.is_left[bench.number[k]] = split.score[k] < split.threshold.value;", ";"),
    # Chains of splits that are asked at once.
    in_recall("chain-no-error", "slack * (rounding + ", "slack * (0.0 * rounding + "),
    in_recall("chain-long-rows", "rough.error[i] = is_usual ?", "rough.error[i] = true ?"),
    in_recall("chain-other-child", "return left + (next_is_left != is_next);",
              "return left + (next_is_left == is_next);"),
    in_recall("chain-not-sure", "choose_below(error, tile.first, tile.exit, fill_floats(-1.0f))",
              "tile.exit"),
    in_recall("chain-not-made-sure", "gap[v] = score < threshold ? -size : size;", ""),
    in_recall("chain-first-only", "std::min({second, other_second, std::max(first, other_first)})",
              "far"),
    in_recall("chain-second-here", "find_min(find_max(met, tile.first), tile.second)",
              "tile.second"),
    in_recall("chain-past-exit", "choose_below(tile.exit, number, far, size)", "size"),
    in_recall("chain-one-row", "row[std::min(begin + i, n_rows - 1)]", "row[begin]"),
    in_recall("chain-not-transposed", "  transpose(gap);\n", ""),
    in_recall("chain-close-second", "second - first > 2.0f * rough_.error[i]",
              "second - first > 0.0f * rough_.error[i]"),
    in_recall("chain-other-path", "node = root_ + forest_.left[node] + !(score < threshold);",
              "node = root_ + forest_.left[node] + (score < threshold);"),
    in_recall("chain-last-part", "gap[i] = gap[i] + part[i];", "gap[i] = part[i];"),
    in_recall("chain-guess-is-distance", "distance[i] = find_distance(i);",
              "distance[i] = first;"),
)
