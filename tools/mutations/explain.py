# ruff: noqa: E501
"""Bugs of explanations."""

from mutations.mutation import Mutation

TESTS = ("test_explain.py",)


def in_core(name: str, old: str, new: str) -> Mutation:
    """Return a bug of the native core."""
    return Mutation(name, "native", old, new, TESTS)


def in_explain(name: str, old: str, new: str, *tests: str) -> Mutation:
    """Return a bug of the package around it."""
    return Mutation(name, "src/lhtree/explain", old, new, tests or TESTS)


def in_search(name: str, old: str, new: str) -> Mutation:
    """Return a bug of counterfactuals."""
    return in_explain(name, old, new, "test_counterfactual.py")


def in_words(name: str, old: str, new: str) -> Mutation:
    """Return a bug of rules and texts."""
    return in_explain(name, old, new, "test_rules.py")


def in_export(name: str, old: str, new: str) -> Mutation:
    """Return a bug of exported texts."""
    return Mutation(name, "src/lhtree/export", old, new, ("test_rules.py",))


# fmt: off
MUTATIONS = (
    # Contributions.
    in_core("explain-center", "const double offset = row[column] - parts.center[k];",
            "const double offset = row[column];"),
    in_core("explain-missing", "parts.form.weight[k] * (offset == offset ? offset : 0.0)",
            "parts.form.weight[k] * (offset == offset ? offset : parts.center[k])"),
    in_core("explain-no-fallback", "if (sum > 0.0) return sum;\n  for", "return sum;\n  for"),
    in_core("explain-sparse-columns", "total[feature[k]] += factor * parts.size[k]",
            "total[k] += factor * parts.size[k]"),
    in_core("explain-clipping", "double up = (change + 2.0 * below) / sum",
            "double up = (above + below) / sum"),
    in_core("explain-signs", "(parts.size[k] > 0.0 ? up : down)", "up"),
    in_core("explain-large-parts", "if (sum > largest_exact_sum) up = change / sum, down = -up;",
            ""),
    in_core("explain-no-leaf", "if (parts.form.n_terms == 0) return;", "return;"),
    in_core("explain-change-backwards",
            "model_.value[root + child] - model_.value[root + node]",
            "model_.value[root + node] - model_.value[root + child]"),
    in_core("explain-class", "(row * sums_.n_classes + forest.positive_class[tree]) * forest.n_features",
            "(row * sums_.n_classes) * forest.n_features"),
    in_core("explain-block", "sums.total += first * sums.n_classes * forest.n_features;", ""),
    in_explain("explain-mean", "contribution /= n_estimators", ""),
    in_explain("explain-base-mean", "forest.value[root], n_classes) / n_estimators",
               "forest.value[root], n_classes)"),
    in_explain("explain-mirror", "contribution[:, 0] = -contribution[:, 1]",
               "contribution[:, 0] = contribution[:, 1]"),
    # Paths.
    in_explain("path-constant", "weight @ center - tree.threshold[number]",
               "weight @ center"),
    in_explain("path-distance", "(part[:, :-1].sum(axis=2) + constant) / norm",
               "part[:, :-1].sum(axis=2) + constant"),
    in_explain("path-side", "np.array(chain[1:], dtype=np.int64) > tree.left[node]",
               "np.array(chain[1:], dtype=np.int64) == tree.left[node]"),
    in_explain("path-clip", "np.clip(raw, 0.0, 1.0)", "raw"),
    # Splits.
    in_explain("table-raw-weight", "raw = weight / forest.column_std[feature]",
               "raw = weight * forest.column_std[feature]"),
    in_explain("table-raw-threshold", "forest.threshold[split] + shift",
               "forest.threshold[split] - shift"),
    in_explain("table-order", "np.argsort(-np.abs(weight), kind=\"stable\")[:k]",
               "np.argsort(-weight, kind=\"stable\")[:k]"),
    in_explain("table-target", "model.classes_[forest.positive_class[tree]]", "forest.positive_class[tree]"),
    in_explain("table-estimator", "tree // reading.count_trees_per_estimator(model)", "tree"),
    in_explain("view-pure-left", "least_target < threshold and least_rest < threshold",
               "least_target < threshold or least_rest < threshold"),
    in_explain("view-pure-right", "most_target >= threshold and most_rest >= threshold",
               "most_target > threshold and most_rest > threshold"),
    in_explain("view-subtree", "is_below[tree.left[parent] : tree.left[parent] + 2] = True",
               "is_below[tree.left[parent] : tree.left[parent] + 1] = True"),
    in_explain("view-side", "is_right=projection >= threshold", "is_right=projection > threshold"),
    in_explain("view-lanes", "lanes[j % 8] += w", "lanes[0] += w"),
    # Importances.
    in_explain("importances-mirror", "importance[0] = importance[1]", "pass"),
    in_explain("importances-mean", "importance /= np.maximum(n_trees, 1)[:, np.newaxis]", ""),
    in_explain("interactions-weight", "tree.weight_sum[split] / tree.weight_sum[0]",
               "np.ones(len(split))"),
    in_explain("interactions-strength", "np.divide(size, total, ", "np.divide(size, 1.0, "),
    in_explain("interactions-diagonal", "triu(count, k=1,", "triu(count, k=0,"),
    # Counterfactuals.
    in_search("polytope-margin", "space.need + margin * space.is_open", "space.need + margin"),
    in_search("polytope-one", "for _ in range(len(need)):", "for _ in range(1):"),
    in_search("polytope-unit", "residual[:-1] / residual[-1] * unit",
              "residual[:-1] / residual[-1]"),
    in_search("cells-no-sibling", "if other is not None and not line.is_constant:", "if False:"),
    in_search("cells-first-wins", "if self.heap and bound > self.heap[0][0] * (1 + 1e-12):",
              "if False:"),
    in_search("cells-threshold", "value += weight @ center - tree.threshold[node]",
              "value -= tree.threshold[node]"),
    in_search("cells-leaf", "value += tree.value[node]", "value += 0.5"),
    in_search("cells-norm", "Line(line.slope / norm, line.value / norm)", "line"),
    in_search("cells-limits", "yield HalfSpace(-axis, -float(most), is_open=False)",
              "yield HalfSpace(-axis, float(most), is_open=False)"),
    in_search("cells-cut-short-proof", "return Answer(None, False)", "return Answer(None, True)"),
    in_search("cells-broken-integer", "if is_broken.any():", "if False:"),
    in_search("cells-integer-edge", "self._push_between(state, j, None, whole - 1)", "pass"),
    in_search("regions-two-classes", "line if winner == 1 else _touch(line.flip())", "line"),
    in_search("regions-equal-shares", "else _touch(line.flip())", "else line.flip()"),
    in_search("regions-tie-at-one", "[tied, *(distance - least for distance in own.distance)]",
              "[tied]"),
    in_search("regions-tie-at-one-backwards", "distance - least for distance in own.distance",
              "least - distance for distance in own.distance"),
    in_search("regions-tie-at-zero", "distance - least for distance in farther",
              "least - distance for distance in farther"),
    in_search("regions-above-others", "own.line - leaf.line for leaf in others",
              "own.line - leaf.line for leaf in others[:1]"),
    in_search("regions-no-full", "if _can_be(own.line, above=1.0):", "if False:"),
    in_search("regions-no-empty", "if _can_be(own.line, below=0.0):", "if False:"),
    in_search("question-missing-free", "find_numbers(model) & ~np.isnan(row)",
              "find_numbers(model)"),
    in_search("question-range-unit", "lower[place] = (least - row[column]) / unit",
              "lower[place] = least - row[column]"),
    in_search("question-integer", "np.where(self.is_integer, np.round(raw), raw)", "raw"),
    in_search("forest-is-proven", "model._n_estimators == 1 and model.voting", "model.voting"),
    in_search("margin-is-proven", 'model._n_estimators == 1 and model.voting == "membership"',
              "model._n_estimators == 1"),
    in_search("wander-no-descent", "while self.budget > 0:\n            nearest",
              "while False:\n            nearest"),
    in_search("wander-no-limits", "np.concatenate([self.normal, self.limit])",
              "np.concatenate([self.normal, -self.limit])"),
    in_search("wander-side", "np.where(is_right, 1.0, -1.0) * part.T", "1.0 * part.T"),
    # Words.
    in_words("rules-mirrored", "comparison = MIRRORED[comparison]", "pass"),
    in_words("rules-tighter", "(new.threshold < known.threshold) == new.is_upper",
             "(new.threshold > known.threshold) == new.is_upper"),
    in_words("rules-side", 'comparison = ">=" if is_right else "<"',
             'comparison = "<" if is_right else ">="'),
    in_words("rules-raw-center", "center = tree.forest.column_mean[feature] + center * unit",
             "center = center * unit"),
    in_words("shorten-threshold", "forest.threshold - np.where(is_split, gone, 0.0)",
             "forest.threshold"),
    in_words("shorten-leaf", "forest.threshold - np.where(is_split, gone, 0.0)",
             "forest.threshold - gone"),
    in_words("shorten-norm", "np.where(is_split, np.sqrt(square), 0.0)", "forest.norm * 0 + 1"),
    in_words("numbers-digits", "places = decimals if size >= 1", "places = decimals if True"),
    in_export("text-depth", "elif depth > self.max_depth:", "elif depth >= self.max_depth:"),
    in_export("dot-quotes", """.replace('"', '\\\\"')""", ""),
    in_export("dot-backslash", r"""text.replace("\\", "\\\\")""", "text"),
    in_export("dot-depth", "depth > self.max_depth:\n                yield",
              "depth >= self.max_depth:\n                yield"),
)
