"""Bugs of sweeps and of sums by slices and by class."""

from mutations.mutation import Mutation


def in_slices(name: str, old: str, new: str) -> Mutation:
    """Return a bug of sums of large nodes or of roots."""
    return Mutation(name, "native", old, new, ("test_slices.py",))


# fmt: off
MUTATIONS = (
    in_slices("slices-misfits-of-small",
              "move_sums(sum_misfits(table, small, edge.n_misfits, is_in_large, stop), "
              "larger, smaller);", ""),
    in_slices("slices-misfits-of-large",
              "move_sums(sum_misfits(table, large, edge.n_misfits, is_in_small, stop), "
              "smaller, larger);", ""),
    in_slices("slices-not-trimmed", "parent.slices->remove(*table_, small, stop_);", ";"),
    in_slices("slices-misfits-all-rest", "if (i + 1 == rows.target.size) n_positive = n;", ""),
    in_slices("slices-kept", "    else\n      parent.slices.reset();", ""),
    in_slices("slices-targets-only", "2 * find(known) + is_positive", "2 * find(known) + 1"),
    in_slices("slices-square-not-taken-out", "store(square + j, load(square + j) - x * x);", ""),
    in_slices("sweep-targets-only", "add(row, known, part.is_positive, n);",
              "add(row, known, true, n);"),
    in_slices("sweep-keeps-another", "float* known = part.known + part.n_done;",
              "float* known = part.known;"),
    in_slices("sweep-without-last-block", "begin < table.n_rows; begin += n_rows",
              "begin + n_rows < table.n_rows; begin += n_rows"),
    in_slices("sweep-other-middle", "remember(score[i] - part.middle_score);",
              "remember(score[i]);"),
    in_slices("class-sums-of-first", "width_, k == target, moments);",
              "width_, k == 0, moments);"),
    in_slices("class-sums-without-last",
              "std::int64_t k = 0; k < n_classes; ++k)\n      add_group",
              "std::int64_t k = 0; k + 1 < n_classes; ++k)\n      add_group"),
    in_slices("slices-of-old-sums", "stop_)) node.slices.reset();", "stop_)) return;"),
)
