"""Load corrupted model files: each raises a ValueError, or is a model that predicts.

Usage::

    python tools/fuzz_load.py                  # 100,000 corruptions of small models
    python tools/fuzz_load.py -n 1000 --seed 7

There are two kinds: files damaged after saving, which the digest must detect, and files
with a forged digest, which the other checks must detect unless they are harmless. On a
build with sanitizers:
``SANITIZE_COMMAND="tools/fuzz_load.py" tools/sanitize.sh address,undefined``.
"""

import argparse
import faulthandler
import resource
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))
import corruption

SECONDS_PER_FILE = 60  # far more than any file needs: a hang ends with a traceback


def measure_peak():
    """Return the peak of resident memory in MB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def fuzz(n_files, seed, folder):
    """Corrupt and load files; return how often each outcome occurred."""
    models, X = corruption.make_models()
    originals = [corruption.to_bytes(model, folder) for model in models]
    path = folder / "corrupted.safetensors"
    outcomes = Counter()
    for i in range(n_files):
        rng = np.random.default_rng([seed, i])
        original = originals[i % len(originals)]
        data, is_forged = corruption.corrupt(original, rng)
        if data == original:
            outcomes["unchanged"] += 1
            continue
        path.write_bytes(data)
        faulthandler.dump_traceback_later(SECONDS_PER_FILE, exit=True)
        try:
            outcome = corruption.examine(path, X, is_forged)
        except BaseException:
            print(f"Corruption {i} of seed {seed} was not handled properly:", file=sys.stderr)
            raise
        outcomes[("forged, " if is_forged else "damaged, ") + outcome] += 1
        if (i + 1) % 10_000 == 0:
            print(f"{i + 1} of {n_files}", file=sys.stderr, flush=True)
    faulthandler.cancel_dump_traceback_later()
    return outcomes


def main():
    """Run the command."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("-n", type=int, default=100_000, help="number of corruptions")
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        fuzz(300, arguments.seed + 1, Path(name))  # warms up: later growth is a leak
        before, begin = measure_peak(), time.perf_counter()
        outcomes = fuzz(arguments.n, arguments.seed, Path(name))
    for outcome, n in sorted(outcomes.items()):
        print(f"{n:8} {outcome}")
    seconds, growth = time.perf_counter() - begin, measure_peak() - before
    print(f"{arguments.n} files in {seconds:.0f} s, peak memory {growth:+.1f} MB")


if __name__ == "__main__":
    main()
