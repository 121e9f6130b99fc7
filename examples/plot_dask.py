"""
A cluster on one machine
========================

Dask spreads a table over many workers. `lhtree.dask` grows the same trees there as a local fit,
from statistics that merge. Here is a cluster of two workers in this process.
"""

# %%
# A table in partitions
# ---------------------
import dask.array as da
import matplotlib.pyplot as plt
import numpy as np
from distributed import Client
from sklearn.datasets import load_digits

import lhtree
from lhtree.dask import LHForestClassifier

client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=None)
X, y = load_digits(return_X_y=True)
X_parts, y_parts = da.from_array(X, (300, 64)), da.from_array(y, 300)
print(X_parts)

# %%
# Grow where the rows are
# -----------------------
# Nodes with more than `row_limit` rows grow in rounds over all partitions; one worker finishes
# each smaller node. By default the memory of the workers sets the limit. Here we force rounds, as
# for a table that no single worker could hold.
params = {"n_estimators": 3, "preset": "paper", "standardize": False, "random_state": 0}
forest = LHForestClassifier(**params, row_limit=500).fit(X_parts, y_parts)
print(forest.growth_)
predicted = forest.predict(X_parts)  # lazy: nothing is computed yet
print(predicted)
print(f"accuracy on the training rows: {(predicted == y_parts).mean().compute():.3f}")

# %%
# Compared with a local fit
# -------------------------
# Pixels are small integers, so without standardising all sums are exact.
local = lhtree.LHForestClassifier(**params).fit(X, y)
same = forest.to_local()  # a plain classifier: save it, explain it, export it
client.close()

for name in ["left", "feature", "weight", "threshold"]:
    is_equal = np.array_equal(getattr(same.forest_, name), getattr(local.forest_, name))
    print(f"{name:10} equal bit for bit: {is_equal}")

importance = [model.feature_importances_.reshape(8, 8) for model in (local, same)]
figure, axes = plt.subplots(1, 2, figsize=(7, 3.6), layout="constrained")
for ax, values, title in zip(axes, importance, ["local", "cluster"], strict=True):
    ax.imshow(values, cmap="viridis")
    ax.set(title=f"importance of the pixels, {title}", xticks=[], yticks=[])
plt.show()

# %%
# **What to notice.** The cluster grows the trees of the local fit, here to the last bit; with
# other numbers rounding may decide between equally good splits. The client saw no row. To use
# separate processes or machines, give `Client` the address of a scheduler, and guard a script with
# ``if __name__ == "__main__":``.
