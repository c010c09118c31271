"""``make demo``: eight augmentation probabilities, tuned while a small network learns digits.

First one run of ``OnlineTuner`` as it comes in the foreground, saved after every round: interrupt it at
any moment, even with SIGKILL, start it again, and the same decisions follow. Then the table: other seeds
and all other methods, on two processes. Last a picture of the first run.
"""

import argparse
import sys
import time
from pathlib import Path
from typing import Any, NamedTuple

import torch

from benchmarks.demo.methods import METHODS, PROBLEM, SAID, SHOWN
from benchmarks.demo.table import Curve, draw, format_table
from benchmarks.harness.command_line import add_seeds, parser_for, seeds_of
from benchmarks.harness.record import recording
from benchmarks.harness.sweep import in_processes
from benchmarks.suite.runner import Record, run_online

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
    print("\n".join(["", format_table(rows), "", *said, ""]))
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
