"""Which targets earlier tasks harm, as a table of Markdown: ``python -m benchmarks meta-harm``."""

from collections.abc import Sequence

from benchmarks.harness.record import Row, grouped, rows_of
from benchmarks.meta.benchmark import HARM, NAME, surely_worse, worse_by
from benchmarks.meta.methods import OURS, PLAIN

AS_PUBLISHED = "RM-GP-UCB"
HEADS = (
    *("targets", "earlier tasks", "seeds", "better", "harmed", "surely", "by at most"),
    *("`ByGaps`: harmed", "by at most"),
)


def table(rows: Sequence[Row]) -> str:
    """Return where ours and the published rule are better or worse than plain GP-UCB, by family."""
    lines = ["| " + " | ".join(HEADS) + " |", "|" + "---|" * len(HEADS)]
    for (family, twist), mine in grouped(rows, "family", "twist").items():
        played = grouped(mine, "method")
        if {OURS, PLAIN} <= played.keys():
            cells = [*_ours(played[OURS], played[PLAIN]), *_published(played)]
            lines.append(f"| {family} | {twist or 'as recorded'} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _ours(rows: Sequence[Row], plain: Sequence[Row]) -> list[str]:
    """Return seeds, targets that are better and worse, how many beyond chance, and the worst."""
    seeds = {row["seed"] for row in rows} & {row["seed"] for row in plain}
    by, surely = worse_by(rows, plain), surely_worse(rows, plain)
    better, (harmed, worst) = sum(one < -HARM for one in by), _harmed(by)
    return [str(len(seeds)), str(better), harmed, "-" if surely is None else str(surely), worst]


def _harmed(by: Sequence[float]) -> list[str]:
    return [f"{sum(one > HARM for one in by)} of {len(by)}", f"{max([*by, 0.0]):.3f}"]


def _published(played: dict[str, list[Row]]) -> list[str]:
    if AS_PUBLISHED not in played:
        return ["-", "-"]
    return _harmed(worse_by(played[AS_PUBLISHED], played[PLAIN]))


def main(arguments: list[str]) -> None:
    """Print the table of the stored rows."""
    print(table(rows_of(NAME)))
