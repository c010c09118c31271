"""Table A2 in words: ours beside the printed numbers, and whether the claims hold."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import groupby
from typing import Any

from benchmarks.tables.paper import FORGETTING_RATES, PAPER_SIZE, TABLE_A2, Cell
from benchmarks.tables.verdicts import Table, Verdict, judge, table_of


def text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table as text, with its verdicts."""
    ours = table_of(rows)
    return "\n\n".join([size(rows), text_table(ours), text_verdicts(judge(ours))])


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table in Markdown, with its verdicts."""
    ours = table_of(rows)
    extent = f"{size(rows)} {effort(rows)}."
    return "\n\n".join([extent, markdown_table(ours), markdown_verdicts(judge(ours))])


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


def _printed(name: str, forgetting: float) -> Cell | None:
    """Return the printed cell a policy stands for, if there is one."""
    return TABLE_A2.get(name.removesuffix(" as printed"), {}).get(forgetting)
