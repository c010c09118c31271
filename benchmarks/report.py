"""Stored results beside the printed ones, and whether the claims hold."""

import argparse
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any

from benchmarks import single_precision, table_a2_loop
from benchmarks.demo_table import format_table
from benchmarks.online_suite import benchmark as online_suite
from benchmarks.online_suite import verdicts as suite_verdicts
from benchmarks.paper import FORGETTING_RATES, PAPER_SIZE, TABLE_A2, Cell
from benchmarks.priced import (
    arms,
    budget,
    continuous,
    effective_horizon,
    frontier,
    misspecified,
    timing,
)
from benchmarks.record import RESULTS, ROOT, add_results_argument, read
from benchmarks.streaming import describe
from benchmarks.timing import horizon, speed
from benchmarks.verdicts import Table, Verdict, judge, table_of

TABLES: dict[str, Callable[[Sequence[Mapping[str, Any]]], str]] = {
    "table-a2-loop": table_a2_loop.report,
    "single-precision": single_precision.report,
    "priced": frontier.report,
    "priced-budget": budget.report,
    "priced-arms": arms.report,
    "priced-continuous": continuous.text,
    "priced-misspecified": misspecified.text,
    "priced-effective-horizon": effective_horizon.report,
    "priced-time": timing.report,
    "online-suite": online_suite.table,
    "online-suite-hundred": online_suite.table,
    "online-suite-fresh": online_suite.table,
    "online-suite-verdicts": suite_verdicts.table,
    "speed": speed.report,
    "horizon": horizon.report,
    "demo": format_table,
    "demo-heldout": format_table,
}
"""Benchmarks whose rows make one table of plain text, and what makes it."""

README = ROOT / "benchmarks" / "README.md"
BEGIN, END = "<!-- {}:begin -->", "<!-- {}:end -->"


def text_table(ours: Table) -> str:
    """Return an aligned table for each forgetting rate, ours beside the paper's."""
    width = max(map(len, ours))
    blocks = []
    for forgetting in FORGETTING_RATES:
        head = f"{f'forgetting {forgetting:g}':<{width}}  {'ours: regret':<13}  {'queries':<9}"
        lines = [f"{head}  {'paper: regret':<13}  {'queries':<9}  difference"]
        for name, cells in ours.items():
            if forgetting in cells:
                lines.append(_text_row(name, cells[forgetting], _printed(name, forgetting), width))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def markdown_table(ours: Table) -> str:
    """Return one Markdown table: policies down, forgetting rates across, ours over the paper's."""
    head = " | ".join(f"ε = {forgetting:g}" for forgetting in FORGETTING_RATES)
    lines = [f"| policy | | {head} |", "|---|---|" + "---|" * len(FORGETTING_RATES)]
    for name, cells in ours.items():
        row = [_brief(cells.get(forgetting)) for forgetting in FORGETTING_RATES]
        lines.append(f"| {name} | ours | {' | '.join(row)} |")
        printed = [_brief(_printed(name, forgetting)) for forgetting in FORGETTING_RATES]
        if any(printed):
            lines.append(f"| | paper | {' | '.join(printed)} |")
    return "\n".join(lines)


def text_verdicts(verdicts: Sequence[Verdict]) -> str:
    """Return each claim with its count, and every miss by name."""
    lines = []
    for claim, group in groupby(verdicts, lambda verdict: verdict.claim):
        cases = list(group)
        misses = [verdict for verdict in cases if not verdict.holds]
        lines.append(f"{claim}: {len(cases) - len(misses)} of {len(cases)} hold")
        lines += [f"  {miss}" for miss in misses]
    return "\n".join(lines)


def markdown_verdicts(verdicts: Sequence[Verdict]) -> str:
    """Return the verdicts as a Markdown list."""
    lines = text_verdicts(verdicts).splitlines()
    return "\n".join(f"  - {line.strip()}" if line[0] == " " else f"- {line}" for line in lines)


def replace_section(text: str, name: str, content: str) -> str:
    """Return a document with new content between the markers of a section.

    Raises:
        ValueError: If the markers are not there.
    """
    begin, end = BEGIN.format(name), END.format(name)
    before, found, rest = text.partition(begin)
    _, closed, after = rest.partition(end)
    if not (found and closed):
        raise ValueError(f"Expected {begin} and {end} in the document.")
    return f"{before}{begin}\n{content}\n{end}{after}"


def origin(lines: Sequence[Mapping[str, Any]]) -> str:
    """Return where and on what stored results were measured; what was added later is named, too."""
    return "; ".join(dict.fromkeys(map(_origin, lines)))


def _origin(line: Mapping[str, Any]) -> str:
    hardware, versions = line["hardware"], line["versions"]
    device = hardware["gpu"] or f"{hardware['cpu']}, {hardware['threads']} thread(s)"
    commit, plus, _ = line["commit"].partition("+")
    commit = commit[:12] + (" with uncommitted changes" if plus else "")
    return (
        f"{line['time'][:10]}, commit {commit}, {device},"
        f" torch {versions['torch']}, seed {_seeds(line['seeds'])}, `{line['command']}`"
    )


def _seeds(seeds: Sequence[int]) -> str:
    """Return seeds that follow each other as a range."""
    run = list(range(seeds[0], seeds[0] + len(seeds))) if seeds else []
    many = len(seeds) > 2 and list(seeds) == run
    return f"{seeds[0]} to {seeds[-1]}" if many else ", ".join(map(str, seeds))


