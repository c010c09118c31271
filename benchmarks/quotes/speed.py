"""Quotes on time, memory, and of runs that are killed."""

import math
from statistics import median

from benchmarks.endurance.trainers import beside
from benchmarks.harness.record import Row
from benchmarks.quotes.quote import Quote, Value
from benchmarks.quotes.rows import column, row, rows, stored
from benchmarks.speed.imports import BASE
from benchmarks.tables.paper import PAPER_SIZE, TABLE_A2
from benchmarks.tables.table_a2_report import judge, table_of

README, NUMBERS = "README.md", "docs/numbers.md"


def _decision() -> Row:
    return row("speed", part="decision", dim=8, observations=200)


def _waiting() -> Row:
    return row("speed", part="waiting")


def _appends() -> list[Value]:
    sizes = (50, 200, 500)
    results = [row("streaming", case="append", observations=n)["speedup"] for n in sizes]
    return [*sizes, *results]


def _loop() -> list[Value]:
    full = row("table-a2-loop", policy="TV-GP-UCB")
    rare = row("table-a2-loop", policy="CE-GP-UCB @0.90")
    times = [r[key] for r in (full, rare) for key in ("simulate_seconds", "loop_seconds")]
    return [*times[:2], *times[2:], 0.90, full["ratio"], rare["ratio"]]


def _batch(beliefs: int) -> float:
    return row("speed", part="batch", beliefs=beliefs)["decisions_a_second"]


def _grid() -> list[Value]:
    results = rows("speed", part="grid")
    ratios = [r["ratio"] for r in results if r["ratio"] is not None]
    large = [r["ours_ms"] / 1000 for r in results if r["observations"] == 5000]
    return [min(ratios), max(ratios), 5000, min(large), max(large)]


def _speed() -> list[Value]:
    decision, waiting = _decision(), _waiting()
    whole = row("speed", part="profile", step="whole decision")
    return [
        *(decision["ours_ms"], decision["ratio"], decision["problems"] * decision["as_good"]),
        *(100 * decision["as_many_optima"], whole["operations"], 64, _batch(64), _batch(1)),
        *(waiting["median_ms"], waiting["ms_90"], waiting["ms_99"]),
    ]


def _at_hand() -> list[Value]:
    """Return the least and most milliseconds of a decision after 50 or 200 queries."""
    times = [r["ours_ms"] for n in (50, 200) for r in rows("speed", part="grid", observations=n)]
    return [min(times), max(times)]


def _at_hand_by_price() -> list[Value]:
    times = [
        r["priced"]
        for r in stored("priced-time")
        if r["setting"].startswith("d = ")
        and ("n = 50," in r["setting"] or "n = 200," in r["setting"])
    ]
    return [min(times), max(times)]


def _refit() -> list[Value]:
    refit = row("speed", part="refit", observations=200, dim=8, start="warm")
    decision = _decision()
    both = (refit["botorch_ms"] + decision["botorch_ms"]) / (refit["ours_ms"] + decision["ours_ms"])
    return [refit["speedup"], refit["ours_ms"], refit["botorch_ms"], both]


def _waits() -> list[Value]:
    kinds = ("with a query", "without a query", "with a price", "by confidence")
    return [row("speed", part="waits", of=f"a decision {kind}")["waits"] for kind in kinds]


def _imports() -> list[Value]:
    def beyond(statement: str) -> float:
        least = {r["statement"]: r["least"] for r in stored("imports")}
        return max(0.0, least[statement] - least[BASE])

    theirs = "import botorch.acquisition.input_constructors, botorch.models, botorch.optim"
    package = "import botorch, botorch_costly"
    names = (f"import botorch; from botorch_costly import {name}" for name in ("OnlineTuner", "*"))
    first, every = map(beyond, names)
    return [beyond(package), first, beyond(theirs), every]


def _horizon() -> list[Value]:
    cases = stored("horizon")
    grid, tuner = (next(r for r in cases if r["case"].startswith(s)) for s in ("grid", "tuner"))
    memory = [100 * (r["peak_mb_late"] / r["peak_mb_early"] - 1) for r in (grid, tuner)]
    return [
        *(grid["ratio"], 1000, grid["late"]["cpu_ms"]),
        *(tuner["ratio"], tuner["late"]["cpu_ms"], *memory),
    ]


