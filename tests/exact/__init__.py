"""The exact engine in plain NumPy and Python integers: the definition of correct.

Nothing here is fast, and nothing depends on the order of rows: sums are integers, and
whatever is a double is made of them by one stated formula. `docs/design/exact-engine.md`
says the same in words, and why.

Read it in this order: weights, columns, arithmetic, losses, constraints, splits, hyperplanes,
trees, boosting, forests; paper has the rules of the paper on the same grid.
"""