def size(rows: Iterable[Mapping[str, Any]]) -> str:
    """Say how large the runs were, and whether that is the paper's size."""
    sizes = sorted({(row["trials"], row["horizon"], row["points"]) for row in rows})
    said = "; ".join(f"{m} trials of {t} rounds on {n} points" for m, t, n in sizes)
    return f"{said}." if sizes == [PAPER_SIZE] else f"{said}: NOT the paper's size."


def effort(rows: Iterable[Mapping[str, Any]]) -> str:
    """Say how long the table took."""
    found = list(rows)
    if "wall_seconds" not in found[0]:
        return f"{sum(row['seconds'] for row in found) / 60:.0f} minutes"
    wall, processes = found[0]["wall_seconds"] / 60, found[0]["processes"]
    cpu = sum(row["cpu_seconds"] for row in found) / 60
    return f"{wall:.1f} minutes in {processes} process(es), {cpu:.1f} CPU minutes in the runs"


def sections(directory: Path = RESULTS) -> dict[str, str]:
    """Return what is stored as Markdown, by the name of its section."""
    found = {}
    if lines := read("table-a2", directory):
        ours = table_of(line["row"] for line in lines)
        extent = size(line["row"] for line in lines)
        measured = f"Measured {origin(lines)}; {effort(line['row'] for line in lines)}. {extent}"
        found["table-a2"] = "\n\n".join(
            [measured, markdown_table(ours), markdown_verdicts(judge(ours))]
        )
    if lines := read("figure-1", directory):
        found["figure-1"] = f"Measured {origin(lines)}.\n\n{_markdown_curves(lines)}"
    for name, say in TABLES.items():
        if lines := read(name, directory):
            text = say([line["row"] for line in lines]).rstrip()
            found[name] = f"Measured {origin(lines)}.\n\n```\n{text}\n```"
    if lines := read("streaming", directory):
        items = "\n".join(f"- {describe(line['row'])}" for line in lines)
        found["streaming"] = f"Measured {origin(lines)}.\n\n{items}"
    return found


def main(arguments: list[str]) -> None:
    """Print what is stored; with ``--markdown`` write it into the benchmarks' README."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks report", description="stored results beside the printed ones"
    )
    parser.add_argument("--markdown", action="store_true", help=f"rewrite the tables of {README}")
    add_results_argument(parser)
    options = parser.parse_args(arguments)
    if options.markdown:
        text = README.read_text(encoding="utf-8")
        for name, content in sections(options.results).items():
            text = replace_section(text, name, content)
        README.write_text(text, encoding="utf-8")
        print(f"Wrote {README}")
        return
    for name in ("table-a2", "figure-1", "figure-a3", *TABLES, "streaming"):
        print(f"== {name} ==\n{text_section(name, options.results)}\n")


def text_section(name: str, directory: Path = RESULTS) -> str:
    """Return what is stored of a benchmark as text."""
    lines = read(name, directory)
    if not lines:
        return f"Not stored; run python -m benchmarks {name}."
    rows = [line["row"] for line in lines]
    if name == "table-a2":
        ours = table_of(rows)
        parts = [origin(lines), size(rows), text_table(ours), text_verdicts(judge(ours))]
        return "\n\n".join(parts)
    if name in TABLES:
        return f"{origin(lines)}\n\n{TABLES[name](rows)}"
    say = describe if name == "streaming" else _text_point
    return "\n".join([origin(lines), *map(say, rows)])


def _text_point(row: Mapping[str, Any]) -> str:
    return (
        f"forgetting {row['forgetting']:<6g} {row['policy']:<24} regret {row['regret']:.3f}"
        f"  queries {row['queries']:.0f}"
    )


def _text_row(name: str, ours: Cell, printed: Cell | None, width: int) -> str:
    left = f"{name:<{width}}  {_columns(ours)}"
    if printed is None:
        return left
    return f"{left}  {_columns(printed)}  {ours.regret - printed.regret:+.3f}"


def _columns(cell: Cell) -> str:
    regret = f"{cell.regret:.3f} ± {cell.regret_std:.3f}"
    return f"{regret:<13}  {cell.queries:>3.0f} ± {cell.queries_std:<3.0f}"


def _brief(cell: Cell | None) -> str:
    if cell is None:
        return ""
    return f"{cell.regret:.3f}±{cell.regret_std:.3f} / {cell.queries:.0f}±{cell.queries_std:.0f}"


def _markdown_curves(lines: Sequence[Mapping[str, Any]]) -> str:
    rows = [line["row"] for line in lines]
    table = ["| ε | method | regret / queries along the curve |", "|---|---|---|"]
    for (forgetting, curve), group in groupby(rows, lambda r: (r["forgetting"], r["curve"])):
        points = " · ".join(f"{row['regret']:.3f} / {row['queries']:.0f}" for row in group)
        table.append(f"| {forgetting:g} | {curve} | {points} |")
    return "\n".join(table)


def _printed(name: str, forgetting: float) -> Cell | None:
    """Return the printed cell a policy stands for, if there is one."""
    return TABLE_A2.get(name.removesuffix(" as printed"), {}).get(forgetting)
