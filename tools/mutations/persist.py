# ruff: noqa: E501
"""Bugs of saving, loading and exporting."""

from mutations.mutation import Mutation


def in_files(name: str, old: str, new: str) -> Mutation:
    """Return a bug of files."""
    return Mutation(name, "src/lhtree", old, new, ("test_persist.py", "test_golden.py"))


def in_export(name: str, old: str, new: str) -> Mutation:
    """Return a bug of exports."""
    return Mutation(name, "src/lhtree/export", old, new, ("test_export.py",))


# fmt: off
MUTATIONS = (
    # What a file must be.
    in_files("digest-unchecked", "if _find_sum(data, start, end).encode() != data[start:end]:",
             "if False:"),
    in_files("digest-of-head", "    digest.update(whole[end:])\n", ""),
    in_files("header-beyond-file", "if size > len(data) - SIZE_BYTES:", "if False:"),
    in_files("json-repeated-keys", "if len(result) != len(pairs):", "if False:"),
    in_files("json-many-parts", "if n_parts > 64 + len(data) // 16:", "if False:"),
    in_files("json-deep", "max(initial=0) > MOST_LEVELS", "max(initial=0) > 10**9"),
    in_files("json-escaped-quotes", ".replace(b'\\\\\"', b\"\")", ""),
    in_files("array-types", 'if entry["dtype"] not in DTYPES:', "if False:"),
    in_files("array-sizes", "if total != n_bytes:", "if False:"),
    in_files("strings-wide", "or width * len(values) > _most_characters(values):\n"
             "            raise NotPlainError(f\"has strings of an impossible",
             ":\n            raise NotPlainError(f\"has strings of an impossible"),
    in_files("labels-unsorted", "if not np.all(labels[:-1] < labels[1:]):", "if False:"),
    in_files("columns-unbounded", 'yield not is_narrow, "its trees',
             'yield True, "its trees'),
    in_files("targets-unchecked", "yield np.array_equal(forest.positive_class, target * n_estimators),",
             "yield True,"),
    in_files("newer-format", "if number > FORMAT:", "if False:"),
    in_files("pipe-opened", 'flags | getattr(os, "O_NONBLOCK", 0)', "flags"),
    in_files("devices-read", "if not stat.S_ISREG(status.st_mode):", "if False:"),
    in_files("norm-unchecked", 'yield bool(is_norm.all()), "a norm', 'yield True, "a norm'),
    in_files("leaf-unchecked", "yield bool(np.all((answer >= 0) & (answer <= 1))),",
             "yield True,"),
    in_files("rule-unchecked", 'yield bool(rule.all()), "a rule', 'yield True, "a rule'),
    # What a file keeps.
    in_files("state-dropped", "    if unknown:\n        raise ValueError(\n"
             '            f"model has the attribute', "    if False:\n        raise ValueError(\n"
             '            f"model has the attribute'),
    in_files("label-width", 'dtype=f"<U{width}").astype(f"=U{width}", copy=False)', 'dtype=str)'),
    in_files("infinite-float", 'value if math.isfinite(value) else {"float": repr(value)}',
             "value"),
    in_files("tuple-as-list", 'return parts if kind == "list" else tuple(parts)', "return parts"),
    in_files("generator-position", '"position": int(state["state"]["pos"])', '"position": 0'),
    in_files("score-lost", '    Attribute("oob_score_", _encode_score, _decode_score, '
             "is_always_there=False),\n", ""),
    # How it is written.
    in_files("draft-left", "            draft.unlink(missing_ok=True)\n            raise",
             "            raise"),
    in_files("written-in-place", "draft.replace(place)", "place.write_bytes(draft.read_bytes())"),
    in_files("mode-of-draft", "                _copy_mode(place, draft)\n", ""),
    in_files("link-replaced", "Path(os.path.realpath(path))", "Path(path)"),
    # Exports.
    in_export("onnx-lane-order", "for part in parts[1:]:", "for part in reversed(parts[1:]):"),
    in_export("onnx-left", 'is_left = graph.add("Less", score, threshold)',
              'is_left = graph.add("LessOrEqual", score, threshold)'),
    in_export("onnx-nearest", '[graph.add("Min", *pair) for pair',
              '[graph.add("Max", *pair) for pair'),
    in_export("onnx-raw-distance", 'gaps = [graph.add("Div", gap, norm), gap]',
              "gaps = [gap, gap]"),
    in_export("onnx-unclipped", 'graph.add("Where", graph.add("IsNaN", total), base, clipped)',
              'graph.add("Where", graph.add("IsNaN", total), base, total)'),
    in_export("onnx-missing-split", 'graph.add("IsNaN", values), center, values)',
              'graph.add("IsNaN", values), graph.constant(0.0), values)'),
    in_export("onnx-missing-leaf", "is_missing, graph.constant(0.0), offset)",
              "is_missing, graph.constant(1.0), offset)"),
    in_export("onnx-limit", 'value = graph.add("Min", value, graph.constant(MOST_EXTREME))', ""),
    in_export("onnx-tie-sign", 'graph.add("Neg", distance), distance', "distance, distance"),
    in_export("onnx-uncalibrated", "if self.plain.is_calibrated:  # which", "if False:  # which"),
    in_export("listed-slots", "(LANES * rank + column % LANES) if is_listed",
              "(LANES * rank + rank % LANES) if is_listed"),
    in_export("c-left", "!(score < threshold)", "!(score <= threshold)"),
    in_export("c-lanes", "sum[j % 8] += {prefix}_weight[k] * (z[j]",
              "sum[k % 8] += {prefix}_weight[k] * (z[j]"),
    in_export("c-lanes-leaf", "sum[j % 8] += {prefix}_weight[k] * (offset",
              "sum[k % 8] += {prefix}_weight[k] * (offset"),
    in_export("c-missing", ": {prefix}_center[k])", ": 0.0)"),
    in_export("c-limit", "    if (z[j] > {limit}) z[j] = {limit};\n", ""),
    in_export("c-trigraphs", "[A-Za-z0-9 _.,:;=+*/()<>-]", "[A-Za-z0-9 _.,:;=+*/()<>?-]"),
    in_export("c-add-in-order", "if (n < 8) {{", "if (n < 9) {{"),
    in_export("c-add-halves", "if (n > 128) {{", "if (n > 100000) {{"),
    in_export("c-small-type", "if low >= -127 and high <= 127:", "if low >= -127:"),
    in_export("sql-quote-name", """name.replace('"', '""')""", "name"),
    in_export("sql-quote-label", """label.replace("'", "''")""", "label"),
    in_export("sql-left", "WHEN w.gap < 0e0 THEN", "WHEN w.gap <= 0e0 THEN"),
    in_export("sql-nearest", "CASE WHEN w.nearest <= {distance}",
              "CASE WHEN w.nearest >= {distance}"),
    in_export("sql-others", "if categories[j].has_others:", "if False:"),
    in_export("sql-missing", "COALESCE(r.z{j}, n.c{j})", "COALESCE(r.z{j}, 0e0)"),
    in_export("sql-uncalibrated", 'if plain.is_calibrated else "q{k}"', 'if False else "q{k}"'),
)
