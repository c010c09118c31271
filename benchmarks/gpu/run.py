"""An hour on a GPU: ``python -m benchmarks gpu --minutes 60``, or ``make gpu MINUTES=60``.

The measurements of ``measurements.py`` run one after the other, each in a process of its own that is
ended at its limit. What has finished is noted in ``gpu.jsonl`` beside the results and not repeated; a
failure or a limit ends one measurement and not the hour. The next call begins with what was never tried,
then repeats what ran out of time, then what failed. Benchmarks store their rows as they come.

``--tiny`` runs all of it in tiny sizes on a device without hardware, which refuses what a GPU refuses.
"""

import argparse
import json
import os
import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.gpu.measurements import MEASUREMENTS, Measurement
from benchmarks.harness.command_line import parser_for
from benchmarks.harness.provenance import ROOT, provenance
from benchmarks.harness.record import RESULTS

NAME = "gpu"
PAGE = ROOT / "benchmarks" / "GPU.md"
_BEGIN, _END = "<!-- the table of benchmarks/gpu/measurements.py -->", "<!-- its end -->"
_TRIED_AGAIN = ("untried", "out of time", "failed")  # in this order
_TINY_MINUTES = 4.0
_WORTH_A_START = 20.0  # seconds
_GRACE = 10.0  # seconds between the request to end and the end
_SIDE_BY_SIDE = ("-n", "8", "--dist", "worksteal")  # tests without file names, which are many


def arguments_of(measurement: Measurement, results: Path, *, tiny: bool) -> list[str]:
    """Return the command line of a measurement."""
    words = shlex.split(measurement.tiny if tiny else measurement.command)
    if words[0] == "pytest":
        whole = not any(word.startswith("tests/") for word in words)
        side_by_side = _SIDE_BY_SIDE if whole and find_spec("xdist") else ()
        return [sys.executable, "-m", *words, *side_by_side]
    far = ("-m", "tests.far") if tiny else ()
    return [sys.executable, *far, "-m", *words, "--results", str(results)]


def run(command: Sequence[str], seconds: float, output: Path) -> tuple[str, int | None]:
    """Run a command for so long at most; return how it ended, and its exit status.

    Its process group is asked to end at the limit, and ended some seconds later.
    """
    with output.open("w", encoding="utf-8") as file:
        process = subprocess.Popen(
            command, stdout=file, stderr=subprocess.STDOUT, cwd=ROOT, start_new_session=True
        )
        try:
            status = process.wait(seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            return "out of time", None
        except BaseException:
            _end(process)
            raise
    return ("done" if status == 0 else "failed"), status


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(_GRACE)
        except ProcessLookupError:
            return
        except subprocess.TimeoutExpired:
            continue


def states_of(log: Path) -> dict[str, str]:
    """Return how each command ended when it ran last."""
    if not log.exists():
        return {}
    lines = map(json.loads, log.read_text(encoding="utf-8").splitlines())
    return {line["command"]: line["state"] for line in lines}


def left_of(
    measurements: Sequence[Measurement], states: dict[str, str], *, tiny: bool
) -> list[tuple[Measurement, str]]:
    """Return the measurements that have not finished with their last states, in the order of a call."""
    left = []
    for measurement in measurements:
        command = measurement.tiny if tiny else measurement.command
        state = states.get(command, "untried")
        if command and state != "done":
            left.append((measurement, state))
    return sorted(left, key=lambda pair: _TRIED_AGAIN.index(pair[1]))


def hour(measurements: Sequence[Measurement], options: argparse.Namespace) -> list[dict[str, Any]]:
    """Run what has not finished until the time is over; return what was noted."""
    results, deadline = options.results, time.monotonic() + 60 * options.minutes
    (results / "output").mkdir(parents=True, exist_ok=True)
    log, noted = results / f"{NAME}.jsonl", []
    for measurement, _ in left_of(measurements, states_of(log), tiny=options.tiny):
        left = deadline - time.monotonic()
        if left < _WORTH_A_START:
            print("The time is over; the next call goes on.", flush=True)
            break
        minutes = _TINY_MINUTES if options.tiny else measurement.minutes
        command = arguments_of(measurement, results, tiny=options.tiny)
        began = time.monotonic()
        output = results / "output" / f"{measurement.name}.txt"
        state, status = run(command, min(left, 60 * minutes), output)
        origin = provenance(NAME, [])
        row = {
            "name": measurement.name,
            "command": measurement.tiny if options.tiny else measurement.command,
            "state": state,
            "status": status,
            "seconds": round(time.monotonic() - began, 1),
            **{key: origin[key] for key in ("commit", "versions", "hardware", "time")},
        }
        with log.open("a", encoding="utf-8") as file:
            file.write(json.dumps(row) + "\n")
        noted.append(row)
        print(f"{measurement.name:<22}{state:<13}{row['seconds']:>8.1f} s", flush=True)
        if state == "failed":
            print(_last_lines(output), flush=True)
    return noted


def _last_lines(output: Path, count: int = 5) -> str:
    lines = output.read_text(encoding="utf-8", errors="replace").splitlines()
    return "\n".join(f"    {line}" for line in lines[-count:])


def table() -> str:
    """Return the measurements as a table of Markdown."""
    lines = ["| what | command | minutes | what is expected |", "|---|---|---|---|"]
    lines += [
        f"| {m.what} | `python -m {m.command}` | {m.minutes:g} | {m.expected} |"
        for m in MEASUREMENTS
    ]
    return "\n".join(lines)


def with_table(page: str) -> str:
    """Return a page with the table between its marks."""
    before, _, rest = page.partition(_BEGIN)
    return f"{before}{_BEGIN}\n{table()}\n{_END}{rest.partition(_END)[2]}"


def main(arguments: list[str]) -> None:
    """Measure for some minutes, or write the table of the page."""
    parser = parser_for(NAME, "all measurements that need a GPU, in the order of their worth")
    parser.set_defaults(results=RESULTS / NAME)
    parser.add_argument("--minutes", type=float, default=60.0, help="of all together")
    parser.add_argument("--only", nargs="+", choices=[m.name for m in MEASUREMENTS])
    parser.add_argument("--tiny", action="store_true", help="on a device without hardware")
    parser.add_argument("--markdown", action="store_true", help="write the table of GPU.md")
    options = parser.parse_args(arguments)
    if options.markdown:
        PAGE.write_text(with_table(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
        return
    wanted = [m for m in MEASUREMENTS if options.only is None or m.name in options.only]
    options.results = options.results.resolve()
    noted = hour(wanted, options)
    states = [row["state"] for row in noted]
    print(", ".join(f"{states.count(state)} {state}" for state in ("done", *_TRIED_AGAIN[1:])))
