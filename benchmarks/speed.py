"""Time and memory of training and prediction, side by side in one run.

::

    python -m benchmarks.speed                          # all of it; takes more than an hour
    python -m benchmarks.speed --budget-minutes 25      # what is most important first
    python -m benchmarks.speed --tasks table3 synth     # some of it
    python -m benchmarks.speed --tasks synth --again    # another round: the page has the best
    python -m benchmarks.speed_report                   # tables from the lines

Every measurement runs in a process of its own with fixed threads, so that no model
inherits another one's memory or thread pool, and is one JSON line in
``benchmarks/results/speed.jsonl``. Fit times are the best of several repeats after a
warm-up on few rows. A second start skips the lines that are there for the same build of
the package; what takes longer than its limit, or has no data here, is skipped with a
message.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tqdm import tqdm

from benchmarks import lines, speed_jobs

RESULTS = Path(__file__).parent / "results" / "speed.jsonl"
LIMIT = 600.0  # seconds of one measurement with all its repeats
BURN = "import os; os.sched_setaffinity(0, {0})\nwhile True: pass"


@contextmanager
def busy_core(is_wanted: bool) -> Iterator[None]:
    """Keep the first core busy with another process."""
    if not is_wanted:
        yield
        return
    burner = subprocess.Popen([sys.executable, "-c", BURN])
    try:
        yield
    finally:
        burner.kill()
        burner.wait()


def run_job(job: dict[str, Any], limit: float) -> dict[str, Any]:
    """Measure in a process of its own; the answer has an ``error`` if there is none."""
    environment = {**os.environ, "OMP_NUM_THREADS": str(job["threads"])}
    command = [sys.executable, "-m", "benchmarks.speed", "--job", json.dumps(job)]
    try:
        with busy_core(job.get("loaded", False)):
            done = subprocess.run(
                command, env=environment, capture_output=True, text=True, check=False,
                timeout=limit,
            )  # fmt: skip
    except subprocess.TimeoutExpired:
        return {"error": f"took longer than {limit:.0f} s"}
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1] if done.stderr else "no message"}
    result: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return result


def read_done(path: Path, build: str) -> set[str]:
    """Return the jobs that have a line of this build."""
    lines.mend(path)
    if not path.exists():
        return set()
    found = [json.loads(text) for text in path.read_text(encoding="utf-8").splitlines()]
    return {line["job"] for line in found if line["build"] == build}


def run(jobs: list[dict[str, Any]], out: Path, budget: float, *, again: bool = False) -> None:
    """Measure what is not there yet, or all of it `again`, as long as there is time."""
    start, build = time.monotonic(), speed_jobs.find_build()
    out.parent.mkdir(parents=True, exist_ok=True)
    done = set() if again else read_done(out, build)
    left = [job for job in jobs if json.dumps(job) not in done]
    for job in (bar := tqdm(left, initial=len(jobs) - len(left), total=len(jobs))):
        time_left = budget - (time.monotonic() - start)
        if time_left <= 0:
            tqdm.write(f"The budget is spent; {len(bar) - bar.n} measurements are left.")
            return
        name = " ".join(str(value) for value in job.values())
        bar.set_description(name[:60])
        load = os.getloadavg()[0]
        result = run_job(job, min(LIMIT, max(time_left, 10.0)))
        if "error" in result:
            tqdm.write(f"skipped: {name}: {result['error']}")
            if "longer than" not in result["error"]:
                continue
        machine = {**lines.describe_machine(), "load": load, "build": build}
        lines.append(out, {**job, **result, **machine, "job": json.dumps(job)})


def main() -> None:
    """Run the measurements that the command line asks for."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--tasks", nargs="+", choices=speed_jobs.TASKS, default=speed_jobs.TASKS)
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--models", nargs="+", help="only these")
    parser.add_argument("--budget-minutes", type=float, default=float("inf"))
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--again", action="store_true", help="another round of what is there, too")
    parser.add_argument("--list", action="store_true", help="print the measurements and leave")
    parser.add_argument("--job", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.job:
        print(json.dumps(speed_jobs.measure(json.loads(options.job))))
        return
    jobs = [
        job
        for job in speed_jobs.list_jobs()
        if job["task"] in options.tasks
        and job["threads"] in options.threads
        and (not options.models or job["model"] in options.models)
    ]
    if options.list:
        print(*map(json.dumps, jobs), sep="\n")
        return
    run(jobs, options.out, 60 * options.budget_minutes, again=options.again)


if __name__ == "__main__":
    main()
