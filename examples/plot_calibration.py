"""
Can you trust the probabilities?
================================

The probability from a forest is a fraction of its votes. Of the rows that get 80 %, about 80 %
should be right. The reliability diagram checks this on a noisy table.
"""

# %%
import matplotlib.pyplot as plt
from sklearn.calibration import CalibrationDisplay
from sklearn.datasets import make_classification
from sklearn.ensemble import RandomForestClassifier
from sklearn.metrics import brier_score_loss, log_loss
from sklearn.model_selection import train_test_split

from lhtree import LHForestClassifier, LHTClassifier

X, y = make_classification(
    6000, 20, n_informative=8, n_redundant=4, flip_y=0.1, class_sep=0.8, random_state=0
)
X_train, X_test, y_train, y_test = train_test_split(X, y, test_size=0.5, random_state=0)
models = {
    "LHForest": LHForestClassifier(random_state=0),
    "LHForest, calibrated": LHForestClassifier(calibration="oob", random_state=0),
    "RandomForest": RandomForestClassifier(random_state=0),
    "LHT, one tree": LHTClassifier(min_samples_leaf=20),
}
fig, ax = plt.subplots(figsize=(5.5, 5), layout="constrained")
for name, model in models.items():
    proba = model.fit(X_train, y_train).predict_proba(X_test)[:, 1]
    CalibrationDisplay.from_predictions(y_test, proba, n_bins=10, name=name, ax=ax)
    print(
        f"{name:21} log-loss {log_loss(y_test, proba):.3f}   "
        f"Brier {brier_score_loss(y_test, proba):.3f}"
    )
plt.show()

# %%
# **What to notice.** You can trust a line near the diagonal. Averaging many trees makes the
# forests' votes usable but under-confident: the line is steeper than the diagonal.
# ``calibration="oob"`` fits them to the out-of-bag votes, which lowers the log-loss and changes no
# label. The leaves of a single tree output nearly 0 or 1: it is over-confident, and its log-loss
# shows it.
