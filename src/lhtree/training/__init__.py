"""The steps of a fit around the growing of trees.

The size of the ensemble, shrinkage, calibration, and reports of progress.
"""
