"""Bugs of projections that are guessed."""

from mutations.mutation import Mutation


def in_recall(name: str, old: str, new: str) -> Mutation:
    """Return a bug of the guesses."""
    return Mutation(name, "native", old, new, ("test_recall.py",))


# fmt: off
MUTATIONS = (
    in_recall("recall-no-error", "transfer.reach * static_cast<double>(length[row[i]])", "0.0"),
    in_recall("recall-no-residual", "residual * (1 + 1e-9) + tiny", "tiny"),
    in_recall("recall-no-shift", "known[row[i]]) + transfer.shift", "known[row[i]])"),
    in_recall("recall-no-factor", "guess[i] = transfer.factor *", "guess[i] = 1.0 *"),
    in_recall("recall-targets-only", "std::max(target.min, rest.min),", "target.min,"),
    in_recall("recall-middle-unsure", "is_guessed && split.threshold.rule == Rule::middle",
              "false"),
    in_recall("recall-other-anchor", "moments->anchor = parent.anchor;", ""),
    in_recall("recall-near-other-rows", "near_known_[i] = known_[row[i]];",
              "near_known_[i] = known_[i];"),
    in_recall("recall-near-length", "near_length_[i] = lengths_.length[row[i]];",
            "near_length_[i] = 0;"),
    in_recall("recall-unsure-left", "split.score[place[begin + i]] = score[i];", ";"),
    # Scores of nodes that come next.
    in_recall("ahead-one-more", "large.n_known = std::max(n_known - 1, 0);",
              "large.n_known = n_known;"),
    in_recall("ahead-of-other-child", "forest_.larger_child(root, node) != root + left",
              "forest_.larger_child(root, node) == root + left"),
    in_recall("ahead-first-weights", "sum[f] + load(form[f].weight + column) * value",
              "sum[f] + load(form[0].weight + column) * value"),
    in_recall("ahead-last-lane", "sum[f] = sum[f] + last[f] * value;", ";"),
)
