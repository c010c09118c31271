"""Results as JSON lines, each of which says where it came from."""

import argparse
import json
import os
import platform
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

Row = Mapping[str, Any]

ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "benchmarks" / "results"
# Retired names of keys, and of what stands under them, with those of today.
_RENAMED = {
    "looks": "queries",
    "max_looks": "max_queries",
    "reach": "effective_horizon",
    "same_looks": "same_queries",
    "blind_play": "unqueried_play",
    "look_cpu_ms": "query_cpu_ms",
    "derived, foresight": "derived, lookahead_weight",
    "confidence, blind rounds play the mean": "confidence, unqueried rounds play the mean",
    "contest and rule": "comparison and rule",
    "round with a look": "round with a query",
    "round without a look": "round without a query",
}
_PACKAGES = ("torch", "botorch", "gpytorch", "botorch_costly")
# What benchmarks write does not change what they measure.
_SOURCES = (".", ":(exclude)benchmarks/results", ":(exclude)benchmarks/README.md")


@contextmanager
def recording(
    name: str,
    seeds: Sequence[int],
    device: str = "cpu",
    directory: Path = RESULTS,
    keep: Callable[[Row], bool] = lambda row: False,
) -> Iterator[Callable[[Row], None]]:
    """Replace the results of a benchmark by those written inside the block.

    Lines go to a temporary file that takes the old one's place at the end, so that a run that fails
    or is interrupted leaves the old results.

    Args:
        name: Of the benchmark: its file is ``<directory>/<name>.jsonl``.
        seeds: What the benchmark was seeded with.
        device: Where the work was done.
        directory: Made if it is not there.
        keep: Which of the rows stored before stay, with all they say of where they came from.

    Yields:
        A function that writes one row of plain values; numbers must be finite.

    Example::

        with recording("table-a2", seeds=[0]) as write:
            write({"policy": "TV-GP-UCB", "regret": 0.39})
    """
    directory.mkdir(parents=True, exist_ok=True)
    origin = provenance(name, seeds, device)
    kept = [line for line in read(name, directory) if keep(line["row"])]
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".jsonl", dir=directory)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(json.dumps(line, allow_nan=False) + "\n" for line in kept)

            def write(row: Row) -> None:
                line = {**origin, "time": _now(), "row": dict(row)}
                file.write(json.dumps(line, allow_nan=False) + "\n")
                file.flush()

            yield write
        os.chmod(temporary, 0o644)  # temporary files are private
        os.replace(temporary, directory / f"{name}.jsonl")
    except BaseException:
        os.unlink(temporary)
        raise


def write_results(
    name: str,
    rows: Iterable[Row],
    seeds: Sequence[int],
    device: str = "cpu",
    directory: Path = RESULTS,
    keep: Callable[[Row], bool] = lambda row: False,
) -> list[Row]:
    """Replace the results of a benchmark by these rows, each stored as it comes; return them.

    See :func:`recording`.
    """
    done = []
    with recording(name, seeds, device, directory, keep) as write:
        for row in rows:
            write(row)
            done.append(row)
    return done


def add_results_argument(parser: argparse.ArgumentParser) -> None:
    """Let the command line say where results are kept."""
    parser.add_argument("--results", type=Path, default=RESULTS, help="where results are kept")


def read(name: str, directory: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the stored lines of a benchmark, none if it never ran."""
    path = directory / f"{name}.jsonl"
    if not path.exists():
        return []
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return [{**line, "row": renamed(line["row"])} for line in lines]


def renamed(row: Row) -> dict[str, Any]:
    """Return a row under the names of today, which old rows have not."""
    named = {}
    for key, value in row.items():
        if isinstance(value, dict):
            value = renamed(value)
        named[_RENAMED.get(key, key)] = (
            _RENAMED.get(value, value) if isinstance(value, str) else value
        )
    return named


def provenance(name: str, seeds: Sequence[int], device: str = "cpu") -> dict[str, Any]:
    """Return everything a line says besides its row and its time."""
    return {
        "benchmark": name,
        "commit": commit(),
        "command": shlex.join(["python", "-m", "benchmarks", *sys.argv[1:]]),
        "seeds": list(seeds),
        "versions": {"python": platform.python_version(), **_versions()},
        "hardware": hardware(device),
    }


def commit() -> str:
    """Return the commit checked out, with ``+dirty`` if sources differ from it."""
    head = _git("rev-parse", "HEAD")
    if head is None:
        return "unknown"
    return head + ("+dirty" if _git("status", "--porcelain", "--", *_SOURCES) else "")


def hardware(device: str = "cpu") -> dict[str, Any]:
    """Return what the numbers were measured on: processor, cores, torch's threads, GPU if used."""
    on_gpu = torch.device(device).type == "cuda"
    return {
        "cpu": _processor(),
        "cores": os.cpu_count(),
        "threads": torch.get_num_threads(),
        "gpu": torch.cuda.get_device_name(device) if on_gpu else None,
    }


def _processor(cpuinfo: Path = Path("/proc/cpuinfo")) -> str:
    if cpuinfo.exists():
        for line in cpuinfo.read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


def _versions() -> dict[str, str]:
    found = {}
    for package in _PACKAGES:
        try:
            found[package] = version(package)
        except PackageNotFoundError:
            found[package] = "not installed"
    return found


def _git(*arguments: str) -> str | None:
    """Return what git prints, or None without git or a repository."""
    try:
        done = subprocess.run(
            ["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return None
    return done.stdout.strip()


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
