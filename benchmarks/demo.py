"""``make demo``: a small network whose eight augmentation probabilities are tuned in one run.

First one run in the foreground, saved after every round: interrupt it at any moment, even with
SIGKILL, start it again, and the same decisions follow. Then the table: five ways to set the eight
probabilities, five seeds each, on two processes. Last a picture of the first run.
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from benchmarks.demo_table import format_table
from benchmarks.online_suite.policies import FixedPolicy, Policy, RandomPolicy, TunedPolicy
from benchmarks.online_suite.problems import digits_augmentation
from benchmarks.online_suite.runner import Record, run_online
from benchmarks.processes import in_processes
from benchmarks.record import write_results
from botorch_costly import (
    AlwaysQuery,
    BernoulliQuery,
    ConfidenceQuery,
    OnlineTuner,
    PricedQuery,
    QueryRule,
    RewardScale,
)
from botorch_costly.plotting import BLUE, VERMILION, plot_queries, plot_schedule_map

PROBLEM = digits_augmentation()
# Chosen on seeds 100 to 107 (with them ranks, which ruinous rounds cannot distort); the demo runs on
# seeds 0 to 4.
CONFIDENCE, MOST_QUERIES = ConfidenceQuery(kappa=0.95), 116
BERNOULLI_RATE = 0.5


def _tuned(query: QueryRule, max_queries: int | None = None) -> Callable[[int], Policy]:
    def make(seed: int) -> Policy:
        return TunedPolicy(
            OnlineTuner.as_published(
                PROBLEM.space,
                horizon=PROBLEM.horizon,
                query=query,
                max_queries=max_queries,
                lengthscale=1.5,
                noise=0.5,
                initial_rounds=20,
                start=PROBLEM.default,
                reward_scale=RewardScale(ranks=True),
                seed=seed,
            )
        )

    return make


_HARMLESS = ("rotation", "shift", "noise")
METHODS: dict[str, Callable[[int], Policy]] = {
    "fixed 0.5": lambda seed: FixedPolicy(PROBLEM.default),
    "all off": lambda seed: FixedPolicy(dict.fromkeys(PROBLEM.default, 0.0)),
    "good fixed": lambda seed: FixedPolicy({n: 0.5 * (n in _HARMLESS) for n in PROBLEM.default}),
    "random schedule": lambda seed: RandomPolicy(PROBLEM.space, seed),
    "full feedback": _tuned(AlwaysQuery()),
    "Bernoulli": _tuned(BernoulliQuery(BERNOULLI_RATE)),
    "CE-GP-UCB": _tuned(CONFIDENCE, MOST_QUERIES),
    "priced": _tuned(PricedQuery(budget=MOST_QUERIES)),
}
SHOWN = "CE-GP-UCB"


def main(arguments: list[str]) -> None:
    """Run the demo."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks demo", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="where results go")
    parser.add_argument("--seeds", type=int, default=5, help="how many")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--processes", type=int, default=2)
    parser.add_argument("--fresh", action="store_true", help="do not resume an interrupted demo")
    parser.add_argument("--one-run", action="store_true", help="the first run alone, no table")
    parser.add_argument("--rounds", type=int, default=PROBLEM.horizon, help="of the first run")
    parser.add_argument("--store", help="name to store the table by in benchmarks/results")
    options = parser.parse_args(arguments)
    began = time.perf_counter()
    torch.set_num_threads(1)  # faster than two for a network this small
    if options.fresh:  # whatever else is in that folder is not ours to remove
        (options.out / "checkpoint.pt").unlink(missing_ok=True)
    shown = _shown_run(options.out, options.rounds)
    if options.one_run:
        return
    seeds = range(options.first_seed, options.first_seed + options.seeds)
    rows = _table_rows(seeds, options.processes, shown)
    print("\n" + format_table(rows))
    if options.store:
        write_results(options.store, rows, seeds=list(seeds))
    fixed = run_online(PROBLEM, METHODS["fixed 0.5"](0), 0)
    picture = _draw(shown, fixed, options.out / "demo.png")
    (options.out / "checkpoint.pt").unlink()  # finished: the next demo starts afresh
    print(f"\nPicture: {picture}\nDone in {time.perf_counter() - began:.0f} s.")


