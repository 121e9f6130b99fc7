# ruff: noqa: E501
"""The bugs that tools/mutate.py plants: about two hundred that users would notice."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import chain


@dataclass(frozen=True)
class Mutation:
    """One bug: `old`, which must occur exactly once in the file `path`, becomes `new`."""

    name: str
    path: str
    old: str
    new: str
    tests: tuple[str, ...]  # files below tests/, of which one must fail

    @property
    def is_native(self) -> bool:
        """Whether the core must be built again."""
        return self.path.startswith("native/")


def plant(*tests: str, **bugs: tuple[str, str, str]) -> list[Mutation]:
    """Return bugs that the same tests must catch, from (path, old, new) by name."""
    return [
        Mutation(
            name.replace("_", "-"),
            path if path.startswith("native/") else f"src/lhtree/{path}",
            old,
            new,
            tests,
        )
        for name, (path, old, new) in bugs.items()
    ]


# fmt: off
DATA = (
    plant(
        "data/test_columns.py",
        category_unknown=("data/columns.py", "slots.get(value, -1) for", "slots.get(value, 0) for"),
        category_missing=("data/columns.py", "in values] + [-1]", "in values] + [0]"),
        category_weight=("data/columns.py", "None if weight is None else weight[is_present]", "None"),
        indicator_scaled=("training/local.py", "if not standardize_indicators:", "if False:"),
    ),
    plant(
        "data/test_sparse.py",
        sparse_zeros=("data/sparse.py", "+ rest * mean**2", ""),
        sparse_lanes=("data/sparse.py", "(gap - 1) % LANES + 1", "1"),
    ),
    plant(
        "data/test_weights.py", "estimators/test_classifier.py",
        weights_of_absent_rows=("data/weights.py", "/ len(positive)", "/ len(weight)"),
        weights_of_classes=("data/weights.py", "np.count_nonzero(total) * total", "total"),
    ),
    plant(
        "attacks/test_bad_input.py", "estimators/test_missing.py", "attacks/test_malformed_input.py",
        overflow=("estimators/fit.py", "    backend.check_overflow(backend.weight_sum)\n", ""),
        masked_value=("data/validation.py", "is object else np.nan", "is object else 0"),
        sparse_index=("data/sparse.py", "yield high < length,", "yield True,"),
    ),
)

FIT = (
    plant(
        "estimators/test_params.py", "estimators/test_classifier.py",
        draws_cut_off=("estimators/params.py", "round(float(value) * n_rows)", "int(value * n_rows)"),
        min_samples_cut_off=("estimators/params.py", "math.ceil(value * n_rows)", "int(value * n_rows)"),
        max_features_of_wide=("estimators/params.py", "min(n_features, MOST_DRAWN, ", "min(n_features, "),
        warm_start_seed=("estimators/fit.py", "params.draw_seed() if old is None else old.seed", "params.draw_seed()"),
        failed_fit=("estimators/base.py", "vars(estimator).update(before)", "pass"),
    ),
    plant(
        "estimators/test_threads.py",
        nested_threads=("estimators/params.py", "if backend.nesting_level or _is_dask_task():", "if False:"),
    ),
    plant(
        "estimators/test_small_trees.py",
        leaf_limit=("estimators/params.py", "self.max_leaf_nodes - 1]", "self.max_leaf_nodes - 2]"),
    ),
    plant(
        "training/test_forest_size.py",
        batches_of_any_gain=("training/forest_size.py", "max(before) + LEAST_GAIN", "max(before)"),
    ),
    plant(
        "training/test_shrinkage.py",
        shrinkage_worst=("training/shrinkage.py", "np.argmin(errors)", "np.argmax(errors)"),
        shrinkage_of_all_votes=("training/local.py", "bits[n_estimators or len(bits) :] = 0", "pass"),
        shrinkage_steps=("native/old/shrink.hpp", "factor = weight / (weight", "factor = 0.5 * weight / (weight"),
    ),
    plant(
        "training/test_calibration.py",
        calibration_vote=("training/out_of_bag.py", "calibration.HALF_VOTE / self.voting", "2 * calibration.HALF_VOTE / self.voting"),
        calibration_unused=("model/prediction.py", "keepdims=True)) ** exponent", "keepdims=True))"),
    ),
    plant(
        "training/test_out_of_bag.py", "training/test_backend.py", "data/test_weights.py",
        out_of_bag_rows=("data/table.py", "self.look_up_numbers(np.flatnonzero(is_known))", "np.flatnonzero(is_known)"),
    ),
)

PREDICTION = plant(
    "estimators/test_classifier.py",
    tie_of_two=("model/prediction.py", "[-distance[:, 1],", "[distance[:, 1],"),
    tie_far_away=("model/prediction.py", "signed_distance < 0, 1 / (1 + size)", "signed_distance < 0, 1 - size / (1 + size)"),
    margin_of_first_class=("model/prediction.py", "complement if self.by_margin else", ""),
)

PERSIST = (
    plant(
        "persist/test_persist.py", "persist/test_damaged_files.py",
        file_digest=("persist/container.py", "digest.update(whole[end:])", "pass"),
        file_newer=("persist/state.py", "if number > FORMAT:", "if False:"),
        file_labels=("persist/attributes.py", "np.all(labels[:-1] < labels[1:])", "True"),
        file_attribute=("persist/state.py", "    if unknown:", "    if False:"),
        file_link=("files.py", "Path(os.path.realpath(path))", "Path(path)"),
        file_draft=("files.py", "            draft.unlink(missing_ok=True)\n            raise", "            raise"),
    ),
)

EXPLAIN = (
    plant(
        "explain/test_contributions.py",
        contributions_of_two=("explain/forest_view.py", "contribution[:, 0] = -contribution[:, 1]", "contribution[:, 0] = contribution[:, 1]"),
        contribution_center=("native/old/explain.cpp", "row[column] - parts.center[k];", "row[column];"),
    ),
    plant(
        "explain/test_boosted_contributions.py",
        boosted_contribution_gap=("native/predict/explain.hpp", "value == base::gap ? 0 :", "value == base::gap ? 1 :"),
        boosted_contribution_tie=("native/predict/explain.hpp", "part[k] > part[largest]", "part[k] >= part[largest]"),
        boosted_base_of_two=("explain/boosted_view.py", "Scores(start + base * sign,", "Scores(start + base,"),
    ),
    plant(
        "explain/test_boosted_structure.py",
        boosted_missing_side=("explain/boosted_splits.py", '"left" if split.missing_left else "right"', '"right" if split.missing_left else "left"'),
        boosted_dropped_terms=("explain/boosted_splits.py", "np.subtract.at(cut,", "np.add.at(cut,"),
    ),
    plant(
        "explain/counterfactuals/test_boosted.py",
        boosted_function_fill=("explain/boosted_view.py", "np.isnan(z[column]), fill,", "np.isnan(z[column]), origin,"),
    ),
    plant(
        "explain/test_splits.py",
        split_threshold=("explain/splits.py", "forest.threshold[split] + shift", "forest.threshold[split] - shift"),
    ),
    plant(
        "explain/test_importances.py",
        importances_of_two=("explain/forest_view.py", "importance[0] = importance[1]", "pass"),
    ),
    plant(
        "explain/test_rules.py", "export/test_text.py",
        rule_side=("explain/wording.py", 'comparison = ">=" if is_right else "<"\n    if len', 'comparison = "<" if is_right else ">="\n    if len'),
    ),
    plant(
        "explain/counterfactuals/test_cell_search.py", "explain/counterfactuals/test_problem.py",
        "explain/counterfactuals/test_nearest.py", "explain/counterfactuals/test_polytope.py",
        change_unit=("explain/counterfactuals/polytope.py", "residual[:-1] / residual[-1] * unit", "residual[:-1] / residual[-1]"),
        change_integer=("explain/counterfactuals/problem.py", "np.where(self.is_integer, np.round(raw), raw)", "raw"),
        change_threshold=("explain/counterfactuals/hyperplanes.py", "weight @ center - tree.threshold[node]", "weight @ center"),
    ),
)

EXPORT = (
    plant(
        "export/test_export.py",
        onnx_left=("export/onnx.py", 'graph.add("Less", score, threshold)', 'graph.add("LessOrEqual", score, threshold)'),
        onnx_missing=("export/onnx.py", 'graph.add("IsNaN", values), center, values)', 'graph.add("IsNaN", values), graph.constant(0.0), values)'),
        onnx_tie=("export/onnx.py", 'graph.add("Neg", distance), distance', "distance, distance"),
        c_left=("export/c.py", "!(score < threshold)", "!(score <= threshold)"),
        c_lanes=("export/c.py", "sum[j % 8] += {prefix}_weight[k] * (z[j]", "sum[k % 8] += {prefix}_weight[k] * (z[j]"),
        c_missing=("export/c.py", ": {prefix}_center[k])", ": 0.0)"),
        sql_left=("export/sql.py", "WHEN w.gap < 0e0 THEN", "WHEN w.gap <= 0e0 THEN"),
        sql_missing=("export/sql.py", "COALESCE(r.z{j}, n.c{j})", "COALESCE(r.z{j}, 0e0)"),
    ),
)

DASK = plant(
    "dask/test_merging.py", "dask/test_backend.py", "dask/test_estimators.py",
    cluster_order=("dask/merging.py", "other.merged(part) if number % 2 else", "other.merged(part) if number % 2 == 0 else"),
    cluster_keys=("dask/rounds.py", "make_child_key(node.key, bool(side))", "make_child_key(node.key, False)"),
    cluster_depth=("dask/rounds.py", "node.depth + 1,", "node.depth,"),
    cluster_ties=("dask/cuts.py", "(np.diff(hyperplane) != 0) | (np.diff(score) != 0)", "True"),
    cluster_refused=("dask/estimators.py", "        self._check_refused()\n", ""),
)

CORE = (
    plant(
        "native/test_tree.py", "estimators/test_missing.py",
        sums_of_larger_child=("native/old/statistics.hpp", "whole.square[j] -= part.square[j];\n  }", "}"),
        sums_missing=("native/old/statistics.hpp", "has_missing() ? present_rest[j] : weight_rest", "weight_rest"),
        contrast_sign=("native/old/contrast.hpp", "std::max(strongest, std::abs(value))", "std::max(strongest, value)"),
        contrast_ridge=("native/old/contrast.hpp", "x + ridge", "x"),
        threshold_gamma=("native/old/threshold.hpp", "largest >= gamma", "largest > gamma"),
        threshold_middle=("native/old/threshold.hpp", "target.min / 4 + target.max / 4", "target.min / 4 + target.min / 4"),
        threshold_gini=("native/old/gini_cutter.hpp", "find_lowest(least_impurity + same_impurity)", "find_lowest(least_impurity)"),
        draw_rows=("native/old/random.hpp", "(counter + 1) *", "counter *"),
        walker_side=("native/old/score_kernels.cpp", "is_left = score[k] < threshold", "is_left = score[k] <= threshold"),
        walker_clip=("native/old/walker.hpp", "share : std::clamp(share + line, 0.0, 1.0)", "share : share + line"),
        walker_missing=("native/old/projection_kernels.cpp", "(offset == offset ? offset : 0.0));", "offset);"),
    ),
)

EXACT = (
    plant(
        "native/test_exact_cases.py", "native/test_exact_engine.py",
        exact_grid_rounding=("native/base/grid.hpp", "std::clamp(round_half_up(scale(x)) - origin_, low_, high_)", "std::clamp(std::floor(scale(x)) - origin_, low_, high_)"),
        exact_grid_origin=("native/base/grid.hpp", "round_half_up(fine.scale(low / 2 + high / 2))", "round_half_up(fine.scale(low))"),
        exact_grid_clamp=("native/base/grid.hpp", "std::clamp(round_half_up(scale(x)) - origin_, low_, high_)", "std::clamp(round_half_up(scale(x)) - origin_, low_, 2147483647.0)"),
        exact_bins_missing=("native/base/bins.hpp", "return static_cast<std::uint8_t>(n + 1);", "return static_cast<std::uint8_t>(n);"),
        exact_bins_heavy=("native/base/bins.hpp", "is_heavy(k) || is_heavy(k - 1) || slot != before", "is_heavy(k) || slot != before"),
        exact_bins_light=("native/base/bins.hpp", "if (!is_heavy(k)) rank +=", "rank +="),
        exact_words_of_bins=("native/stats/sums.hpp", "rows_per_word = 1 << 13;", "rows_per_word = 1 << 14;"),
        exact_words_of_cuts=("native/split/projection.hpp", "      word[b] = Row{};\n", ""),
        exact_sums_siblings=("native/stats/histogram.hpp", "words[k] -= part.words[k];", "if (k > first) words[k] -= part.words[k];"),
        exact_cuts_first=("native/split/columns.hpp", "while (score_[b] != highest) ++b;", "for (int c = 0; c < n_cuts; ++c) b = score_[c] == highest ? c : b;"),
        exact_cuts_missing=("native/split/columns.hpp", "look_at(j, get_bin, get_cut, n_bins - 1, bin[n_bins], true, best);", "look_at(j, get_bin, get_cut, n_bins - 1, Cell{}, true, best);"),
        exact_categories_order=("native/split/columns.hpp", "static_cast<double>(bin[code].g) / (h + smoothing_)", "static_cast<double>(bin[code].g) / h"),
        exact_direction_center=("native/split/node_columns.hpp", "floor_divide(2 * facts.sum + facts.weight, 2 * facts.weight)", "floor_divide(facts.sum, facts.weight)"),
        exact_direction_shift=("native/split/node_columns.hpp", "std::max(0, bits - direction_bits)", "std::max(0, bits - direction_bits + 1)"),
        exact_direction_shrinkage=("native/split/direction.hpp", "keep * moments(terms[a], terms[b])", "moments(terms[a], terms[b])"),
        exact_projection_ends=("native/split/projection.hpp", "std::clamp<std::int64_t>((projection[i] - start) >> shift, 0, projection_bins - 1)", "((projection[i] - start) >> shift) & (projection_bins - 1)"),
        exact_projection_middle=("native/split/projection.hpp", "here + (next - here + 1) / 2", "here + (next - here) / 2"),
        exact_growth_oldest=("native/grow/tree.hpp", "node_[k].rank > node_[best].rank))", "node_[k].rank >= node_[best].rank))"),
        exact_growth_hyperplanes=("native/grow/tree.hpp", "    if (next.is_tried) return;\n", "    if (next.is_tried || next.depth == 0) return;\n"),
        exact_leaf_value=("native/grow/losses.hpp", "std::clamp(base::round_half_up(value), -most_value, most_value)", "std::clamp(std::trunc(value), -most_value, most_value)"),
        exact_noise_weights=("native/grow/boosting.hpp", "base::multiply(g * g, static_cast<std::uint64_t>(each.weight()))", "base::multiply(g * g, 1)"),
        exact_noise_price=("native/split/columns.hpp", "limits_.category_price * (n - 1)", "limits_.category_price * n"),
        exact_noise_net=("native/split/columns.hpp", "{score_[b] - price, column,", "{score_[b], column,"),
        exact_terms_price=("native/split/projection.hpp", "direction_->hyperplane.n_terms() - 1;", "direction_->hyperplane.n_terms();"),
        exact_terms_net=("native/split/projection.hpp", "best = {net, -1,", "best = {score_, -1,"),
        exact_terms_rows=("native/split/hyperplanes.hpp", "return std::min(settings_.max_terms, static_cast<std::int64_t>(affordable));", "return settings_.max_terms;"),
        exact_rates_growth=("native/grow/boosting.hpp", "static_cast<double>(plan_.first_round + round);", "static_cast<double>(round);"),
        exact_rates_most=("native/grow/boosting.hpp", "return std::min(plan_.learning_rate + plan_.rate_growth * number, plan_.most_rate);", "return plan_.learning_rate + plan_.rate_growth * number;"),
        exact_hyperplane_interval=("native/grow/boosting.hpp", "round % plan_.hyperplane_interval == 0", "(round - plan_.first_round) % plan_.hyperplane_interval == 0"),
        exact_draws_rows=("native/grow/boosting.hpp", "draws_all || hash64(draws, i) < most", "draws_all || hash64(draws, i) <= most / 2"),
        exact_draws_none=("native/grow/boosting.hpp", "    if (drawn_.empty()) divide_rows([](std::uint64_t) { return true; });\n", ""),
        exact_undrawn=("native/grow/boosting.hpp", "static_cast<std::int64_t>(undrawn_.size()));", "0);"),
        exact_held_out_columns=("native/base/columns.hpp", "column.has_gaps = std::isnan(x[i]) && !(held_out && held_out[i]);", "column.has_gaps = std::isnan(x[i]);"),
        exact_held_out_residuals=("native/grow/losses.hpp", "if (!rows.is_held_out(i)) largest", "largest"),
        exact_held_out_losses=("native/grow/losses.hpp", "(rows.is_held_out(i) ? sums[part].held_out", "(false ? sums[part].held_out"),
        exact_classes_subset=("native/grow/softmax.hpp", "if (0 < n && n < k) return;", "if (0 < n) return;"),
        exact_classes_target=("native/grow/softmax.hpp", "(is_positive_[rows.y[i]] ? whole : 0)", "(rows.y[i] == 0 ? whole : 0)"),
        exact_classes_share=("native/grow/softmax.hpp", "step * share, ridge", "step, ridge"),
        exact_classes_weight=("native/grow/softmax.hpp", "-= w * whole;", "-= whole;"),
        exact_classes_shift=("native/grow/softmax.hpp", "std::max(most[i], score[i * k + c])", "most[i]"),
        exact_walk_missing=("native/predict/walk.hpp", "std::isnan(value) ? step.missing_left() != 0", "std::isnan(value) ? step.missing_left() == 0"),
        exact_walk_fill=("native/predict/walk.hpp", "(value == base::gap ? trees.fill[k] : value)", "(value == base::gap ? 0 : value)"),
        exact_walk_blocks=("native/predict/walk_blocks.hpp", "(has_gaps && value == base::gap ? trees.fill[k] : value)", "(has_gaps && value == base::gap ? 0 : value)"),
        exact_walk_cut=("native/predict/walk.hpp", "project(step.payload, z) >= view_", "project(step.payload, z) > view_"),
        exact_walk_few=("native/predict/walk_blocks.hpp", "(value == base::gap ? trees.fill[k] : value)", "(value == base::gap ? 0 : value)"),
        exact_walk_few_cut=("native/predict/walk_blocks.hpp", "return sum < trees.cut[step.payload];", "return sum <= trees.cut[step.payload];"),
        exact_walk_few_missing=("native/predict/walk_blocks.hpp", "return step.missing_left() ? !(x >= t) : x < t;", "return x < t;"),
        exact_walk_gaps=("native/predict/walk_blocks.hpp", "has_gaps_ |= place(", "has_gaps_ = place("),
        exact_walk_side=("native/predict/walk_blocks.hpp", "if (!has_gaps_ && 4 * n >= n_)", "if (4 * n >= n_)"),
        exact_walk_side_cut=("native/predict/walk_blocks.hpp", "return sum[i] < cut;", "return sum[i] <= cut;"),
        exact_walk_rows=("native/predict/walk_blocks.hpp", "visit(begin + row, tree, node, leaf);", "visit(row, tree, node, leaf);"),
        exact_walk_missing_block=("native/predict/walk_blocks.hpp", "return !(x[i] >= t);", "return x[i] < t;"),
        exact_walk_places=("native/predict/walk_blocks.hpp", "return sum[place] < cut;", "return sum[place] <= cut;"),
        exact_lanes_clip=("native/base/raw_rows.hpp", "z < low ? low : z > high ? high : z", "z > high ? high : z"),
        exact_patience=("native/grow/boosting.hpp", "round - best >= plan_.patience", "round - best > plan_.patience"),
        exact_keep=("native/grow/boosting.hpp", "if (plan_.patience > 0) result.trees.keep(best);", ""),
        exact_tolerance=("native/grow/boosting.hpp", "result.validation_loss[best] - plan_.tolerance;", "result.validation_loss[best];"),
    ),
    plant(
        "native/test_exact_forests.py",
        forest_columns_drawn=("native/grow/averaged.hpp", "      std::sort(begin + first, begin + last);\n", ""),
        forest_columns_constant=("native/grow/averaged.hpp", "if (above >= 0) std::copy_n", "if (above >= 0 && word_.size() % 2) std::fill_n(word_.begin() + first, n_words_, ~std::uint64_t{0}); else if (above >= 0) std::copy_n"),
        forest_lanes=("native/grow/averaged.hpp", "      std::fill_n(of_bin, n_lanes, Row{});\n", ""),
        forest_entries_absent=("native/grow/averaged.hpp", "      cell_[table_.layout.column[j].zero_bin] += rest;\n", ""),
        forest_words=("native/grow/averaged.hpp", "      if (!is_small) empty_words(marks);\n", ""),
        forest_term_price=("native/grow/averaged.hpp", "std::max(rest, 0.0) / h * plan_.hyperplanes.unit_weight", "std::max(rest, 0.0) / h"),
        forest_gap_middle=("native/split/columns.hpp", "(present[k] + present[k + 1]) / 2", "present[k]"),
        forest_cuts_missing=("native/split/columns.hpp", "has_missing ? n : n - 1, Cell{}, false, best", "n - 1, Cell{}, false, best"),
        forest_drawn_rows=("native/grow/forest.hpp", "draw_.multiplicity.empty() ? 1 : draw_.multiplicity[k]", "1"),
        forest_leaf_mean=("native/grow/forest.hpp", "base::divide(sum + sum + base::Wide{weight, 0}, 2 * weight)", "base::divide(sum, weight)"),
        forest_leaf_weight=("native/grow/averaged.hpp", "node.sums.h < plan_.min_split_weight", "node.sums.h <= plan_.min_split_weight"),
        forest_leaf_depth=("native/grow/averaged.hpp", "node.depth >= plan_.max_depth", "node.depth > plan_.max_depth"),
        forest_oldest=("native/grow/averaged.hpp", "node_[k].rank > node_[best].rank", "node_[k].rank >= node_[best].rank"),
        forest_leaves=("native/grow/averaged.hpp", "n_leaves < plan_.max_leaf_nodes", "n_leaves <= plan_.max_leaf_nodes"),
        forest_single=("native/grow/averaged.hpp", "single.score > plane.score", "single.score >= plane.score"),
        forest_cells=("native/grow/averaged.hpp", "      cell_[present_[k]] = Sums{};\n", ""),
        forest_two_bins=("native/grow/averaged.hpp", "if (table_.bin(row_[i], j) != first) return true;", "return true;"),
        forest_group_rows=("native/grow/averaged.hpp", "    allowed_.erase(std::unique(allowed_.begin(), allowed_.end()), allowed_.end());\n", ""),
        forest_groups=("native/grow/averaged.hpp", "      right.freedom.groups = left.freedom.groups;\n", "      right.freedom.groups = parent.freedom.groups;\n"),
        forest_bounds=("native/grow/averaged.hpp", "return plan_.constraints.is_monotone() ? &node.freedom.bounds : nullptr;", "return nullptr;"),
        forest_keys=("native/grow/averaged.hpp", "child_key(parent.key, is_right)", "child_key(parent.key, false)"),
        forest_estimator=("native/grow/forest.hpp", "grower->grow(plan.first_estimator * plan.n_trees() + k)", "grower->grow(k)"),
        forest_interval=("native/grow/forest.hpp", "estimator % plan_.hyperplane_interval == 0", "(estimator - plan_.first_estimator) % plan_.hyperplane_interval == 0"),
        forest_clip=("native/grow/forest.hpp", "    if (is_monotone) clip_values(nodes, plan_.constraints, table_.layout, value_);\n", ""),
        forest_gain=("native/grow/forest.hpp", "return plan_.constraints.is_monotone()\n                     ? node.split.score\n                     : node.split.score", "return plan_.constraints.is_monotone()\n                     ? node.split.score - split::compute_score(node.sums, none)\n                     : node.split.score"),
        forest_gradient_half=("native/grow/forest.hpp", "(residual_of(rows_, row) + half) >> shift_", "residual_of(rows_, row) >> shift_"),
        forest_gradient_bits=("native/grow/forest.hpp", "while (largest >> shift_ > most_gradient)", "while (largest >> shift_ >= most_gradient)"),
        forest_draws_weight=("native/grow/forest.hpp", "return n * rows_.weight_of(draw_.row[k]);", "return rows_.weight_of(draw_.row[k]);"),
        forest_lookup=("native/base/raw_rows.hpp", "      if (known != z) return false;\n", ""),
        forest_lookup_rows=("native/base/raw_rows.hpp", "result[k * stride + begin + i] = z[bin[row[begin + i] * d]];", "result[k * stride + begin + i] = z[bin[(begin + i) * d]];"),
    ),
)

BOOSTING = (
    plant(
        "estimators/test_losses.py", "estimators/test_init_score.py",
        boosting_start=("training/targets.py", "[(each + 1) >> 1 for each in twice]", "[each >> 1 for each in twice]"),
        boosting_gamma=("training/targets.py", "1 if is_gamma else 0, WIDEST.max", "0, WIDEST.max"),
        boosting_sorted=("model/link.py", "return np.sort(score.reshape(-1, len(self.levels)), axis=1)", "return score.reshape(-1, len(self.levels))"),
        boosting_offset=("estimators/samples.py", "self.y[position], weight, offset, number)", "self.y[position], weight, None, number)"),
        boosting_settle=("training/boosting_rows.py", "for each in (rows, *others):", "for each in (rows,):"),
        boosting_settle_rate=("training/boosting_rows.py", "rate_growth=0.0, most_rate=1.0, ", ""),
    ),
    plant(
        "estimators/test_refit.py",
        refit_rows=("estimators/boosting/base.py", "prepare(self, training, None, None, params, seed=self._seed,", "prepare(self, training, hold_out(self, training, params, self._seed), None, params, seed=self._seed,"),
        refit_rounds=("training/rounds.py", "n_rounds * n / (n - n_held_out) + 0.5", "n_rounds * n / (n - n_held_out)"),
        refit_limit=("training/rounds.py", "return min(boosting.plan.n_rounds, math.floor(n_rounds * n / (n - n_held_out) + 0.5))", "return math.floor(n_rounds * n / (n - n_held_out) + 0.5)"),
        refit_stopped=("estimators/boosting/base.py", "held_out is not None and not is_stopped and", "held_out is not None and"),
        refit_warm=("estimators/boosting/params.py", "return n_rows <= MANY_ROWS and not self.warm_start", "return n_rows <= MANY_ROWS"),
    ),
    plant(
        "estimators/test_automatic.py",
        automatic_growth=("estimators/boosting/params.py", "RATE_GROWTH if is_between else FASTER_GROWTH, MOST_RATE", "FASTER_GROWTH, MOST_RATE"),
        automatic_rate=("estimators/boosting/params.py", "0.0, float(self.learning_rate)", "0.0, MOST_RATE"),
        automatic_few=("estimators/boosting/params.py", "n_rows >= FEW_ROWS", "n_rows > FEW_ROWS"),
        automatic_fraction=("estimators/boosting/params.py", "return 0.2 if n_rows <= MANY_ROWS", "return 0.2 if n_rows < MANY_ROWS"),
        automatic_leaves=("estimators/boosting/params.py", "return LEAVES if n_rows <= MANY_ROWS", "return LEAVES if n_rows < MANY_ROWS"),
        automatic_rounds=("estimators/boosting/params.py", "ROUNDS_OF_CLASSES if n_classes > 2", "ROUNDS_OF_CLASSES if n_classes > 1"),
    ),
    plant(
        "estimators/test_watched_fits.py", "estimators/test_warm_start.py", "estimators/test_stages.py",
        boosting_round=("training/rounds.py", "first = self.plan.first_round + self.n_done", "first = self.plan.first_round"),
        boosting_forget=("training/rounds.py", "                boosting.forget(number)\n", ""),
        boosting_stop=("training/rounds.py", "is_over |= watch.end(boosting)", "watch.end(boosting)"),
        boosting_continue=("estimators/boosting/warm_start.py", "first_round=len(forest))", "first_round=0)"),
        boosting_gains=("training/rounds.py", "importance = sum_gains(trees, start)", "importance = start + sum_gains(trees, 0 * start)"),
        boosting_stage=("model/ensemble.py", "for first in range(0, len(self), n_at_once):", "for first in range(0, len(self) - 1, n_at_once):"),
    ),
)
FORESTS = (
    plant(
        "estimators/test_forest_regressor.py",
        forest_mean=("model/ensemble.py", "return self.base * self.n_averaged", "return self.base"),
        forest_shrinkage=("training/leaf_values.py", "value[node] + factor[node] * (mean[child] - mean[node])", "value[node] + factor[child] * (mean[child] - mean[node])"),
        forest_unit=("training/leaf_values.py", "strength / (ensemble.weight / unit)", "strength / ensemble.weight"),
        forest_monotone=("training/leaf_values.py", "1.0 / (1.0 + strength / (ensemble.weight / unit))", "1.0 / (1.0 + strength * (ensemble.weight / unit))"),
        forest_position=("estimators/averaging/regressor.py", "prediction[self._position] = found.prediction", "prediction[: len(found.prediction)] = found.prediction"),
        forest_judges=("training/averaging.py", "sums.add(times == 0,", "sums.add(times > 0,"),
        forest_warm=("estimators/averaging/fit.py", '{**trees, "value": shrunken.value}', "trees"),
    ),
    plant(
        "estimators/test_forest_quantiles.py",
        quantile_repeats=("training/averaging.py", "rank, times * averaging.weight,", "rank, (times > 0) * averaging.weight,"),
        quantile_rounding=("model/leaf_rows.py", "levels - ROUNDING", "levels"),
        quantile_share=("model/leaf_rows.py", "weight /= np.repeat(np.add.reduceat(weight, start[:-1]), self.size)", "weight /= 1"),
        interval_rank=("model/conformity.py", "outside = (total + 1.0) * (1.0 - coverage) / 2", "outside = total * (1.0 - coverage) / 2"),
        interval_step=("model/conformity.py", "high - min(self.step * (half_high - high), most)", "high"),
    ),
    plant(
        "native/test_exact_class_forests.py",
        forest_shares=("native/grow/forest.hpp", "return static_cast<std::int32_t>(base::divide(twice + base::Wide{weight, 0}, 2 * weight));", "return static_cast<std::int32_t>(base::divide(twice, 2 * weight));"),
        forest_pruned_ties=("native/grow/forest.hpp", "if (gain[k] > price *", "if (gain[k] >= price *"),
        forest_balance=("native/grow/forest.hpp", "(static_cast<double>(n_present) * static_cast<double>(sum[c]))", "(static_cast<double>(sum.size()) * static_cast<double>(sum[c]))"),
    ),
)
# fmt: on

MUTATIONS = tuple(
    chain(
        *DATA,
        *FIT,
        PREDICTION,
        *PERSIST,
        *EXPLAIN,
        *EXPORT,
        DASK,
        *CORE,
        *EXACT,
        *BOOSTING,
        *FORESTS,
    )
)
