"""Results as JSON lines: a header ``{"run": {...}}`` for each run, followed by its rows.

A header says once where its rows come from: command, commit, versions, hardware, seeds and the time at
which the run began. A file holds several runs where a run replaced some of the rows and kept others:
kept rows stay under their own header. Older files said all of that on every line; they are read, too.
"""

import json
import os
import tempfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from itertools import groupby
from pathlib import Path
from typing import IO, Any, NamedTuple, TypeVar

from benchmarks.harness.provenance import ROOT, provenance

Row = Mapping[str, Any]
Named = TypeVar("Named", bound=NamedTuple)

RESULTS = ROOT / "benchmarks" / "results"
_HEADER, _ROW = "run", "row"
_TIMES = ("time", "until")  # of the beginning of a run, or of its first row and its last
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


def _none(row: Row) -> bool:
    return False


def replacing(like: Row, **measured: Collection[Any]) -> Callable[[Row], bool]:
    """Return which stored rows stay where a part of a table is measured again.

    Rows stay that are of this size, which is what they have in common with the new ones, unless the
    values of all these columns are measured again.

    Example:
        >>> stays = replacing({"trials": 50}, dim=[4], seed=[0, 1])
        >>> stays({"trials": 50, "dim": 4, "seed": 1}), stays({"trials": 50, "dim": 8, "seed": 1})
        (False, True)
        >>> stays({"trials": 2, "dim": 8, "seed": 1})
        False
    """

    def stays(row: Row) -> bool:
        again = all(row[name] in values for name, values in measured.items())
        return like.items() <= row.items() and not again

    return stays


@contextmanager
def recording(
    name: str,
    seeds: Sequence[int],
    device: str = "cpu",
    directory: Path = RESULTS,
    keep: Callable[[Row], bool] = _none,
) -> Iterator[Callable[[Row], None]]:
    """Replace the results of a benchmark, ``<directory>/<name>.jsonl``, by those of the block.

    Lines go to a temporary file that takes the old one's place at the end, so that a run that fails or is
    interrupted leaves the old results. Stored rows for which ``keep`` is true stay, under the header of
    their own run.

    Yields:
        A function that writes one row of plain values; numbers must be finite.

    Example::

        with recording("table-a2", seeds=[0]) as write:
            write({"policy": "TV-GP-UCB", "regret": 0.39})
    """
    directory.mkdir(parents=True, exist_ok=True)
    header = provenance(name, seeds, device)
    kept = [line for line in read(name, directory) if keep(line[_ROW])]
    handle, temporary = tempfile.mkstemp(prefix=f".{name}.", suffix=".jsonl", dir=directory)
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.writelines(map(_text, _runs(kept)))
            file.write(_text({_HEADER: header}))

            def write(row: Row) -> None:
                file.write(_text(row))
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
    keep: Callable[[Row], bool] = _none,
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


def read(name: str, directory: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the stored rows of a benchmark, none if it never ran.

    Each comes as ``{**header, "row": row}``, under the names of today, whatever the age of the file.
    """
    path = directory / f"{name}.jsonl"
    if not path.exists():
        return []
    with path.open(encoding="utf-8") as file:
        return list(_lines(file))


def rows_of(name: str, directory: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the stored rows of a benchmark without their headers."""
    return [line[_ROW] for line in read(name, directory)]


def part_of(row: Row, kind: type[Named]) -> Named:
    """Return the values of a row that a named tuple has fields for, such as its task."""
    return kind._make(row[name] for name in kind._fields)


def grouped(rows: Iterable[Row], *names: str) -> dict[Any, list[Any]]:
    """Return rows by the value under a name, or by the values under several, in their order."""
    groups: dict[Any, list[Any]] = {}
    for row in rows:
        key = row[names[0]] if len(names) == 1 else tuple(row[name] for name in names)
        groups.setdefault(key, []).append(row)
    return groups


def told(rows: Iterable[Row], describe: Callable[[Row], str]) -> Iterator[Row]:
    """Yield rows as they come, and print each in words."""
    for row in rows:
        print(describe(row), flush=True)
        yield row


def _lines(file: IO[str]) -> Iterator[dict[str, Any]]:
    header: dict[str, Any] = {}
    for line in map(json.loads, file):
        if set(line) == {_HEADER}:
            header = line[_HEADER]
        elif _ROW in line and "commit" in line:  # all of it on one line, as it used to be
            yield {**line, _ROW: renamed(line[_ROW])}
        else:
            yield {**header, _ROW: renamed(line)}


def _runs(lines: Iterable[Row]) -> Iterator[Row]:
    """Yield a header and the rows of each run: lines that follow each other and differ in time alone."""

    def origin(line: Row) -> dict[str, Any]:
        return {key: value for key, value in line.items() if key not in (_ROW, *_TIMES)}

    for header, group in groupby(lines, origin):
        run = list(group)
        began, ended = run[0]["time"], run[-1].get("until", run[-1]["time"])
        until = {"until": ended} if ended != began else {}
        yield {_HEADER: {**header, "time": began, **until}}
        yield from (line[_ROW] for line in run)


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


def _text(line: Row) -> str:
    return json.dumps(line, allow_nan=False) + "\n"
