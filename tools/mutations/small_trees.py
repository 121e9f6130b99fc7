"""Bugs of least leaves, most leaves and pruning."""

from mutations.mutation import Mutation

TESTS = ("test_small_trees.py", "test_tree.py")


def in_core(name: str, old: str, new: str) -> Mutation:
    """Return a bug of the native core."""
    return Mutation(name, "native", old, new, TESTS)


# fmt: off
MUTATIONS = (
    in_core("leaf-least-above", "left >= least_ && whole_", "left > least_ && whole_"),
    in_core("leaf-least-of-right", "left >= least_ && whole_.all - left >= least_",
            "left >= least_"),
    in_core("leaf-least-bins", "all_[bin + 1] >= least_ && whole_.all - all_[bin] >= least_",
            "all_[bin] >= least_ && whole_.all - all_[bin + 1] >= least_"),
    in_core("leaf-least-no-middle", "for (const double smallest : {gamma, infinity}) {",
            "for (const double smallest : {gamma, gamma}) {"),
    in_core("leaf-least-of-pieces", "if (left >= least && whole - left >= least) return",
            "if (left >= least) return"),
    in_core("leaf-least-dense-ignored", "if (rules_.cut == Cut::purity && least == 0.0) {",
            "if (rules_.cut == Cut::purity) {"),
    in_core("prune-no-line", "node.n_terms = tree_.as_leaf[id].n_terms;", "node.n_terms = 0;"),
    in_core("prune-no-share", "node.threshold = node.share;\n    node.norm", "node.norm"),
    in_core("prune-one-leaf-more", "n_leaves < max_leaf_nodes &&",
            "n_leaves <= max_leaf_nodes &&"),
    in_core("prune-worst-first", "best.push({impurity(id) - impurity(left) - impurity(left + 1)",
            "best.push({impurity(left) + impurity(left + 1) - impurity(id)"),
    in_core("prune-half-risk", "risk[k] = 2.0 * impurity", "risk[k] = impurity"),
    in_core("link-children-alone", "while (top >= 0 && links_.strength[top] >",
            "while (false && links_.strength[top] >"),
    in_core("link-leaves-uncounted", "n_cut += n_cut_[top];", "n_cut += 1;"),
    in_core("link-gain-lost", "gain += links_.gain[top];", ""),
    in_core("link-heap-upside-down", "if (is_above(b, a)) std::swap(a, b);",
            "if (is_above(a, b)) std::swap(a, b);"),
)