def _simulator() -> list[Value]:
    published = stored("table-a2-published")
    ratios = column("table-a2-loop", "ratio")
    minutes = published[0]["wall_seconds"] / 60
    size = [len(published), published[0]["trials"], published[0]["horizon"]]
    return [*size, minutes, min(ratios), max(ratios)]


def _kills() -> list[Value]:
    total = {key: sum(column("kills", key)) for key in ("kills", "loading", "training", "writing")}
    ended = {key: sum(column("kills", key)) for key in ("whole", "identical", "unfinished")}
    return [
        *(column("kills", "rounds")[0], total["kills"], len(stored("kills"))),
        *(total["loading"], total["training"], total["writing"]),
        *(ended["whole"], total["kills"], ended["identical"], total["kills"], ended["unfinished"]),
    ]


def _fits(trainer: str, steps: int) -> list[Row]:
    return rows("trainers", trainer=trainer, steps=steps)


def _share(trainer: str, steps: int) -> list[Value]:
    """Return the share of the callback in per cent, median and worst, and the seconds of a round."""
    fits = _fits(trainer, steps)
    shares = [100 * fit["within_processor"] / fit["processor"] for fit in fits]
    return [median(shares), max(shares), median(f["processor"] / f["rounds"] for f in fits)]


def _beside(trainer: str, steps: int = 25) -> float:
    return 1000 * median(map(beside, _fits(trainer, steps)))


def _deciding() -> list[float]:
    kinds = ("Lightning", "Transformers", "50 groups")
    return [
        1000 * median(fit["deciding"] / fit["rounds"] for fit in _fits(kind, 25)) for kind in kinds
    ]


def _trainers() -> list[Value]:
    light, groups = "Lightning", "50 groups"
    both = (_beside(light), _beside("Transformers"))
    if f"{both[0]:.1f}" != f"{both[1]:.1f}":
        raise LookupError(f"{both} are not the same to a digit")
    return [
        *(*_share(light, 100), *_share(light, 25), 50),
        *(*_share(groups, 100), *_share(groups, 25), *_share("Transformers", 25)),
        *(25, both[0], _beside(groups)),
    ]


def _verdicts(words: str) -> list[Value]:
    """Return how many claims on rows of Table A2 hold, and how many there are."""
    results = [v for v in judge(table_of(stored("table-a2"))) if words in v.claim]
    return [sum(v.holds for v in results), len(results)]


def claims() -> dict[str, list[Value]]:
    """Return how many claims on Table A2 hold, and how many there are, by their kind."""
    kinds = {
        "curve": "confidence rule",
        "printed": "belief as printed",
        "ageing": "ageing in every round",
    }
    return {key: _verdicts(words) for key, words in kinds.items()}


def _full_feedback() -> list[Value]:
    results = [v for v in judge(table_of(stored("table-a2"))) if v.policy == "TV-GP-UCB"]
    return [max(abs(v.ours - v.printed) for v in results if v.ours is not None)]


def _the_miss() -> list[Value]:
    missed = [
        v
        for v in judge(table_of(stored("table-a2")))
        if v.policy.startswith("CE-GP-UCB") and not v.holds
    ]
    (miss,) = missed
    printed = TABLE_A2[miss.policy][miss.forgetting]
    ours = table_of(stored("table-a2"))[miss.policy][miss.forgetting]
    error = math.hypot(printed.regret_std, ours.regret_std) / math.sqrt(PAPER_SIZE[0])
    return [0.03, *claims()["curve"], miss.ours or 0.0, miss.printed, printed.queries, error]


