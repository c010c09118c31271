"""Where a run comes from: command, commit, versions, hardware, seeds."""

import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import torch

ROOT = Path(__file__).resolve().parent.parent.parent
_PACKAGES = ("torch", "botorch", "gpytorch", "botorch_costly")
# What benchmarks write does not change what they measure.
_SOURCES = (".", ":(exclude)benchmarks/results", ":(exclude)benchmarks/README.md")


def provenance(name: str, seeds: Sequence[int], device: str = "cpu") -> dict[str, Any]:
    """Return what is said once of all rows of a run, the time of its beginning included."""
    return {
        "benchmark": name,
        "command": shlex.join(["python", "-m", "benchmarks", *_elsewhere_alike(sys.argv[1:])]),
        "commit": commit(),
        "seeds": list(seeds),
        "versions": {"python": platform.python_version(), **_versions()},
        "hardware": hardware(device),
        "time": datetime.now(UTC).isoformat(timespec="seconds"),
    }


def _elsewhere_alike(arguments: Sequence[str]) -> list[str]:
    """Return the arguments without the place of the results, which is of one machine."""
    kept, rest = [], iter(arguments)
    for argument in rest:
        if argument == "--results":
            next(rest, None)
        elif not argument.startswith("--results="):
            kept.append(argument)
    return kept


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
