"""The fitted model as flat arrays.

`Forest` and `Tree`, whether their arrays are valid, fewer bytes for pickles, and how votes
become probabilities.
"""
