"""How X, y and weights become the table that trees see.

Frames, categories, sparse rows, missing values and weights; nothing here knows of trees.
"""
