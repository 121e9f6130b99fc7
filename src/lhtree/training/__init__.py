"""The steps of a fit: growing trees on a backend, and what follows from out-of-bag votes.

`backend` is the interface to the rows and `local` implements it in memory. The other modules
decide on the size of the ensemble, shrinkage and calibration, and report progress.
"""
