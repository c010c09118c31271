"""Quotes on the schedules of self-tuning networks."""

from collections.abc import Mapping
from functools import cache, partial
from statistics import fmean

from benchmarks.harness.statistics import Runs, mean_error, shared
from benchmarks.quotes.quote import Quote, Value
from benchmarks.quotes.rows import row, rows
from benchmarks.training.schedule.benchmark import PAPER, with_grid
from benchmarks.training.schedule.recipes import CPU

STN = "docs/guide/self-tuning.md"

_METHODS = (
    *("train only", "train and tune", "2 to 1", "5 to 1", "10 to 1", "10 to 1, then dense"),
    "switching",
    *("confidence 0.7", "confidence 0.8", "priced", "as it comes"),
    *(
        f"{name} Ber({rate})"
        for name in ("EXP3.R", "epsilon-greedy", "softmax", "UCB1", "GP-UCB")
        for rate in ("0.1", "0.2")
    ),
    *("confidence 0.8, net", "priced, net", "as it comes, net", "static grid"),
)
_DENSE = "train and tune"
_NET = ("confidence 0.8, net", "priced, net", "as it comes, net")


@cache
def _schedules() -> Mapping[str, Runs]:
    return with_grid(rows("stn", recipe="small"))


def _mean(method: str, name: str) -> float:
    return fmean(run[name] for run in _schedules()[method].values())


def losses(*methods: str) -> list[Value]:
    """Return mean validation losses of self-tuning networks."""
    return [_mean(method, "validation_loss") for method in methods]


def _behind(method: str) -> tuple[float, float]:
    """Return the validation loss less that of dense tuning, and its standard error."""
    pairs = shared(_schedules()[method], _schedules()[_DENSE], "validation_loss")
    return mean_error([ours - theirs for ours, theirs in pairs])


def _by_dense(method: str) -> float:
    pairs = shared(_schedules()[method], _schedules()[_DENSE], "seconds")
    return sum(ours for ours, _ in pairs) / sum(theirs for _, theirs in pairs)


def _tuner(method: str) -> float:
    return 100 * fmean(r["tuner_seconds"] / r["seconds"] for r in _schedules()[method].values())


def _is_compared(method: str) -> bool:
    return method != _DENSE and len(_schedules()[method]) > 1


def _schedule_line(method: str) -> list[Value]:
    ends = [_mean(method, n) for n in ("validation_loss", "validation_accuracy")]
    tests = [_mean(method, n) for n in ("test_loss", "test_accuracy")]
    less = _behind(method) if _is_compared(method) else ()
    paid = [_mean(method, "tunings"), _mean(method, "queries"), _tuner(method), _by_dense(method)]
    return [len(_schedules()[method]), ends[0], *less, ends[1], *tests, *paid]


def _schedule_quote(method: str) -> Quote:
    less = "# ± #" if _is_compared(method) else ""
    sentence = f"| {method} | # | # | {less} | # | # | # | # | # | #% | # |"
    return Quote(STN, sentence, lambda: _schedule_line(method))


def _net_tuners() -> list[Value]:
    gaps = [_behind(method) for method in _NET]
    times = [_by_dense(method) for method in _NET]
    steps = [100 * _mean(m, "tunings") / _mean(_DENSE, "tunings") for m in _NET]
    queries = [100 * _mean(m, "queries") / _mean(m, "rounds") for m in _NET]
    lower, errors = [-gap for gap, _ in gaps], [error for _, error in gaps]
    some = (lower, errors, times, steps, queries)
    return [value for values in some for value in (min(values), max(values))]


def _never() -> list[Value]:
    return list(_behind("train only"))


def _phases() -> list[Value]:
    """Return the least and most share of rounds with tuning steps, in %, until the decays and between."""
    first, second, _ = (round(share * CPU.horizon) for share in CPU.decays)
    phases = (slice(0, first), slice(first, second), slice(second, None))

    def share(method: str, phase: slice) -> float:
        rounds = "".join(run["schedule"][phase] for run in _schedules()[method].values())
        return 100 * rounds.lower().count("t") / len(rounds)

    results = [[share(method, phase) for method in _NET] for phase in phases]
    return [value for shares in results for value in (min(shares), max(shares))]


def _by_accuracy() -> list[Value]:
    rare, often = "confidence 0.7", "confidence 0.8"
    return [0.8, _by_dense(often), 0.7, _mean(rare, "queries"), _mean(rare, "rounds")]


