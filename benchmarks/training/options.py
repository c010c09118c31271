"""Options of the command line that all trainings on pictures have."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeVar

from benchmarks.training.picture_run import PRECISIONS

R = TypeVar("R")  # a recipe, which is a dataclass


def add_training(parser: argparse.ArgumentParser, methods: Sequence[str], published: str) -> None:
    """Let the command line say which methods are trained, and in which setting.

    Args:
        parser: Of the benchmark.
        methods: All there are.
        published: What the large setting is, for the help.
    """
    parser.add_argument("--methods", nargs="+", choices=methods, default=list(methods))
    parser.add_argument("--published", action="store_true", help=published)
    parser.add_argument(
        "--smoke", action="store_true", help="the same code on tiny sizes, on the CPU"
    )
    parser.add_argument("--device", help="where to train; that of the setting if omitted")
    parser.add_argument("--precision", choices=PRECISIONS, help="that of the setting if omitted")
    parser.add_argument("--again", action="store_true", help="train what is stored, too")


def changed(recipe: R, **changes: Any) -> R:
    """Return a recipe with what was asked for in place of its own; ``None`` was not."""
    asked: dict[str, Any] = {name: value for name, value in changes.items() if value is not None}
    made: Any = recipe
    return replace(made, **asked)
