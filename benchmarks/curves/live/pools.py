"""Several pools of recorded trainings of one program, so that a result does not hang on one of them."""

from collections.abc import Sequence

from benchmarks.harness.record import Row, grouped

_POOL = ", pool "  # in the name of each but the first
_APART = 1_000  # between the numbers of the trainings of two pools, which are their seeds


def pooled(program: str, number: int) -> str:
    """Return the name of a pool of a program; numbers begin at 0, the first has the program's name."""
    return f"{program}{_POOL}{number + 1}" if number else program


def program_of(table: str) -> str:
    """Return the program of a pool."""
    return table.partition(_POOL)[0]


def training_numbers(table: str, size: int) -> range:
    """Return the numbers of the trainings of a pool, which no other pool has."""
    number = table.partition(_POOL)[2]
    first = _APART * (int(number) - 1) if number else 0
    return range(first, first + size)


def over_pools(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the programs that have several pools, under one name for all pools.

    Of each policy the same seeds of each pool count, so that no pool weighs more than another, and none
    of a policy that was not played on all. A seed on another pool is another seed.
    """
    together: list[Row] = []
    for program, mine in _by_program(rows).items():
        pools = grouped(mine, "table")
        if len(pools) == 1:
            continue
        for played in grouped(mine, "policy").values():
            seeds = [{row["seed"] for row in group} for group in grouped(played, "table").values()]
            common = set.intersection(*seeds) if len(seeds) == len(pools) else set()
            together += [
                {
                    **row,
                    "table": f"{program}, {len(pools)} pools",
                    "seed": (row["table"], row["seed"]),
                }
                for row in played
                if row["seed"] in common
            ]
    return together


def one_table_each(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of the programs that have one pool, and those over all pools of the others."""
    alone = [
        row
        for mine in _by_program(rows).values()
        if len(grouped(mine, "table")) == 1
        for row in mine
    ]
    return [*alone, *over_pools(rows)]


def _by_program(rows: Sequence[Row]) -> dict[str, list[Row]]:
    return grouped([{**row, "program": program_of(row["table"])} for row in rows], "program")
