"""
A forest in another runtime
===========================

Runtimes for servers, phones and browsers read the ONNX format. Here a forest becomes an ONNX
graph, and onnxruntime predicts in place of the package.
"""

# %%
# From the model to a file
# ------------------------
from pathlib import Path
from tempfile import TemporaryDirectory

import matplotlib.pyplot as plt
import numpy as np
import onnxruntime
from sklearn.datasets import load_wine
from sklearn.model_selection import train_test_split

from lhtree import LHForestClassifier
from lhtree.export import to_onnx

X, y = load_wine(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X, y, stratify=y, random_state=0)
forest = LHForestClassifier(20, random_state=0).fit(X_train, y_train)

with TemporaryDirectory() as folder:
    path = Path(folder) / "wine.onnx"
    to_onnx(forest, path)
    print(f"{path.stat().st_size / 1000:.0f} kB")
    session = onnxruntime.InferenceSession(path)

# %%
# Predict in the other runtime
# ----------------------------
# The session knows nothing about lhtree. It takes a table of numbers and returns labels and
# probabilities.
for value in [*session.get_inputs(), *session.get_outputs()]:
    print(f"{value.name:14} {value.type:15} {value.shape}")
label, probability = session.run(["label", "probabilities"], {"X": X_test})
print("labels that differ:", int(np.sum(label != forest.predict(X_test))), "of", len(label))
difference = abs(probability - forest.predict_proba(X_test)).max()
print(f"largest difference of a probability: {difference:.1e}")

# %%
# Rows on the border
# ------------------
# A threshold often lies exactly on a training row, where the last bit of a sum decides. So we also
# predict the training rows, and points halfway between two of them.
random = np.random.default_rng(0)
pairs = random.integers(len(X_train), size=(2, 2000))
hard = np.vstack([X_train, X_train[pairs].mean(axis=0)])
label, probability = session.run(["label", "probabilities"], {"X": hard})
print("labels that differ:", int(np.sum(label != forest.predict(hard))), "of", len(label))

figure, ax = plt.subplots(figsize=(5, 5), layout="constrained")
ax.plot(forest.predict_proba(hard).ravel(), probability.ravel(), ".", alpha=0.4)
ax.axline((0, 0), slope=1, color="black", linewidth=0.5)
ax.set(xlabel="probability in lhtree", ylabel="probability in onnxruntime", aspect="equal")
plt.show()

# %%
# **What to notice.** No label differs, not even for rows on a hyperplane: the graph adds in the
# order that the package defines. It uses standard operators, so the runtime needs no extension.
