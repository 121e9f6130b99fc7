"""
A pipeline with GridSearchCV
============================

Clone, search and pipeline both classifiers like any scikit-learn estimator.
"""

# %%
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.model_selection import GridSearchCV, train_test_split
from sklearn.pipeline import make_pipeline

from lhtree import LHForestClassifier

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
pipeline = make_pipeline(
    PCA(random_state=0), LHForestClassifier(10, preset="paper", random_state=0)
)
grid = {
    "pca__n_components": [10, 25],
    "lhforestclassifier__beta": [0.0, 0.4, 0.8],
}
search = GridSearchCV(pipeline, grid, cv=3).fit(X_train, y_train)
print("chosen:", search.best_params_)
print(f"cross-validated {search.best_score_:.3f}, on test rows {search.score(X_test, y_test):.3f}")

# %%
results = search.cv_results_
fig, ax = plt.subplots(figsize=(6, 3.6), layout="constrained")
for n_components in grid["pca__n_components"]:
    mask = results["param_pca__n_components"] == n_components
    beta = np.asarray(results["param_lhforestclassifier__beta"][mask], dtype=float)
    ax.plot(beta, results["mean_test_score"][mask], "o-", label=f"{n_components} components")
ax.set(xlabel="beta", ylabel="cross-validated accuracy")
ax.legend()
plt.show()

# %%
# **What to notice.** The search only sees training rows. Parameters of a step are named
# ``step__parameter``; the forest needs no special care.
