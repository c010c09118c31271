"""Whether stored rows bear out what Table A2 prints: three claims, judged case by case."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.harness.record import part_of
from benchmarks.tables.paper import TABLE_A2, Cell

FULL_FEEDBACK_MARGIN = 0.02
CURVE_MARGIN = 0.03
BERNOULLI_MARGIN = 0.04

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
    """Judge whether our regret is within the margin of the printed one, above or below.

    Args:
        claim: What the verdicts are filed under.
        ours: Measured cells.
        printed: Printed cells.
        names: Our policies to the printed ones they stand for.
        margin: Of the regret.
    """
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
