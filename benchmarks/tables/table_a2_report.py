"""Table A2 in words: ours beside the printed numbers, and whether its three claims hold, case by case."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from benchmarks.harness.record import part_of
from benchmarks.tables.paper import FORGETTING_RATES, PAPER_SIZE, TABLE_A2, Cell
from benchmarks.tables.table_a2 import MERGED

FULL_FEEDBACK_MARGIN = 0.02
CURVE_MARGIN = 0.03
BERNOULLI_MARGIN = 0.04
_ROUNDED = 5e-4, 0.5  # by which printed regrets and queries may be rounded

Table = Mapping[str, Mapping[float, Cell]]  # policy, then forgetting rate


@dataclass(frozen=True)
class Verdict:
    """One case of a claim."""

    claim: str
    policy: str
    forgetting: float
    ours: float | None  # regret, None if it was not measured
    printed: float  # regret
    margin: float
    holds: bool
    note: str = ""

    def __str__(self) -> str:
        ours = "not measured" if self.ours is None else f"{self.ours:.3f}"
        word = "holds" if self.holds else "MISS"
        text = (
            f"{word}: {self.policy}, forgetting {self.forgetting:g}:"
            f" ours {ours}, printed {self.printed:.3f}, margin {self.margin:g}"
        )
        return f"{text} ({self.note})" if self.note else text


def table_of(rows: Iterable[Mapping[str, Any]]) -> dict[str, dict[float, Cell]]:
    """Return stored rows by policy and forgetting rate, in the order they were measured."""
    table: dict[str, dict[float, Cell]] = {}
    for row in rows:
        table.setdefault(row["policy"], {})[row["forgetting"]] = part_of(row, Cell)
    return table


def judge(ours: Table, printed: Table = TABLE_A2) -> list[Verdict]:
    """Judge all claims."""
    coins = [name for name in printed if "Ber(" in name]
    return [
        *judge_near(
            "full feedback within 0.02",
            ours,
            printed,
            {"TV-GP-UCB": "TV-GP-UCB"},
            FULL_FEEDBACK_MARGIN,
        ),
        *judge_curve(ours, printed),
        *judge_near(
            "coins within 0.04, the belief as printed",
            ours,
            printed,
            {f"{name} as printed": name for name in coins},
            BERNOULLI_MARGIN,
        ),
        *judge_near(
            "coins within 0.04, the belief ageing in every round",
            ours,
            printed,
            {name: name for name in coins},
            BERNOULLI_MARGIN,
        ),
    ]


def judge_near(
    claim: str, ours: Table, printed: Table, names: Mapping[str, str], margin: float
) -> list[Verdict]:
    """Judge whether our regret is within the margin of the printed one, above or below."""
    verdicts = []
    for name, twin in names.items():
        for forgetting, cell in printed[twin].items():
            measured = ours.get(name, {}).get(forgetting)
            regret = None if measured is None else measured.regret
            # A hair more than the margin: 0.02 is not a sum of binary fractions.
            holds = regret is not None and abs(regret - cell.regret) <= margin + 1e-9
            verdicts.append(Verdict(claim, name, forgetting, regret, cell.regret, margin, holds))
    return verdicts


def judge_curve(ours: Table, printed: Table) -> list[Verdict]:
    """Judge whether, at the queries of each printed confidence row, our regret is no higher.

    ``kappa`` cannot be compared row by row: equal thresholds cost different numbers of queries. So our
    regret is read off our own curve of regret against queries at the printed number of queries.
    """
    claim = "confidence rule on or below the printed curve (+ 0.03)"
    names = [name for name in printed if name.startswith("CE-GP-UCB @")]
    verdicts = []
    for name in names:
        for forgetting, cell in printed[name].items():
            curve = [ours[n][forgetting] for n in names if forgetting in ours.get(n, {})]
            regret, note = None, ""
            if curve:
                regret, note = regret_at(curve, cell.queries)
            holds = regret is not None and regret <= cell.regret + CURVE_MARGIN + 1e-9
            case = (claim, name, forgetting, regret, cell.regret, CURVE_MARGIN, holds, note)
            verdicts.append(Verdict(*case))
    return verdicts


def regret_at(curve: Iterable[Cell], queries: float) -> tuple[float, str]:
    """Return the regret of a curve at a number of queries, and where it was read.

    Linear between neighbouring points, hence monotone between them; on a convex curve it lies above,
    against us. Beyond the curve it is the regret of the nearer end.
    """
    points = sorted((cell.queries, cell.regret) for cell in curve)
    cost, regret = zip(*points, strict=True)
    note = f"at {queries:g} queries"
    if not cost[0] <= queries <= cost[-1]:
        end = cost[0] if queries < cost[0] else cost[-1]
        note = f"{note}, outside our range: our end at {end:.0f}"
    return float(np.interp(queries, cost, regret)), note


def cell_by_cell(ours: Table, printed: Table = TABLE_A2) -> str:
    """Return in how many cells of the confidence rules both means agree within two standard errors."""
    names = [name for name in printed if name.startswith("CE-GP-UCB @")]
    lines = []
    for kind, end in (("every other local maximum is a rival", ""), ("rivals are merged", MERGED)):
        pairs = [
            (ours[name + end][forgetting], cell)
            for name in names
            for forgetting, cell in printed[name].items()
            if forgetting in ours.get(name + end, {})
        ]
        if pairs:
            agree = [agreement(mine, theirs) for mine, theirs in pairs]
            regret, queries = (sum(which) for which in zip(*agree, strict=True))
            lines.append(
                f"confidence rules, cell by cell within two standard errors, {kind}: regret {regret},"
                f" queries {queries}, both {sum(map(all, agree))} of {len(pairs)}"
            )
    return "\n".join(lines)


def agreement(ours: Cell, printed: Cell) -> tuple[bool, bool]:
    """Return whether mean regrets, and mean queries, differ by at most two standard errors.

    Both means are over as many trials as the paper has.
    """
    trials, (digits, count) = PAPER_SIZE[0], _ROUNDED
    regret_error = math.hypot(ours.regret_std, printed.regret_std) / math.sqrt(trials)
    queries_error = math.hypot(ours.queries_std, printed.queries_std) / math.sqrt(trials)
    return (
        abs(ours.regret - printed.regret) <= 2 * regret_error + digits,
        abs(ours.queries - printed.queries) <= 2 * queries_error + count,
    )


def text(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table as text, with its verdicts."""
    ours = table_of(rows)
    verdicts = f"{text_verdicts(judge(ours))}\n{cell_by_cell(ours)}"
    return "\n\n".join([size(rows), text_table(ours), verdicts])


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """Return the table in Markdown, with its verdicts."""
    ours = table_of(rows)
    extent = f"{size(rows)} {effort(rows)}."
    verdicts = (
        f"{markdown_verdicts(judge(ours))}\n- {cell_by_cell(ours).replace(chr(10), chr(10) + '- ')}"
    )
    return "\n\n".join([extent, markdown_table(ours), verdicts])


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
