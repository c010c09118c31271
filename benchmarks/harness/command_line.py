"""Options of the command line that several benchmarks have."""

import argparse
from pathlib import Path

from benchmarks.harness.record import RESULTS


def parser_for(name: str, description: str) -> argparse.ArgumentParser:
    """Return the parser of ``python -m benchmarks <name>``, which says where results are kept."""
    parser = argparse.ArgumentParser(
        prog=f"python -m benchmarks {name}",
        description=description,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")
    return parser


def size_parser(name: str, description: str) -> argparse.ArgumentParser:
    """Return a parser with the options of the benchmarks on drifting functions."""
    parser = parser_for(name, description)
    parser.add_argument("--trials", type=int, default=50, help="independent runs")
    parser.add_argument("--horizon", type=int, default=500, help="rounds of a run")
    parser.add_argument("--points", type=int, default=1000, help="size of the domain")
    parser.add_argument("--seed", type=int, default=0, help="of functions, noise and coins")
    parser.add_argument("--device", default="cpu", help="where to compute")
    parser.add_argument("--threads", type=int, default=1, help="of torch")
    return parser


def add_seeds(parser: argparse.ArgumentParser, seeds: int) -> None:
    """Let the command line say how many seeds there are, from which on, and how many run at once."""
    parser.add_argument("--seeds", type=int, default=seeds, help="how many")
    parser.add_argument(
        "--first-seed", type=int, default=0, help="the seeds are this one and the next"
    )
    parser.add_argument("--processes", type=int, default=2, help="runs side by side")


def seeds_of(options: argparse.Namespace) -> range:
    """Return the seeds that were asked for."""
    return range(options.first_seed, options.first_seed + options.seeds)
