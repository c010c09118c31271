"""``make demo``: eight augmentation probabilities, tuned while a small network learns digits.

First one run of ``OnlineTuner`` as it comes in the foreground, saved after every round: interrupt it at
any moment, even with SIGKILL, start it again, and the same decisions follow. Then the table: other seeds
and all other methods, on two processes. Last a picture of the first run.
"""

import argparse
import statistics
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.demo.methods import METHODS, PROBLEM, SAID, SHOWN
from benchmarks.harness.command_line import add_seeds, parser_for, seeds_of
from benchmarks.harness.figures import new_figure, save
from benchmarks.harness.record import grouped, recording
from benchmarks.harness.statistics import paired
from benchmarks.harness.sweep import in_processes
from benchmarks.suite.runner import Record, run_online
from botorch_costly.plotting import (
    BLACK,
    BLUE,
    GREEN,
    ORANGE,
    VERMILION,
    plot_queries,
    plot_schedule_map,
)

Curve = Sequence[tuple[int, float]]  # rounds, test accuracy
COLOURS = {
    SHOWN: VERMILION,
    "as published": ORANGE,
    "good fixed": GREEN,
    "all off": BLUE,
    "fixed 0.5": BLACK,
}
"""Methods whose accuracy is drawn."""
DIPS = "dips: a worse configuration is tried, and the guard rolls the network back after its query"


def draw(shown: Record, curves: Mapping[str, Curve], seed: int, path: Path) -> None:
    """Draw the run of a tuner, and the accuracy of others beside its own."""
    figure = new_figure(9, 8.5)
    schedule, queries, accuracy = figure.subplots(3, 1, height_ratios=[3, 0.9, 2.4], sharex=True)
    figure.suptitle(
        f"{SHOWN} as it comes: one training run of {PROBLEM.horizon} rounds on digits (seed {seed})"
    )
    plot_schedule_map(shown.decisions, ax=schedule, label="probability that is played")
    plot_queries(shown.decisions, ax=queries)
    for name, color in COLOURS.items():
        curve = shown.test_accuracy if name == SHOWN else curves.get(name, ())
        if curve:
            rounds, values = zip(*curve, strict=True)
            width = 2.5 if name == SHOWN else 1.2
            shares = [100 * value for value in values]
            accuracy.plot(rounds, shares, color=color, linewidth=width, label=name)
    accuracy.set(xlabel="round", ylabel="test accuracy (%)", ylim=(0, 100))
    accuracy.legend(frameon=False, loc="lower right", ncols=2)
    accuracy.set_title(DIPS, loc="left", fontsize="small")
    accuracy.grid(axis="y", color="#dddddd", linewidth=0.6)
    accuracy.set_xlim(-0.5, PROBLEM.horizon - 0.5)
    for axes in (schedule, queries):
        axes.set_xlabel("")
    save(figure, path)


Rows = Sequence[Mapping[str, Any]]
REFERENCE = "full feedback"
_WIDTH = 24


def text(rows: Rows) -> str:
    """Return the table, and how the methods that save queries compare with full feedback."""
    table = grouped(rows, "method")  # in the order they were run
    seeds = max(len(mine) for mine in table.values())
    wide = max(5 * seeds, len(head := "test accuracy (%) by seed")) + 2
    lines = [f"{'method':<{_WIDTH}}{head:<{wide}}median  worst  queries  seconds"]
    for method, mine in table.items():
        accuracies = _accuracies(mine)
        each = " ".join(f"{a:.1f}" for a in accuracies)
        queries = statistics.mean(row["queries"] for row in mine)
        seconds = statistics.mean(row["seconds"] for row in mine)
        lines.append(
            f"{method:<{_WIDTH}}{each:<{wide}}{statistics.median(accuracies):>6.1f}"
            f"{min(accuracies):>7.1f}{queries:>9.0f}{seconds:>9.1f}"
        )
    return "\n".join([*lines, "", *_comparison(table)])


def _accuracies(rows: Rows) -> list[float]:
    return [100 * row["test_accuracy"] for row in rows]


def _comparison(table: Mapping[str, Rows]) -> list[str]:
    """Compare every method that queries now and then with full feedback, paired over seeds."""
    if REFERENCE not in table:
        return []
    full, paid = _accuracies(table[REFERENCE]), sum(row["queries"] for row in table[REFERENCE])
    lines = []
    for method, mine in table.items():
        queries = sum(row["queries"] for row in mine)
        found = paired(_accuracies(mine), full) if 0 < queries < paid else None
        if found is not None:
            lines.append(
                f"{method} less {REFERENCE}: {found.value:+.1f} points on average (95 %"
                f" {found.low:+.1f} to {found.high:+.1f}, {len(full)} seeds)"
                f" at {queries / paid:.0%} of its queries"
            )
    return lines


SEEDS = 3  # of the table, so that all of it takes less than two minutes


class Done(NamedTuple):
    """A run of the table."""

    row: dict[str, Any]
    curve: Curve


