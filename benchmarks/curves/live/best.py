"""The best configurations of recorded trainings beside those of the paper's Tables 2 to 4."""

from collections.abc import Mapping, Sequence

from benchmarks.harness.record import Row, grouped

_ACTOR_CRITIC = ("gamma", "actor_lr", "critic_lr")
PRINTED: dict[str, Mapping[str, float]] = {
    "cartpole": {"gamma": 0.95586, "lr": 0.00589},
    "reacher": dict(zip(_ACTOR_CRITIC, (0.8, 0.00071, 0.00042), strict=True)),
    "pendulum": dict(zip(_ACTOR_CRITIC, (0.95586, 0.00589, 0.00037), strict=True)),
    "pictures": {  # on SVHN
        "filter_size": 5,
        "pool_size": 5,
        "batch_size": 8,
        "lr": 0.000484,
        "momentum": 0.82852,
        "decay": 0.9746,
    },
}

_LEAST = 20  # trainings; the best of fewer says little


def best_of(rows: Sequence[Row]) -> Row:
    """Return the training with the best last reward among those that did not diverge."""
    whole = [row for row in rows if len(row["curve"]) == row["iterations"]]
    return max(whole, key=lambda row: row["curve"][-1])


def best_text(rows: Sequence[Row]) -> str:
    """Return the best configuration of each program that the paper prints one of, and that one."""
    lines: list[str] = []
    for program, mine in grouped(rows, "program").items():
        printed = PRINTED.get(program.partition(",")[0])
        if printed is None or len(mine) < _LEAST:
            continue
        if not lines:
            lines.append(f"{'best configuration':<28}{'':>14}{'ours':>12}{'the paper':>12}")
        best = best_of(mine)
        for number, (name, value) in enumerate(printed.items()):
            title = program if not number else ""
            own = f"{best['config'][name]:>12.3g}"
            lines.append(f"{title:<28}{name:>14}{own}{value:>12.3g}")
    return "\n".join(lines)
