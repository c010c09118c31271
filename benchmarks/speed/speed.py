"""How long a decision takes: after a query, while waiting, for many beliefs at once, and part by part.

Parts of a run replace their own rows on their own device and leave all others.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import torch

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.figures import new_figure, save
from benchmarks.harness.record import Row, recording, rows_of
from benchmarks.speed import batch, decision, profile_decision, threads, waiting, waits

COLOURS = ("#1b6ca8", "#c8553d", "#4f772d", "#7b2d8b")
WAYS = {"ours_ms": ("this package", "-", "o"), "botorch_ms": ("BoTorch's pieces", "--", "s")}


def curve(rows: Sequence[Row], dim: int, way: str) -> tuple[list[int], list[float]]:
    """Return observations and milliseconds of one way in one dimension, where it was timed."""
    timed = [row for row in rows if row["dim"] == dim and row[way] is not None]
    timed.sort(key=lambda row: row["observations"])
    return [row["observations"] for row in timed], [row[way] for row in timed]


def draw_grid(rows: Sequence[Row], path: Path) -> None:
    """Draw the rows of the grid, both axes logarithmic."""
    from matplotlib.ticker import LogLocator, NullFormatter, NullLocator, ScalarFormatter

    figure = new_figure(6.6, 4.8)
    ax = figure.subplots()
    ax.set_xscale("log")
    ax.set_yscale("log")
    for colour, dim in zip(COLOURS, sorted({row["dim"] for row in rows}), strict=False):
        for way, (name, line, marker) in WAYS.items():
            sizes, spent = curve(rows, dim, way)
            label = f"d = {dim}, {name}"
            ax.plot(sizes, spent, line, color=colour, marker=marker, markersize=4, label=label)
    ax.set_xticks(sorted({row["observations"] for row in rows}))
    ax.xaxis.set_minor_locator(NullLocator())
    ax.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    ax.yaxis.set_minor_formatter(NullFormatter())
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_major_formatter(ScalarFormatter())
    ax.set_xlabel("observations learnt before")
    ax.set_ylabel("milliseconds of one decision after a query")
    ax.grid(True, which="major", color="#dddddd", linewidth=0.6)
    dims = len({row["dim"] for row in rows})
    figure.legend(loc="outside lower center", ncols=dims, fontsize=8, frameon=False)
    save(figure, path)


OBSERVATIONS, DIM = 200, 8  # of all parts but the grid
REFIT = "benchmarks.speed.refit"
ON_CPU = {"refit", "threads"}  # parts that have no rows of another device
Options = argparse.Namespace


def decision_rows(options: Options) -> Iterator[Row]:
    """Compare one decision after a query on many problems."""
    size = options.observations, options.dim
    yield decision.quality(*size, options.problems, options.seed, options.device)


def grid_rows(options: Options) -> Iterator[Row]:
    """Time one decision after a query by size."""
    size = options.grid_observations, options.grid_dims
    yield from decision.grid(
        *size, options.repeats, options.seed, options.device, options.largest_for_botorch
    )


def waiting_rows(options: Options) -> Iterator[Row]:
    """Time decisions without a query since the last one."""
    size = options.observations, options.dim
    yield waiting.waiting(*size, options.rounds, options.seed, options.device)


def batch_rows(options: Options) -> Iterator[Row]:
    """Time batches of beliefs."""
    sizes = options.batches or batch.sizes_for(options.device)
    size = options.observations, options.dim
    yield from batch.throughput(sizes, *size, options.repeats, options.seed, options.device)


def profile_rows(options: Options) -> Iterator[Row]:
    """Say where the time of a decision goes."""
    size = options.observations, options.dim
    yield from profile_decision.profile(*size, options.repeats, options.seed, options.device)


def refit_rows(options: Options) -> Iterator[Row]:
    """Time a refit, where this is known how to."""
    for row in import_module(REFIT).measure(seed=options.seed):
        yield {**row, "part": "refit", "device": "cpu"}


def describe_refit(row: Row) -> str:
    """Return a row of a refit in words."""
    return import_module(REFIT).describe(row)


def waits_rows(options: Options) -> Iterator[Row]:
    """Count how often a device is waited for, where it is no CPU."""
    yield from waits.waits(options.seed, options.device)


def threads_rows(options: Options) -> Iterator[Row]:
    """Time asks with one thread and with two."""
    size = options.asked_observations, options.asked
    yield from threads.threads(*size, options.repeats, options.seed)


Part = tuple[Callable[[Options], Iterator[Row]], Callable[[Row], str]]
PARTS: dict[str, Part] = {
    "decision": (decision_rows, decision.describe),
    "grid": (grid_rows, decision.describe),
    "waiting": (waiting_rows, waiting.describe),
    "batch": (batch_rows, batch.describe),
    "profile": (profile_rows, profile_decision.describe),
    "refit": (refit_rows, describe_refit),
    "waits": (waits_rows, waits.describe),
    "threads": (threads_rows, threads.describe),
}


def text(rows: Sequence[Row]) -> str:
    """Return all rows in words, the parts in their order."""
    ordered = sorted(rows, key=lambda row: (row["device"], list(PARTS).index(row["part"])))
    return "\n".join(PARTS[row["part"]][1](row) for row in ordered)


def possible(parts: list[str], device: str = "cpu") -> list[str]:
    """Return the parts that can be run: a CPU is not waited for, and a refit has a module of its own."""
    missing = {"refit"} if find_spec(REFIT) is None else set()
    missing |= {"waits"} if torch.device(device).type == "cpu" else set()
    return [part for part in parts if part not in missing]


def options_of(arguments: list[str]) -> Options:
    """Read the command line."""
    parser = parser_for("speed", "milliseconds of decisions, beside BoTorch's pieces")
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--problems", type=int, default=200, help="of the decision part")
    parser.add_argument("--repeats", type=int, default=5, help="of everything but it")
    parser.add_argument("--rounds", type=int, default=100, help="of the waiting part")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--observations", type=int, default=OBSERVATIONS)
    parser.add_argument("--dim", type=int, default=DIM)
    parser.add_argument("--grid-observations", type=int, nargs="+", default=decision.SIZES)
    parser.add_argument("--grid-dims", type=int, nargs="+", default=decision.DIMS)
    parser.add_argument("--largest-for-botorch", type=int, default=decision.LARGEST_FOR_BOTORCH)
    parser.add_argument(
        "--asked", nargs="+", choices=threads.OPTIMIZERS, default=list(threads.OPTIMIZERS)
    )
    parser.add_argument("--asked-observations", type=int, nargs="+", default=threads.SIZES)
    parser.add_argument("--batches", type=int, nargs="+", help="sizes; by default by the device")
    return parser.parse_args(arguments)


def main(arguments: list[str]) -> None:
    """Time what is asked for, store the rows and draw the grid."""
    options = options_of(arguments)
    torch.set_num_threads(options.threads)
    parts = possible(options.parts, options.device)
    replaced = {(part, "cpu" if part in ON_CPU else options.device) for part in parts}

    def keep(row: Row) -> bool:
        return (row["part"], row["device"]) not in replaced

    stored = "speed", [options.seed], options.device, options.results
    with recording(*stored, keep) as write:
        for part in parts:
            rows, describe = PARTS[part]
            for row in rows(options):
                write(row)
                print(describe(row), flush=True)
    if "grid" in parts:
        rows_stored = rows_of("speed", options.results)
        grid = [row for row in rows_stored if row["part"] == "grid" and row["device"] == "cpu"]
        if grid:
            draw_grid(grid, options.results / "speed.png")
