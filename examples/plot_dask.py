"""
A cluster on one machine
========================

Dask spreads a table over many workers. `lhtree.dask` grows the same trees there as a local fit
does, from statistics that merge. A cluster of two workers in this process shows it.
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
# Nodes with more than `row_limit` rows grow in rounds over all partitions; smaller ones are
# finished by one worker each. By default the memory of the workers decides. Here we force rounds,
# as on a table that no worker could hold.
rules = {"n_estimators": 3, "preset": "paper", "standardize": False, "random_state": 0}
forest = LHForestClassifier(**rules, row_limit=500).fit(X_parts, y_parts)
print(forest.growth_)
predicted = forest.predict(X_parts)  # lazy: nothing has been computed
print(predicted)
print(f"accuracy on the training rows: {(predicted == y_parts).mean().compute():.3f}")

# %%
# Next to a local fit
# -------------------
# Pixels are small integers, so without standardising all sums are exact.
local = lhtree.LHForestClassifier(**rules).fit(X, y)
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
# **What to notice.** The trees of the cluster are those of the local fit, here to the last bit;
# with other numbers rounding may decide between equally good splits. The client saw no row. For
# processes or machines of their own, give `Client` the address of a scheduler, and guard a script
# with ``if __name__ == "__main__":``.
