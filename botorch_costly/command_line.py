"""The command ``botorch-costly``: what a saved run did, without the code that ran it; and a demo."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from botorch_costly.demo import ROUNDS, demo
from botorch_costly.errors import CostlyError, check
from botorch_costly.files import replacing
from botorch_costly.reports import (
    SavedRun,
    csv_of,
    html_of,
    interactive_of,
    picture_of,
    raster_of,
    saved_runs,
    text_of,
    text_of_schedule,
)
from botorch_costly.reports.picture import FORMATS
from botorch_costly.reports.terminal import print_tables
from botorch_costly.reports.text import printable
from botorch_costly.schedule import Schedule

PROGRAM = "botorch-costly"
_FAILED = 2  # as argparse exits


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code.

    Args:
        arguments: Those after the name of the command; of the process if omitted.

    Returns:
        0, or 2 after an error, which is written to the standard error.

    Raises:
        SystemExit: If the arguments are not those of the command, with code 2.
    """
    given = _parser().parse_args(arguments)
    try:
        given.action(given)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has what it wanted
        _drop_output()
    except (CostlyError, OSError, ImportError) as error:
        _say(f"{PROGRAM}: error: {error}", sys.stderr)
        return _FAILED
    return 0


def _drop_output() -> None:
    """Send what is still to be printed nowhere, or the interpreter would report it at its end."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, sys.stdout.fileno())
    os.close(nowhere)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(PROGRAM, description="Reports of saved runs and schedules.")
    actions = parser.add_subparsers(required=True, metavar="ACTION")
    report = actions.add_parser("report", help="describe runs in plain text")
    plot = actions.add_parser(
        "plot",
        help="draw the schedule, the rewards and the queries of a run, or the queries of several",
    )
    export = actions.add_parser(
        "export", help="write a schedule (.json) or a table of rounds (.csv)"
    )
    for action, run in ((report, _report), (plot, _plot), (export, _export)):
        action.set_defaults(action=run)
        action.add_argument("file", metavar="FILE", help="a saved state, or an exported schedule")
        action.add_argument("--run", help="the name of the run, if the file holds several")
    report.add_argument("--html", dest="output", metavar="OUT.html", help="write a page instead")
    report.add_argument("--force", action="store_true", help="replace a file that is there")
    for action, output in ((plot, "OUT.png|OUT.html"), (export, "OUT.json|OUT.csv")):
        action.add_argument("-o", "--output", required=True, metavar=output)
        action.add_argument("--force", action="store_true", help="replace a file that is there")
    _add_demo(actions)
    return parser


def _add_demo(actions: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    action = actions.add_parser("demo", help="tune a small network while it trains, in seconds")
    action.set_defaults(action=_demo)
    action.add_argument("--rounds", type=int, default=ROUNDS, help="of training, 240 if omitted")
    action.add_argument("--seed", type=int, default=0)
    action.add_argument(
        "--save", dest="output", metavar="RUN.pt", help="keep the run, for a report"
    )
    action.add_argument("--force", action="store_true", help="replace a file that is there")


def _report(given: argparse.Namespace) -> None:
    if given.output is not None:
        _suffix(given.output, ("html", "htm"))
        _check_target(given)
    found = _read(given.file)
    runs = _all(found) if given.run is None else [_one(found, given.run)]
    if given.output is not None:
        _write(given.output, html_of(runs).encode())
    elif not print_tables(runs, sys.stdout):
        _say("\n\n".join(map(_described, runs)), sys.stdout)


def _plot(given: argparse.Namespace) -> None:
    suffix = _suffix(given.output, (*FORMATS, "html"))
    _check_target(given)
    found = _read(given.file)
    if suffix == "html":
        _write(given.output, interactive_of(_one(found, given.run)).encode())
    elif isinstance(found, list) and len(found) > 1 and given.run is None:
        _write(given.output, raster_of(found, suffix))
    else:
        _write(given.output, picture_of(_one(found, given.run), suffix))


def _export(given: argparse.Namespace) -> None:
    suffix = _suffix(given.output, ("json", "csv"))
    _check_target(given)
    run = _one(_read(given.file), given.run)
    if suffix == "csv":
        text = csv_of(run)
    else:
        text = (run if isinstance(run, Schedule) else run.schedule()).to_json() + "\n"
    _write(given.output, text.encode())


def _demo(given: argparse.Namespace) -> None:
    if given.output is not None:
        _check_target(given)

    def say(line: str) -> None:
        _say(line, sys.stdout)
        sys.stdout.flush()  # a line is seen when it is said, also through a pipe

    demo(say, rounds=given.rounds, seed=given.seed, path=given.output)
    if given.output is not None:
        say(f"\nTry: {PROGRAM} report {shlex.quote(given.output)}")


def _read(path: str) -> list[SavedRun] | Schedule:
    """Return the runs in a file, or the schedule if it holds JSON."""
    with open(path, "rb") as file:
        start = file.read(64).lstrip()
    return Schedule.from_json(Path(path)) if start.startswith(b"{") else saved_runs(path)


def _all(found: list[SavedRun] | Schedule) -> Sequence[SavedRun | Schedule]:
    return [found] if isinstance(found, Schedule) else found


def _one(found: list[SavedRun] | Schedule, name: str | None) -> SavedRun | Schedule:
    if isinstance(found, Schedule):
        check(name is None, "--run", "no name, for a schedule holds one run", name)
        return found
    names = [run.name for run in found]
    if name is None:
        check(len(found) == 1, "--run", f"a name among {names}", name)
        return found[0]
    check(name in names, "--run", f"a name among {names}", name)
    return found[names.index(name)]


def _described(run: SavedRun | Schedule) -> str:
    return text_of(run) if isinstance(run, SavedRun) else text_of_schedule(run)


def _suffix(path: str, known: tuple[str, ...]) -> str:
    suffix = Path(path).suffix.lower().removeprefix(".")
    expected = "a file that ends in " + " or ".join(f".{one}" for one in known)
    check(suffix in known, "output", expected, path)
    return suffix


def _check_target(given: argparse.Namespace) -> None:
    """Raise before any work if the output cannot be written, or would replace what is there."""
    target, read = Path(given.output), getattr(given, "file", None)
    check(target.parent.is_dir(), "output", "a file in a folder that exists", given.output)
    if target.exists():
        other = read is None or not (os.path.exists(read) and os.path.samefile(read, target))
        check(other, "output", "another file than the one that is read", given.output)
        check(given.force, "output", "a file that is not there yet, or --force", given.output)


def _write(path: str, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def _say(text: str, stream: TextIO) -> None:
    """Print text; what the terminal cannot show, or would obey, is escaped."""
    print(printable(text, stream.encoding or "utf-8"), file=stream)
