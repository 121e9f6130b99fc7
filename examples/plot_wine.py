"""
The paper's Wine figures
========================

The appendix of the paper shows the trees of the Wine data and the weights of their splits, for
``beta = 0`` and ``beta = 0.25``. These are its three figures, from a fit on all rows.
"""

# %%
# Fit one tree per class
# ----------------------

import sys
from pathlib import Path

import matplotlib.pyplot as plt
from PIL import Image
from sklearn.datasets import load_wine

from lhtree import LHTClassifier
from lhtree.explain import split_table
from lhtree.plot import plot_split, plot_tree, plot_weights

wine = load_wine(as_frame=True)
X, y = wine.data, wine.target_names[wine.target]
dense = LHTClassifier(beta=0).fit(X, y)
sparse = LHTClassifier(beta=0.25).fit(X, y)

# %%
# The trees
# ---------
# In the upper row all features take part in a split; in the lower row, only those whose class
# means are at least a quarter as far apart as the widest gap.


def draw_trees(figure):
    """Draw the three trees of each model side by side."""
    panels = figure.subplots(2, 3, height_ratios=[5, 4], width_ratios=[3, 4, 3])
    for row, model in zip(panels, (dense, sparse), strict=True):
        for k, ax in enumerate(row):
            plot_tree(model, k, ax=ax)
            ax.get_legend().remove()
            ax.set_title(f"{model.classes_[k]}, beta = {model.beta}")


draw_trees(plt.figure(figsize=(11, 7.5), layout="constrained"))
plt.show()

# %%
# The weights for beta = 0
# ------------------------
# Each column is a split; its bars are the weights of the features. In the first split of
# class_0, proline has the largest weight.

ax = plot_weights(dense)
ax.set_title("beta = 0")
plt.show()

# %%
# The weights for beta = 0.25
# ---------------------------

ax = plot_weights(sparse)
ax.set_title("beta = 0.25")
plt.show()

# %%
# The same as a table, and what the first split does
# --------------------------------------------------

columns = ["positive_class", "node", "n_samples", "threshold_kind", "feature_1"]
print(split_table(sparse, n_features=2)[columns])
for model in (dense, sparse):
    sizes = ", ".join(f"{tree.n_nodes} nodes" for tree in model.trees_)
    print(f"beta = {model.beta}: {sizes}")

plot_split(sparse, 0, 0, X, y)
plt.show()


# %%
# The picture in the README shows all three; run this file with a folder as argument to draw it.


def draw_all(path):
    """Write the three figures of the paper as one picture."""
    figure = plt.figure(figsize=(11, 16.5), layout="constrained")
    top, middle, bottom = figure.subfigures(3, 1, height_ratios=[7.5, 4.5, 4.5])
    draw_trees(top)
    for panel, model in ((middle, dense), (bottom, sparse)):
        plot_weights(model, ax=panel.subplots()).set_title(f"beta = {model.beta}")
    figure.savefig(path, dpi=96)
    Image.open(path).convert("RGB").quantize(200).save(path, optimize=True)  # a small file


if len(sys.argv) > 1:
    draw_all(Path(sys.argv[1]) / "wine.png")

# %%
# **What to notice.** You can read every split: proline leads the first split of class_0 in both
# models. From ``beta = 0`` to ``0.25`` the tree of class_0 keeps its shape, that of class_1
# loses nodes and that of class_2 gains some, as in the paper, while each split uses fewer
# features.