QUOTES = (
    Quote(
        README,
        "A decision after a query takes # ms (# observations, # dimensions, one CPU thread), #"
        " times less than with BoTorch's public functions; a round without a query takes # ms",
        lambda: [_decision()["ours_ms"], 200, 8, _decision()["ratio"], _waiting()["median_ms"]],
    ),
    Quote(
        NUMBERS,
        "50 trials: TV-GP-UCB | within # of the printed regret at all five forgetting rates",
        _full_feedback,
    ),
    Quote(
        NUMBERS,
        "at most the printed regret + # in # of # cells; the miss is # against # at # queries,"
        " where one standard error is #",
        _the_miss,
    ),
    Quote(
        NUMBERS,
        "within 0.04 in # of # cells with the belief as printed, in # of # with one that ages",
        lambda: [*claims()["printed"], *claims()["ageing"]],
    ),
    Quote(
        NUMBERS,
        "an update and a posterior, n = # / # / # | # / # / # times faster",
        _appends,
    ),
    Quote(
        NUMBERS,
        "# s of # s with full feedback, # s of # s with CE-GP-UCB @#: # and # times faster",
        _loop,
    ),
    Quote(
        NUMBERS,
        "# ms, # times faster in the median (9.7 before the first steps went by signs), the upper"
        " bound as high in all # (slack 1e-8), an equal verdict in all, at least as many optima in"
        " # % (our aim: all). # operations (3,101 before; our aim 1,000). # beliefs at once: #"
        " decisions a second of # alone (our aim: five times one; half of the time is matrix"
        " products). A round without a query: # ms, # at 90 %, # at 99 %",
        _speed,
    ),
    Quote(
        NUMBERS,
        "By size # to # times BoTorch (50 to 1,000 observations, 1 to 20 dimensions); with #"
        " observations # to # s",
        _grid,
    ),
    Quote(
        NUMBERS,
        "the refit is # times faster than `fit_gpytorch_mll` (# ms for #), both together # times",
        _refit,
    ),
    Quote(
        NUMBERS,
        "# times with a query, once without, once with a price, # times by confidence",
        lambda: [value for value in _waits() if value != 1],
    ),
    Quote(
        NUMBERS,
        "# s (1.2 before); our aim was at most 0.3. The first use of `OnlineTuner` takes # s, of"
        " which BoTorch's acquisition functions, models and optimizers have #; all public names #"
        " s",
        _imports,
    ),
    Quote(
        NUMBERS,
        "# times on a grid of # points (# ms, queries in half of the rounds), # times for a tuner"
        " in four dimensions (# ms); peak memory # % and # % above that after 2,000 rounds",
        _horizon,
    ),
    Quote(
        NUMBERS,
        "# cells of # trials x # rounds in # minutes; a trial is # to # times cheaper",
        _simulator,
    ),
    Quote(
        NUMBERS,
        "a tuned training of # rounds that `save` stores after each, ended by SIGKILL at # random"
        " moments (# seeds, a machine with other work; # while a process began or loaded, # in a"
        " round, # within `save`) | # of # files whole, none behind what `save` had confirmed, and"
        " # of # continuations end with decisions, rewards, weights and generators identical to"
        " the last bit; # kills left",
        _kills,
    ),
    Quote(
        NUMBERS,
        "Lightning, a convolutional network: # % (#) with rounds of # s, # % (#) with # s; #"
        " parameter groups: # % (#) with # s, # % (#) with # s; Transformers, a small GPT-2: # %"
        " (#) with # s. Most of it is the decision: beside `ask` and `tell` a round of # steps"
        " takes # ms in Lightning and in Transformers (3.1 and 6.2 ms before, measured by turns)"
        " and # ms with 50 groups",
        _trainers,
    ),
    Quote(
        NUMBERS,
        "further with rounds of 100 steps (# ms), and rounds of 0.3 s stay above one per cent, for"
        " decisions alone take # to # ms there",
        lambda: [_beside("Lightning", 100), min(_deciding()), max(_deciding())],
    ),
    Quote(
        README,
        "A query must cost more than its decision: # to # ms after # or # queries",
        lambda: [*_at_hand(), 50, 200],
    ),
    Quote(
        NUMBERS,
        "A decision after # or # queries takes # to # ms on one CPU thread in 1 to 20 dimensions,"
        " one by price # to # ms in 1 to 8",
        lambda: [50, 200, *_at_hand(), *_at_hand_by_price()],
    ),
)
