"""
Small trees that people read
============================

Keep a tree small if people will read it. How accurate can it be? This example grows trees with
more and more splits on Wine, WDBC (breast cancer) and satimage, and compares them with CART.
"""

# %%
# Data
# ----
# satimage comes from the folder that the environment variable ``LHTREE_DATA`` names; without it,
# the example uses scikit-learn's digits.

import os
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import LogLocator, NullLocator
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.tree import DecisionTreeClassifier

from lhtree import LHTClassifier
from lhtree.plot import plot_tree, plot_weights


def load_large():
    """Return name, rows and classes of satimage, or of digits if it is absent."""
    path = Path(os.environ.get("LHTREE_DATA", "")) / "satimage.parquet"
    if not path.is_file():
        return "digits", *load_digits(return_X_y=True)
    import pandas as pd

    table = pd.read_parquet(path)
    X = table.drop(columns=["target", "split"], errors="ignore")
    return "satimage", X.to_numpy(dtype=float), table["target"].to_numpy()


tables = [
    ("Wine", *load_wine(return_X_y=True)),
    ("WDBC", *load_breast_cancer(return_X_y=True)),
    load_large(),
]

# %%
# Accuracy against the number of splits
# -------------------------------------
# An LHT has one tree per class (two classes share one). ``max_leaf_nodes`` limits each tree, and
# we count the splits of all of them. CART, one tree for all classes, may have as many. Both use
# the same five folds.

models = {
    "LHT, as in the paper": (LHTClassifier(), "o-", "#0072B2"),
    "LHT, standardized contrast, Gini": (
        LHTClassifier(contrast="standardized", criterion="gini"),
        "D-",
        "#CC79A7",
    ),
    "LHT, Fisher contrast, Gini": (
        LHTClassifier(contrast="fisher", criterion="gini"),
        "s-",
        "#009E73",
    ),
    "CART": (DecisionTreeClassifier(random_state=0), "^--", "#D55E00"),
}


def count_splits(model):
    """Return the number of splits of a fitted model."""
    if isinstance(model, DecisionTreeClassifier):
        return model.get_n_leaves() - 1
    return model.get_n_leaves() - len(model.trees_)


def measure(model, X, y, n_leaves):
    """Return mean splits and mean accuracy over five folds."""
    n_trees = 1 if len(np.unique(y)) == 2 else len(np.unique(y))
    is_cart = isinstance(model, DecisionTreeClassifier)
    size = n_trees * (n_leaves - 1) + 1 if is_cart else n_leaves
    model.set_params(max_leaf_nodes=size)
    found = []
    for train, test in StratifiedKFold(5, shuffle=True, random_state=0).split(X, y):
        model.fit(X[train], y[train])
        found.append((count_splits(model), model.score(X[test], y[test])))
    return np.mean(found, axis=0)


leaves = [2, 3, 4, 6, 8, 12, 16, 24]
figure, panels = plt.subplots(1, 3, figsize=(12, 4), layout="constrained")
for ax, (title, X, y) in zip(panels, tables, strict=True):
    print(title)
    for name, (model, style, color) in models.items():
        splits, accuracy = np.transpose([measure(model, X, y, n) for n in leaves])
        ax.plot(splits, 100 * accuracy, style, color=color, markersize=4, label=name)
        best = accuracy.argmax()
        print(f"  {name:34} {100 * accuracy[best]:5.1f} % with {splits[best]:5.1f} splits")
    ax.set(title=title, xlabel="splits of all trees", xscale="log")
    ax.xaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.xaxis.set_major_formatter("{x:g}")
    ax.xaxis.set_minor_locator(NullLocator())
panels[0].set_ylabel("accuracy in five folds (%)")
panels[0].legend()
plt.show()

# %%
# A tree to read
# --------------
# Cost-complexity pruning (``ccp_alpha``) cuts a grown tree back. Here is the smallest tree for
# WDBC with an accuracy within one standard error of the best.

data = load_breast_cancer(as_frame=True)
X, y = data.data, data.target_names[data.target]
grown = LHTClassifier(contrast="fisher", criterion="gini").fit(X, y)
alphas = grown.cost_complexity_pruning_path(X, y).ccp_alphas[:-1]  # the last leaves no split
scores = np.array([cross_val_score(clone(grown).set_params(ccp_alpha=a), X, y) for a in alphas])
mean, error = scores.mean(axis=1), scores.std(axis=1, ddof=1) / np.sqrt(scores.shape[1])
chosen = np.flatnonzero(mean >= mean.max() - error[mean.argmax()])[-1]
model = clone(grown).set_params(ccp_alpha=alphas[chosen]).fit(X, y)
print(f"grown: {count_splits(grown)} splits, {100 * mean[0]:.1f} %")
print(f"pruned: {count_splits(model)} splits, {100 * mean[chosen]:.1f} %")
plot_tree(model)
plt.show()

# %%
plot_weights(model, n_features=12)
plt.show()

# %%
# **What to notice.** On Wine and WDBC an LHT of three splits with the Gini criterion is more
# accurate than any CART here: a hyperplane does the work of many cuts along single features, and
# you can still read its weights. The same holds for digits. satimage is harder, and an LHT pays
# for having one tree per class: CART is far ahead with few splits and slightly ahead with many.
# Which contrast is best depends on the data.
