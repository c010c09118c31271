"""The command ``botorch-costly``: reports of saved runs and schedules, and a demo."""

import argparse
import os
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TextIO

from botorch_costly.ask_tell.earlier_files import own
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
_FAILED = 2  # exit code of argparse


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command, and return its exit code.

    Args:
        arguments: Arguments after the name of the command; those of the process if omitted.

    Returns:
        0, or 2 after an error, which is written to the standard error.

    Raises:
        SystemExit: If the arguments are invalid, with code 2.
    """
    options = _parser().parse_args(arguments)
    try:
        options.action(options)
        sys.stdout.flush()
    except BrokenPipeError:  # the reader, such as head, has closed the pipe
        # Without it the interpreter would report the pipe again when it flushes at exit.
        devnull = os.open(os.devnull, os.O_WRONLY)
        os.dup2(devnull, sys.stdout.fileno())
        os.close(devnull)
    except (CostlyError, OSError, ImportError) as error:
        _print(f"{PROGRAM}: error: {error}", sys.stderr)
        return _FAILED
    return 0


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
        action.add_argument("--run", help="name of the run, if the file has several")
    report.add_argument("--html", dest="output", metavar="OUT.html", help="write a page instead")
    for action, output in ((plot, "OUT.png|OUT.html"), (export, "OUT.json|OUT.csv")):
        action.add_argument("-o", "--output", required=True, metavar=output)
    example = actions.add_parser("demo", help="tune a small network while it trains, in seconds")
    example.set_defaults(action=_demo)
    example.add_argument("--rounds", type=int, default=ROUNDS, help="of training, 240 if omitted")
    example.add_argument("--seed", type=int, default=0)
    example.add_argument(
        "--save", dest="output", metavar="RUN.pt", help="save the run for a report"
    )
    for action in (report, plot, export, example):
        action.add_argument("--force", action="store_true", help="replace an existing file")
    return parser


def _report(options: argparse.Namespace) -> None:
    if options.output is not None:
        _suffix(options.output, ("html", "htm"))
        _check_output(options)
    runs = _read(options.file)
    if options.run is not None:
        runs = [_select(runs, options.run)]
    if options.output is not None:
        _write(options.output, html_of(runs).encode())
    elif not print_tables(runs, sys.stdout):
        texts = [text_of(r) if isinstance(r, SavedRun) else text_of_schedule(r) for r in runs]
        _print("\n\n".join(texts), sys.stdout)


def _plot(options: argparse.Namespace) -> None:
    suffix = _suffix(options.output, (*FORMATS, "html"))
    _check_output(options)
    runs = _read(options.file)
    saved = [run for run in runs if isinstance(run, SavedRun)]
    if suffix == "html":
        _write(options.output, interactive_of(_select(runs, options.run)).encode())
    elif len(saved) > 1 and options.run is None:
        _write(options.output, raster_of(saved, suffix))
    else:
        _write(options.output, picture_of(_select(runs, options.run), suffix))


def _export(options: argparse.Namespace) -> None:
    suffix = _suffix(options.output, ("json", "csv"))
    _check_output(options)
    run = _select(_read(options.file), options.run)
    if suffix == "csv":
        text = csv_of(run)
    else:
        text = (run if isinstance(run, Schedule) else run.schedule()).to_json() + "\n"
    _write(options.output, text.encode())


def _demo(options: argparse.Namespace) -> None:
    if options.output is not None:
        _check_output(options)
        own(options.output)  # a file that is there was given up by --force

    def say(line: str) -> None:
        _print(line, sys.stdout)
        sys.stdout.flush()  # so that each line is visible at once, also through a pipe

    demo(say, rounds=options.rounds, seed=options.seed, path=options.output)
    if options.output is not None:
        say(f"\nTry: {PROGRAM} report {shlex.quote(options.output)}")


def _read(path: str) -> Sequence[SavedRun | Schedule]:
    """Return the runs in a file, or its schedule if it is JSON."""
    with open(path, "rb") as file:
        start = file.read(64).lstrip()
    return [Schedule.from_json(Path(path))] if start.startswith(b"{") else saved_runs(path)


def _select(runs: Sequence[SavedRun | Schedule], name: str | None) -> SavedRun | Schedule:
    """Return the run of that name, or the only run if there is no name."""
    if isinstance(runs[0], Schedule):
        check(name is None, "--run", "no name, for a schedule holds one run", name)
        return runs[0]
    names = [run.name for run in runs if isinstance(run, SavedRun)]
    is_valid = len(runs) == 1 if name is None else name in names
    check(is_valid, "--run", f"a name among {names}", name)
    return runs[0] if name is None else runs[names.index(name)]


def _suffix(path: str, suffixes: tuple[str, ...]) -> str:
    suffix = Path(path).suffix.lower().removeprefix(".")
    expected = "a file that ends in " + " or ".join(f".{suffix}" for suffix in suffixes)
    check(suffix in suffixes, "output", expected, path)
    return suffix


def _check_output(options: argparse.Namespace) -> None:
    """Raise before any work if the output cannot be written, or would replace a file."""
    target, source = Path(options.output), getattr(options, "file", None)
    check(target.parent.is_dir(), "output", "a file in a folder that exists", options.output)
    if target.exists():
        other = source is None or not (os.path.exists(source) and os.path.samefile(source, target))
        check(other, "output", "another file than the one that is read", options.output)
        check(options.force, "output", "a file that does not exist yet, or --force", options.output)


def _write(path: str, content: bytes) -> None:
    with replacing(path) as file:
        file.write(content)


def _print(text: str, stream: TextIO) -> None:
    """Print text with control characters, and characters that the stream lacks, escaped."""
    print(printable(text, stream.encoding or "utf-8"), file=stream)
