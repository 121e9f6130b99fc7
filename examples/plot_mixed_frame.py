"""
A frame with categories, numbers and missing values
===================================================

Real tables mix numbers, categories and missing values. Pass the frame to `fit` as it is.
"""

# %%
# A table of loans
# ----------------
# Income is sometimes missing, more often if the loan fails.

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.impute import SimpleImputer
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from lhtree import LHForestClassifier
from lhtree.plot import plot_importances

random = np.random.default_rng(0)
n = 1500
frame = pd.DataFrame(
    {
        "income": random.lognormal(10, 0.4, n).round(-2),
        "debt": random.lognormal(9, 0.6, n).round(-2),
        "age": random.integers(18, 80, n),
        "home": pd.Categorical(random.choice(["own", "rent", "family"], n)),
        "purpose": pd.Categorical(random.choice(["car", "house", "study", "business"], n)),
    }
)
risk = (
    2 * (np.log(frame["debt"]) - np.log(frame["income"]) + 1)
    + 0.8 * (frame["home"] == "rent")
    + 0.6 * (frame["purpose"] == "business")
    - 0.02 * (frame["age"] - 45)
)
fails = np.where(risk + random.logistic(scale=0.4, size=n) > 0.6, "fails", "is paid back")
frame.loc[random.random(n) < np.where(fails == "fails", 0.3, 0.1), "income"] = np.nan
print(frame.head())
print("missing:", frame.isna().mean()["income"].round(2))

# %%
# As it is, and prepared by hand
# ------------------------------
prepared = make_pipeline(
    make_column_transformer(
        (OneHotEncoder(), ["home", "purpose"]), remainder=SimpleImputer(strategy="median")
    ),
    RandomForestClassifier(random_state=0),
)
models = {
    "LHForest, the frame as it is": LHForestClassifier(random_state=0),
    "RandomForest, one-hot and medians": prepared,
}
for name, model in models.items():
    scores = cross_val_score(model, frame, fails, cv=5)
    print(f"{name:35} {scores.mean():.3f} ± {scores.std():.3f}")

# %%
# What the forest relies on
# -------------------------
forest = LHForestClassifier(random_state=0).fit(frame, fails)
print(list(forest.column_names_))
plot_importances(forest)
plt.show()

# %%
# **What to notice.** No encoder, no imputer: categories become columns such as ``home=rent``, and
# a missing value counts as the mean of the rows in its node.
