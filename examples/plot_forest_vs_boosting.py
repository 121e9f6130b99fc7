"""
A forest against boosting: accuracy and time
============================================

A hyperplane forest, a random forest and histogram boosting on the same splits of the digits data,
each with its defaults and on one thread.
"""

# %%
import time

import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.model_selection import train_test_split
from threadpoolctl import threadpool_limits

from lhtree import LHForestClassifier

X, y = load_digits(return_X_y=True)
models = {
    "LHForest": LHForestClassifier(n_jobs=1, random_state=0),
    "LHForest, preset paper": LHForestClassifier(
        preset="paper", beta=0.8, n_jobs=1, random_state=0
    ),
    "RandomForest": RandomForestClassifier(random_state=0),
    "HistGradientBoosting": HistGradientBoostingClassifier(random_state=0),
}
results = {}
for name, model in models.items():
    accuracies, seconds = [], []
    for seed in range(3):
        X_train, X_test, y_train, y_test = train_test_split(
            X, y, test_size=0.2, stratify=y, random_state=seed
        )
        start = time.perf_counter()
        with threadpool_limits(1):
            model.fit(X_train, y_train)
        seconds.append(time.perf_counter() - start)
        accuracies.append(100 * model.score(X_test, y_test))
    results[name] = np.mean(accuracies), min(seconds)
    print(f"{name:25} {results[name][0]:.1f} %   {results[name][1]:.2f} s")

# %%
fig, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
for name, (accuracy, seconds) in results.items():
    ax.plot(seconds, accuracy, "o", color="tab:orange" if "LH" in name else "tab:grey")
    ax.annotate(name, (seconds, accuracy), xytext=(0, 7), textcoords="offset points", ha="center")
ax.set(xscale="log", xlabel="seconds of a fit, one thread", ylabel="accuracy (%)")
ax.margins(x=0.35, y=0.2)
plt.show()

# %%
# **What to notice.** Up and to the left is better. This is one small data set;
# :doc:`/results/accuracy` has the paper's data sets with all peers.
