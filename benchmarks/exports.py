"""Time and memory of an ONNX export next to the package's own prediction.

Usage::

    python -m benchmarks.exports                 # 180 trees on satimage, 10,000 rows

Both run on one thread; times are CPU times, the best of several runs. Memory (on Linux)
is the peak of a process that only loads the graph and runs it, and what of it the run
added.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks import data
from lhtree import LHForestClassifier
from lhtree.export import to_onnx

KINDS = {
    "paper": {"preset": "paper", "gamma": 5},
    "paper, beta 0.8": {"preset": "paper", "gamma": 5, "beta": 0.8},
    "default": {},
}
N_ROWS = 10_000
N_RUNS = 5
RUN = """
import json, sys, time
import numpy as np, onnxruntime
options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
X = np.load(sys.argv[2])
def find_peak():
    text = open("/proc/self/status").read()  # getrusage would start with the parent's peak
    return int(text[text.index("VmHWM:") + 6 :].split()[0]) / 1024
before = find_peak()
session = onnxruntime.InferenceSession(sys.argv[1], options, providers=["CPUExecutionProvider"])
seconds = []
for _ in range(int(sys.argv[3])):
    begin = time.process_time()
    session.run(None, {"X": X})
    seconds.append(time.process_time() - begin)
print(json.dumps([min(seconds), find_peak(), find_peak() - before]))
"""


def measure_own(model: LHForestClassifier, X: np.ndarray) -> float:
    """Return the seconds that the package takes."""
    seconds = []
    for _ in range(N_RUNS):
        begin = time.process_time()
        model.predict_proba(X)
        seconds.append(time.process_time() - begin)
    return min(seconds)


def measure_onnx(model: LHForestClassifier, X: np.ndarray) -> tuple[float, float, float]:
    """Return the seconds that onnxruntime takes, its peak of memory and its growth in MB."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        to_onnx(model, folder / "model.onnx")
        np.save(folder / "X.npy", X)
        command = [sys.executable, "-c", RUN, "model.onnx", "X.npy", str(N_RUNS)]
        run = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=True)
    seconds, peak, growth = json.loads(run.stdout)
    return seconds, peak, growth


def main() -> None:
    """Run the command."""
    table = data.load("satimage")
    X = np.resize(table.X_test, (N_ROWS, table.X_test.shape[1]))
    print("| model | trees | nodes | package | ONNX | ratio | peak (growth) |")
    print("| --- | --- | --- | --- | --- | --- | --- |")
    for name, options in KINDS.items():
        model = LHForestClassifier(30, random_state=0, n_jobs=1, **options)
        model.fit(table.X, table.y)
        own, (other, peak, growth) = measure_own(model, X), measure_onnx(model, X)
        n_trees, n_nodes = len(model.forest_), len(model.forest_.left)
        print(
            f"| {name} | {n_trees} | {n_nodes / n_trees:.0f} per tree | {own:.2f} s "
            f"| {other:.2f} s | {other / own:.1f} | {peak:.0f} MB ({growth:.0f} MB) |"
        )


if __name__ == "__main__":
    main()
