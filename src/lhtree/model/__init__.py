"""The fitted model as flat arrays.

`Forest` and `Tree`, validation of their arrays, compact pickles, and votes turned into
probabilities.
"""
