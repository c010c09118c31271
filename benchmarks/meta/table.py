"""What each method reached, family by family, and ``TransferOptimizer`` against each other one."""

import statistics
from collections.abc import Mapping, Sequence
from textwrap import fill

from benchmarks.harness.record import Row
from benchmarks.meta.families import TWISTS, UNRELATED
from benchmarks.meta.methods import METHODS, NOTES, OURS, PLAIN
from benchmarks.meta.signed_rank import AFTER, signed_rank, worse_by

AT = (1, 3, 5, 10, 20)  # evaluations after which regrets are stored
HARM = 0.005  # of the range: by which a task is worse than under plain GP-UCB
_WIDE = 138  # characters of a line, as of the table
_APART = ", ".join(UNRELATED)

_FOOT = (
    "Regret: mean and median over targets and seeds, as a share of the range. Rank: among the methods, "
    f"over the seeds that all have. Harmed: targets more than {HARM} worse than under {PLAIN} after "
    f"{AFTER}, and the worst of them. Sum: of all regrets, as a share of {PLAIN}'s: median over targets "
    f"and seeds, and the ninth tenth. Won, tied, lost: targets on which {OURS} has less regret, as "
    f"much and more after {AFTER}, on average over the seeds that both have; p: of Wilcoxon's "
    "signed-rank test, two-sided, over the n targets that differ, not corrected for how many methods "
    "there are."
)


def text(rows: Sequence[Row]) -> str:
    """Return what each method reached, family by family."""
    lines: list[str] = []
    for family in dict.fromkeys(row["family"] for row in rows):
        for twist in TWISTS:
            some = [row for row in rows if (row["family"], row["twist"]) == (family, twist)]
            if some:
                lines += _block(family, twist, some)
    played = {row["method"] for row in rows}
    notes = [f"{name}: {note}" for name, note in NOTES.items() if name in played]
    return "\n".join([*lines, *(fill(line, _WIDE) for line in [_FOOT, *notes])])


def _block(family: str, twist: str, rows: Sequence[Row]) -> list[str]:
    """Return the table and the comparisons; targets that no earlier task is like come again, apart."""
    title = f"{family}, {twist or 'as recorded'}"
    lines = [title, *_table(_played(rows))]
    count = len(rows[0][f"at {AFTER}"])
    groups: dict[str, Sequence[int]] = {f"{count} targets": range(count)}
    if (family, twist) == ("svm", ""):
        few = list(UNRELATED.values())
        lines += ["", f"{title}: {_APART} alone, which correlate with nothing"]
        lines += _table(_played([_only(row, few) for row in rows]))
        groups[f"{count - len(few)} without these"] = [k for k in range(count) if k not in few]
        groups["these alone"] = few
    return [*lines, "", *_against(_played(rows), groups)]


def _played(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Return the rows of each method that has some."""
    by_name = {name: [row for row in rows if row["method"] == name] for name in METHODS}
    return {name: some for name, some in by_name.items() if some}


def _only(row: Row, targets: Sequence[int]) -> Row:
    """Return a row of some of its targets."""
    by_target = [f"at {k}" for k in AT] + ["sum"]
    return {**row, **{name: [row[name][k] for k in targets] for name in by_target}}


def _against(played: Mapping[str, Sequence[Row]], groups: Mapping[str, Sequence[int]]) -> list[str]:
    """Return a line for each rival; nothing without rows of ours, or without rivals."""
    if OURS not in played or len(played) < 2:
        return []
    width = 31
    lines = [
        f"  {f'{OURS} against':<28}" + "".join(f"{name:>{width}}" for name in groups),
        f"  {'':<22}{'seeds':>6}"
        + f"{'won':>9}{'tied':>5}{'lost':>5}{'n':>4}{'p':>8}" * len(groups),
    ]
    for name, some in played.items():
        worse = worse_by(played[OURS], some)
        if name == OURS or not worse:
            continue
        seeds = len({row["seed"] for row in some} & {row["seed"] for row in played[OURS]})
        cells = "".join(_compared([worse[k] for k in targets]) for targets in groups.values())
        lines.append(f"  {name:<22}{seeds:>6}{cells}")
    return [*lines, ""]


def _compared(differences: Sequence[float]) -> str:
    won, tied, lost, p = found = signed_rank(differences)
    shown = f"{p:>8.4f}" if found.differing else f"{'-':>8}"
    return f"{won:>9}{tied:>5}{lost:>5}{found.differing:>4}{shown}"


def _table(played: Mapping[str, Sequence[Row]]) -> list[str]:
    ranks = _ranks(played)
    heads = "".join(f"{f'at {k}':>14}" for k in AT)
    lines = [
        f"  {'':<22}{'seeds':>6}{heads}{'rank':>6}{'harmed':>8}{'worst':>7}{'sum':>12}{'ms':>6}"
    ]
    for name, some in played.items():
        lines.append(f"  {name:<22}{_cells(some, played.get(PLAIN, []), ranks[name])}")
    return lines


def _cells(rows: Sequence[Row], plain: Sequence[Row], rank: float) -> str:
    cells = f"{len(rows):>6}"
    for k in AT:
        values = [value for row in rows for value in row[f"at {k}"]]
        cells += f"{statistics.fmean(values):>8.4f}{statistics.median(values):>6.3f}"
    harms = worse_by(rows, plain)
    harmed, worst = sum(harm > HARM for harm in harms), max([*harms, 0.0])
    seconds = statistics.fmean(row["seconds"] for row in rows)
    return f"{cells}{rank:>6.2f}{harmed:>8}{worst:>7.3f}{_sums(rows, plain)}{1e3 * seconds:>6.0f}"


def _sums(rows: Sequence[Row], plain: Sequence[Row]) -> str:
    theirs = {row["seed"]: row["sum"] for row in plain}
    ratios = [
        a / b
        for row in rows
        if row["seed"] in theirs
        for a, b in zip(row["sum"], theirs[row["seed"]], strict=True)
        if b > 0
    ]
    if not ratios:
        return f"{'-':>12}"
    ratios.sort()
    return f"{statistics.median(ratios):>7.2f}{ratios[int(0.9 * (len(ratios) - 1))]:>5.2f}"


def _ranks(played: Mapping[str, Sequence[Row]], at: int = AFTER) -> dict[str, float]:
    """Return the mean rank of each method over targets and common seeds, ties shared."""
    seeds = set.intersection(*({row["seed"] for row in rows} for rows in played.values()))
    ranks: dict[str, list[float]] = {name: [] for name in played}
    for seed in sorted(seeds):
        columns = [
            next(row[f"at {at}"] for row in rows if row["seed"] == seed) for rows in played.values()
        ]
        for values in zip(*columns, strict=True):
            for name, value in zip(played, values, strict=True):
                below = sum(other < value for other in values)
                equal = sum(other == value for other in values)
                ranks[name].append(below + (equal + 1) / 2)
    return {name: statistics.fmean(some) if some else float("nan") for name, some in ranks.items()}
