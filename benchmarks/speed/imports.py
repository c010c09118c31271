"""What an import of the package takes: ``python -m benchmarks imports``.

Each statement runs in an interpreter of its own, by turns. Reported is the time of the processor, which a
busy machine changes less than that of the clock. The times are beside ``import botorch``, on which the
package rests; BoTorch imports most of its modules when they are first used, and so does the package.
"""

import os
import subprocess
import sys
from collections.abc import Sequence
from statistics import median

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.record import Row, rows_of, write_results

NAME = "imports"
BASE = "import botorch"
STATEMENTS = (
    "import torch",
    BASE,
    "import botorch.acquisition.input_constructors, botorch.models, botorch.optim",
    "import botorch, botorch_costly",
    "import botorch; from botorch_costly import Real, SearchSpace",
    "import botorch; from botorch_costly import OnlineTuner",
    "import botorch; from botorch_costly import *",
)
_MOST = 0.3  # seconds beyond BoTorch's that an import of the package may take


def seconds_of(statement: str) -> float:
    """Return the processor's seconds of a new interpreter that runs a statement."""
    before = os.times()
    subprocess.run([sys.executable, "-c", statement], check=True)
    after = os.times()
    return sum(
        getattr(after, name) - getattr(before, name)
        for name in ("children_user", "children_system")
    )


def measure(statements: Sequence[str], repeats: int) -> list[Row]:
    """Return a row for each statement, after one turn that leaves the files in the memory."""
    for statement in statements:
        seconds_of(statement)
    turns = [{each: seconds_of(each) for each in statements} for _ in range(repeats)]
    times = {each: [turn[each] for turn in turns] for each in statements}
    return [
        {"statement": each, "least": min(taken), "median": median(taken), "repeats": repeats}
        for each, taken in times.items()
    ]


def text(rows: Sequence[Row]) -> str:
    """Return one line for each statement, beside BoTorch's."""
    base = next(row for row in rows if row["statement"] == BASE)
    width = max(len(row["statement"]) for row in rows)
    heads = ("least, s", "median, s", "beyond, s")
    lines = [f"{'statement':<{width}}" + "".join(f"{head:>11}" for head in heads)]
    for row in rows:
        numbers = (row["least"], row["median"], row["least"] - base["least"])
        lines.append(f"{row['statement']:<{width}}" + "".join(f"{n:>11.2f}" for n in numbers))
    package = next(row for row in rows if row["statement"] == "import botorch, botorch_costly")
    beyond = package["least"] - base["least"]
    verdict = "holds" if beyond <= _MOST else "MISSED"
    lines.append(
        f"Seconds of the processor of a new interpreter, the least of {base['repeats']} and their "
        f"median; beyond: beside\n`{BASE}`. At most {_MOST} s beyond it for the package alone: {verdict}."
    )
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Measure, store the rows and print them."""
    parser = parser_for(NAME, "seconds of an import of the package, beside BoTorch's")
    parser.add_argument("--repeats", type=int, default=10, help="of each statement, by turns")
    options = parser.parse_args(arguments)
    write_results(NAME, measure(STATEMENTS, options.repeats), [0], directory=options.results)
    print(text(rows_of(NAME, options.results)))
