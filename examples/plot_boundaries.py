"""
Boundaries of CART, hyperplane trees and a forest
=================================================

An axis-parallel tree turns slanted boundaries into stairs. A hyperplane tree needs one cut.
"""

# %%
# Two slanted stripes
# -------------------
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.colors import ListedColormap
from sklearn.model_selection import train_test_split
from sklearn.tree import DecisionTreeClassifier

from lhtree import LHForestClassifier, LHTClassifier

random = np.random.default_rng(0)
X = random.uniform(-1, 1, size=(600, 2))
along = X[:, 0] + X[:, 1] + random.normal(scale=0.08, size=600)
y = np.digitize(along, [-0.5, 0.5])
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)

models = {
    "CART": DecisionTreeClassifier(random_state=0),
    "LHT: one tree per class": LHTClassifier(min_samples_leaf=5),
    "LHT forest": LHForestClassifier(random_state=0),
}
colours = ListedColormap(["#0072B2", "#E69F00", "#009E73"])
places = np.linspace(-1, 1, 250)
grid = np.stack(np.meshgrid(places, places), axis=-1)
fig, axes = plt.subplots(1, 3, figsize=(12, 4.7), layout="constrained")
for ax, (name, model) in zip(axes, models.items(), strict=True):
    model.fit(X_train, y_train)
    region = model.predict(grid.reshape(-1, 2)).reshape(grid.shape[:2])
    ax.imshow(region, origin="lower", extent=(-1, 1, -1, 1), cmap=colours, alpha=0.35)
    ax.scatter(*X_train.T, c=y_train, cmap=colours, s=12, edgecolor="k", linewidth=0.3)
    accuracy = model.score(X_test, y_test)
    ax.set_title(f"{name}\n{100 * accuracy:.1f} % of test rows")
    ax.set(xticks=[], yticks=[])
plt.show()

# %%
# **What to notice.** The stairs of CART follow single training points. The hyperplane trees get
# the slope from the class means alone; the forest smooths the rest.
