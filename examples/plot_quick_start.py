"""
Quick start: Iris
=================

Fit a forest and one tree per class, compare them, and look at the splits.
"""

# %%
# Fit and score
# -------------
# Both classifiers follow scikit-learn: `fit`, `predict`, `predict_proba`, `score`.

import matplotlib.pyplot as plt
from sklearn.datasets import load_iris
from sklearn.model_selection import cross_val_score, train_test_split

from lhtree import LHForestClassifier, LHTClassifier
from lhtree.explain import split_table
from lhtree.plot import plot_weights

X, y = load_iris(return_X_y=True, as_frame=True)
for model in (LHForestClassifier(random_state=0), LHTClassifier()):
    scores = cross_val_score(model, X, y, cv=10)
    print(f"{type(model).__name__:20} {scores.mean():.3f} ± {scores.std():.3f}")

# %%
# Probabilities
# -------------
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
forest = LHForestClassifier(random_state=0).fit(X_train, y_train)
print(forest.predict(X_test[:5]))
print(forest.predict_proba(X_test[:5]).round(2))

# %%
# What the splits say
# -------------------
# One tree per class is made to be read. Each row of the table is a split.

tree = LHTClassifier(min_samples_leaf=5).fit(X, y)
columns = ["positive_class", "depth", "n_samples", "threshold_kind", "threshold"]
print(split_table(tree)[columns].to_string())

# %%
plot_weights(tree)
plt.show()

# %%
# **What to notice.** Setosa needs one split: petals alone separate it from the others. The weights
# are differences of class means in standardised units, so a longer bar means that the classes are
# further apart in that feature.
