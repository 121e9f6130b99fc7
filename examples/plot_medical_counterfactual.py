"""
Explaining a medical prediction
===============================

The Wisconsin data describe cell nuclei of breast tumours. A prediction alone is of little use to a
physician. Why is it malignant, and how close was the decision?
"""

# %%
# A small model that you can read
# -------------------------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

from lhtree import LHTClassifier
from lhtree.explain import explain_rows, nearest_counterfactual
from lhtree.plot import plot_contributions

bunch = load_breast_cancer(as_frame=True)
X, y = bunch.data, bunch.target_names[bunch.target]
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
model = LHTClassifier(beta=0.5, min_samples_leaf=10).fit(X_train, y_train)
print(f"{100 * model.score(X_test, y_test):.1f} % of the test rows are right")
print(model.trees_[0])

# %%
# Why this prediction
# -------------------
# The closest call among the rows predicted as malignant.

is_malignant = model.predict(X_test) == "malignant"
changes = [nearest_counterfactual(model, row) for _, row in X_test[is_malignant][:15].iterrows()]
closest = int(np.argmin([change.distance for change in changes]))
patient = X_test[is_malignant].iloc[[closest]]
explanation = explain_rows(model, patient)
for name, vote in zip(explanation.classes, explanation.score[0], strict=True):
    print(f"vote for {name}: {vote:.3f}")
plot_contributions(model, patient)
plt.show()

# %%
# What would change it
# --------------------
# The smallest change of all features together that makes the model predict benign. With one tree
# per class it is proven to be the smallest.

change = changes[closest]
print(
    f"{change.original} would become {change.prediction} at a distance of "
    f"{change.distance:.2f} standard deviations (proven: {change.is_minimal})"
)
changed = np.asarray(change.x, dtype=float).ravel() - patient.to_numpy().ravel()
for j in np.argsort(-abs(changed / X_train.std().to_numpy()))[:5]:
    print(
        f"  {X.columns[j]:25} {patient.iloc[0, j]:9.3f} -> {patient.iloc[0, j] + changed[j]:9.3f}"
    )

# %%
# **What to notice.** The fraction of malignant rows plus all contributions is exactly the vote. A
# small distance to the counterfactual marks a case that deserves a second look.