def _shown_run(out: Path, rounds: int) -> Record:
    """Train the network in the foreground, with a bar, resuming if an earlier run was cut off."""
    from tqdm import tqdm

    checkpoint = out / "checkpoint.pt"
    print(
        "A network learns digits from 200 pictures while its eight augmentation probabilities, all 0.5\n"
        f"at first and some of them harmful, are tuned. Query rule: {CONFIDENCE},\n"
        f"at most {MOST_QUERIES} queries in {PROBLEM.horizon} rounds."
    )
    if checkpoint.exists():
        print("Resuming an interrupted run (--fresh starts anew).")
    with tqdm(total=rounds, unit="round", desc=f"{SHOWN}, seed 0", **_pace()) as bar:

        def show(record: Record) -> None:
            played = len(record.decisions)
            accuracy = record.test_accuracy[-1][1] if record.test_accuracy else float("nan")
            shown = f"queries {record.queries}/{played}, test accuracy {accuracy:.1%}"
            bar.set_postfix_str(shown, refresh=False)
            bar.update(played - bar.n)

        record = run_online(PROBLEM, METHODS[SHOWN](0), 0, checkpoint, show, rounds)
        show(record)
    (out / "record.json").write_text(record.to_json(), encoding="utf-8")
    return record


def _pace() -> dict[str, float]:
    """Return how often a bar is redrawn: seldom where each drawing is a new line of a log."""
    return {"mininterval": 0.2 if sys.stderr.isatty() else 15.0}


def _table_rows(seeds: range, processes: int, shown: Record) -> list[dict[str, Any]]:
    """Run every method on every seed but the one already shown."""
    from tqdm import tqdm

    jobs = [(m, s) for s in seeds for m in METHODS if (m, s) != (SHOWN, 0)]
    rows = [_row(SHOWN, 0, shown)] if 0 in seeds else []
    done = in_processes(_one_job, jobs, processes)
    rows += tqdm(done, total=len(jobs), unit="run", desc="the table", **_pace())
    return sorted(rows, key=lambda row: (list(METHODS).index(row["method"]), row["seed"]))


def _one_job(job: tuple[str, int]) -> dict[str, Any]:
    method, seed = job
    return _row(method, seed, run_online(PROBLEM, METHODS[method](seed), seed))


def _row(method: str, seed: int, record: Record) -> dict[str, Any]:
    return {
        "method": method,
        "seed": seed,
        "test_accuracy": record.test_accuracy[-1][1],
        "queries": record.queries,
        "rounds": len(record.decisions),
        "seconds": round(record.seconds, 2),
    }


def _draw(shown: Record, fixed: Record, path: Path) -> Path:
    """Draw the schedule, the queries with their reasons, and the accuracy of the first run."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 8), layout="constrained")
    FigureCanvasAgg(figure)
    schedule, queries, accuracy = figure.subplots(3, 1, height_ratios=[3, 1, 2], sharex=True)
    figure.suptitle(f"{SHOWN} on scikit-learn's digits, seed 0: one training run of 200 rounds")
    plot_schedule_map(shown.decisions, ax=schedule, label="probability")
    plot_queries(shown.decisions, ax=queries)
    for record, label, color in ((shown, SHOWN, BLUE), (fixed, "fixed 0.5", VERMILION)):
        rounds, values = zip(*record.test_accuracy, strict=True)
        accuracy.plot(rounds, [100 * v for v in values], color=color, label=label)
    accuracy.set(xlabel="round", ylabel="test accuracy (%)", ylim=(0, 100))
    accuracy.legend(frameon=False, loc="lower right")
    accuracy.set_xlim(-0.5, PROBLEM.horizon - 0.5)
    for axes in (schedule, queries):
        axes.set_xlabel("")
    figure.savefig(path, dpi=150)
    return path