def _aim() -> list[Value]:
    return [_by_dense("train only"), 0.7, 5, 1, _by_dense("5 to 1")]


COINS = tuple(method for method in _METHODS if "Ber" in method)


def _coins() -> list[Value]:
    """Return the range of the coins' losses less those of dense tuning, and that of their steps."""
    gaps, steps = [_behind(m)[0] for m in COINS], [_mean(m, "tunings") for m in COINS]
    return [-min(gaps), max(gaps), min(steps), max(steps), _mean(_DENSE, "tunings")]


def _shares() -> list[Value]:
    tuned = [_tuner(m) for m in _METHODS if _mean(m, "queries") > 5 and m != "priced"]
    return [min(tuned), max(tuned), _tuner("priced")]


def _paper() -> list[Value]:
    rare, often, grid = (
        PAPER[name] for name in ("confidence 0.7", "confidence 0.8", "static grid")
    )
    return [
        rare[0],
        often[0],
        0.7,
        0.8,
        *(float(x) for x in (rare[-1], often[-1], grid[0], grid[-1])),
    ]


def _step(network: str) -> list[Value]:
    results = row("stn-time", network=network)
    plain, ours = results["plain"], results["self-tuning"]
    return [results["batch"], plain, ours, ours / plain, results["tuning"], results["validation"]]


def _middle() -> list[Value]:
    train, tune, high, low = (
        row("stn", recipe="middle", method=method)
        for method in ("train only", "train and tune", "confidence 0.8", "confidence 0.7")
    )
    loss, asked = "validation_loss", "queries"
    rules = [*(run[loss] for run in (train, tune, high, low)), high[asked], low[asked]]
    ratios = [row("stn", recipe="middle", method=name) for name in ("10 to 1", "5 to 1", "2 to 1")]
    dear = [run["seconds"] / ratios[1]["seconds"] for run in (high, low)]
    by_ratio = (10, 1, 5, 1, 2, 1)
    return [*rules, *by_ratio, *(run[loss] for run in ratios), min(dear), max(dear), 5, 1]


QUOTES = (
    *map(_schedule_quote, (m for m in _METHODS if "net" not in m)),
    *(
        Quote(
            STN,
            f"| {method} | # | # | # ± # | # | # | # | # | # | #% | # |",
            partial(_schedule_line, method),
        )
        for method in _NET
    ),
    Quote(
        STN,
        "Never tuning ends # above dense tuning, with a standard error of #.",
        _never,
    ),
    Quote(
        STN,
        "The three net tuners end # to # below dense tuning, with standard errors of # to #: not"
        " worse, and not clearly better. They take # to # times its time with # to # % of its"
        " tuning steps, and query # to # % of the rounds.",
        _net_tuners,
    ),
    Quote(
        STN,
        "a validation loss of # and # under the confidence rule with # and #, at # and # times the"
        " time of training alone, and # under the static grid at # times",
        _paper,
    ),
    Quote(STN, "| small network | # | # | # | # | # | # |", lambda: _step("small")),
    Quote(STN, "| VGG16 | # | # | # | # | # | # |", lambda: _step("vgg16")),
    Quote(
        STN,
        "serves the confidence rule with # as well as dense tuning, at # times the time. With # it"
        " queries # of # rounds",
        _by_accuracy,
    ),
    Quote(
        STN,
        "Training alone takes # times the time, so # leaves a quarter of the tuning steps; # to #"
        " has #",
        _aim,
    ),
    Quote(
        STN,
        "standard error of dense tuning (from # below to # above), with # to # of its # tuning",
        _coins,
    ),
    Quote(
        STN,
        "A ratio that becomes dense after the rate's first decay ends # above, ± #.",
        lambda: [*_behind("10 to 1, then dense")],
    ),
    Quote(
        STN,
        "Tuners take # to # % of the time, except the priced query of the tuner as published: # %",
        _shares,
    ),
    Quote(
        STN,
        "**A middle-sized network** (`--middle`, one seed): never tuning #, dense tuning #, the"
        " confidence rules # and # with # and # queries, fixed ratios of # to #, # to # and # to #"
        " end at #, # and #. The rules take # and # times as long as the ratio of # to #",
        _middle,
    ),
    Quote(
        STN,
        "They tune in # to # % of the rounds before the first decay of the learning rate, in # to"
        " # % up to the second one and in # to # % after it",
        _phases,
    ),
)
