"""Growing over a Dask cluster: the trees of one process, from rows on many.

The statistics of a node are sums, extremes and counts, which merge over the
partitions of a table. So a cluster grows the same trees as one process on the
same engine, that of version 0.1: see :class:`LHForestClassifier`.
"""

from __future__ import annotations

try:
    import distributed as _distributed  # noqa: F401

    import dask as _dask  # noqa: F401
except ImportError as error:
    raise ImportError(
        f"lhtree.dask needs the package {error.name!r}; install it with "
        "`pip install 'lhtree[dask]'`."
    ) from error

from lhtree.dask.estimators import LHForestClassifier, LHTClassifier

__all__ = ["LHForestClassifier", "LHTClassifier"]