def main(arguments: list[str]) -> None:
    """Run the demo."""
    options = _parser().parse_args(arguments)
    torch.set_num_threads(1)
    began, seed = time.perf_counter(), options.first_seed
    checkpoint = options.out / "checkpoint.pt"
    if options.fresh:
        checkpoint.unlink(missing_ok=True)
    options.out.mkdir(parents=True, exist_ok=True)
    shown = _shown_run(options.out, options.rounds, seed)
    if options.one_run:
        return
    done = _stored_table(options, shown) if options.store else _table(options, shown)
    rows = [run.row for run in done]
    said = (f"  {name:<24}{SAID[name]}" for name in METHODS)
    print("\n".join(["", text(rows), "", *said, ""]))
    curves = {run.row["method"]: run.curve for run in done if run.row["seed"] == seed}
    draw(shown, curves, seed, options.picture or options.out / "demo.png")
    checkpoint.unlink()  # finished: the next demo starts afresh
    print(f"Done in {time.perf_counter() - began:.0f} s.")


def _parser() -> argparse.ArgumentParser:
    parser = parser_for("demo", "a network tunes its own augmentation, and pays for its queries")
    parser.add_argument("--out", type=Path, default=Path("out/demo"), help="where to write")
    parser.add_argument("--picture", type=Path, help="where to draw, OUT/demo.png by default")
    parser.add_argument(
        "--fresh", action="store_true", help="ignore the checkpoint of a cut-off run"
    )
    parser.add_argument(
        "--one-run", action="store_true", help="stop after the run in the foreground"
    )
    parser.add_argument("--rounds", type=int, default=PROBLEM.horizon, help="of that run")
    parser.add_argument("--store", help="keep the rows among the results under this name")
    add_seeds(parser, SEEDS)
    return parser


def _shown_run(out: Path, rounds: int, seed: int) -> Record:
    """Train the network in the foreground, with a bar, resuming if an earlier run was cut off."""
    from tqdm import tqdm
    from tqdm.contrib.logging import logging_redirect_tqdm

    checkpoint = out / "checkpoint.pt"
    print(
        "A network learns digits from 200 pictures. Eight augmentations hit each picture with\n"
        "probabilities that are all 0.5 at first, and some of them are harmful. OnlineTuner changes\n"
        f"them in the course of this one run of {PROBLEM.horizon} rounds, and validates now and then."
    )
    if checkpoint.exists():
        print("Resuming an interrupted run (--fresh starts anew).")
    what = f"{SHOWN}, seed {seed}"
    with (
        logging_redirect_tqdm(),  # what the guard has to say goes above the bar
        tqdm(total=rounds, unit="round", desc=what, **_pace()) as bar,
    ):

        def show(record: Record) -> None:
            played = len(record.decisions)
            accuracy = record.test_accuracy[-1][1] if record.test_accuracy else float("nan")
            shown = f"queries {record.queries}/{played}, test accuracy {accuracy:.1%}"
            bar.set_postfix_str(shown, refresh=False)
            bar.update(played - bar.n)

        record = run_online(PROBLEM, METHODS[SHOWN](seed), seed, checkpoint, show, rounds)
        show(record)
    (out / "record.json").write_text(record.to_json(), encoding="utf-8")
    return record


def _pace() -> dict[str, float]:
    """Return how often a bar is redrawn: seldom where each drawing is a new line of a log."""
    return {"mininterval": 0.2 if sys.stderr.isatty() else 15.0}


def _stored_table(options: argparse.Namespace, shown: Record) -> list[Done]:
    """Run every method, and keep the rows among the results."""
    seeds = list(seeds_of(options))
    with recording(options.store, seeds, directory=options.results) as write:
        done = _table(options, shown)
        for run in done:
            write(run.row)
    return done


def _table(options: argparse.Namespace, shown: Record) -> list[Done]:
    """Run every method on every seed but the run that was shown."""
    from tqdm import tqdm

    seeds = seeds_of(options)
    first = (SHOWN, seeds[0])
    jobs = [(method, seed) for seed in seeds for method in METHODS if (method, seed) != first]
    done = [_done(*first, shown)]
    runs = in_processes(_run, jobs, options.processes)
    done += tqdm(runs, total=len(jobs), unit="run", desc="the table", **_pace())
    return sorted(done, key=lambda run: (list(METHODS).index(run.row["method"]), run.row["seed"]))


def _run(job: tuple[str, int]) -> Done:
    method, seed = job
    return _done(method, seed, run_online(PROBLEM, METHODS[method](seed), seed))


def _done(method: str, seed: int, record: Record) -> Done:
    row = {
        "method": method,
        "seed": seed,
        "test_accuracy": record.test_accuracy[-1][1],
        "queries": record.queries,
        "rounds": len(record.decisions),
        "seconds": round(record.seconds, 2),
    }
    return Done(row, record.test_accuracy)
