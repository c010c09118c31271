"""Quotes on the augmentation of contrastive trainings."""

from collections.abc import Mapping
from functools import cache, partial
from statistics import fmean

from benchmarks.harness.statistics import Runs, by_method, mean_error, rank_correlation, shared
from benchmarks.quotes.quote import Quote, Value
from benchmarks.quotes.rows import rows, stored
from benchmarks.training.simclr.readouts import candidates

NUMBERS, AUGMENTATION = "docs/numbers.md", "docs/guide/augmentation.md"

_LINES = {
    "one half each | # (#) | | #": "fixed 0.5",
    "a random schedule | # (#) | # (#) | #": "random schedule",
    "none but half of the crops | # (#) | # (#) | #": "off",
    "likewise, confidence at the lowest threshold | # (#) | # (#) | #": "confidence 0.7, accuracy",
    "likewise, a coin for its rule | # (#) | # (#) | #": "coin for 0.7, accuracy",
    "one random operation a picture | # (#) | # (#) | #": "one operation",
    "SimCLR's authors' for CIFAR-10 | # (#) | # (#) | #": "expert",
    "tuned, full feedback | # (#) | # (#) | #": "full feedback",
    "tuned, full feedback, gains over the last query | # (#) | # (#) | #": "full, last loss",
    "tuned, confidence 0.8 | # (#) | # (#) | #": "confidence 0.8",
    "tuned, a coin for its rule | # (#) | # (#) | #": "coin",
    "tuned, confidence 0.7 | # (#) | # (#) | #": "confidence 0.7",
    "tuned, `OnlineTuner` as it comes | # (#) | # (#) | #": "as it comes",
    "tuned, hyperparameters of the model learned | # (#) | # (#) | #": "full, learned",
    "tuned, gain of accuracy as in the paper | # (#) | # (#) | #": "full, accuracy",
}


@cache
def _contrastive() -> Mapping[str, Runs]:
    return by_method(rows("simclr", recipe="small"))


def top(method: str) -> tuple[float, float]:
    """Return the mean top-1 of a contrastive training in per cent, and its standard error."""
    return mean_error([100 * run["top_1"] for run in _contrastive()[method].values()])


def _less(method: str, other: str) -> tuple[float, float]:
    """Return the mean difference of top-1 and its standard error."""
    pairs = shared(_contrastive()[method], _contrastive()[other], "top_1")
    return mean_error([100 * (ours - theirs) for ours, theirs in pairs])


def queries(method: str) -> float:
    """Return the mean number of queries of a contrastive training."""
    return fmean(run["queries"] for run in _contrastive()[method].values())


def _percent(method: str) -> float:
    return 100 * queries(method) / queries("full feedback")


def _line(method: str) -> list[Value]:
    less = () if method == "fixed 0.5" else _less(method, "fixed 0.5")
    return [*top(method), *less, queries(method)]


def _priced_line() -> list[Value]:
    both = ("priced, 60 %", "priced")
    return [
        *(60, 50, *top(both[0]), *top(both[1])),
        *(*_less(both[0], "fixed 0.5"), *_less(both[1], "fixed 0.5"), *map(queries, both)),
    ]


def _rules() -> list[Value]:
    gaps = [
        _less(method, "full feedback") for method in ("confidence 0.7", "priced", "priced, 60 %")
    ]
    lost, errors = [-gap for gap, _ in gaps], [error for _, error in gaps]
    return [
        *(_percent("confidence 0.8"), _percent("confidence 0.7"), lost[0], errors[0]),
        *(_percent("priced"), _percent("priced, 60 %"), *lost[1:], *errors[1:], _percent("coin")),
    ]


def _of_the_time() -> list[Value]:
    """Return the least and most share of the tuner, and of the queries, in per cent."""
    tuned = [m for m in _contrastive() if queries(m) > 0 and m != "full, learned"]

    def shares(column: str) -> list[float]:
        return [
            100 * sum(run[column] for run in runs) / sum(run["seconds"] for run in runs)
            for runs in (_contrastive()[m].values() for m in tuned)
        ]

    return [f(shares(column)) for column in ("tuner_seconds", "query_seconds") for f in (min, max)]


def _numbers() -> list[Value]:
    return [
        *(top("fixed 0.5")[0], top("full feedback")[0], *_less("full feedback", "fixed 0.5")),
        *(top("as it comes")[0], top("confidence 0.8")[0], _percent("confidence 0.8")),
        *(top("coin")[0], _percent("coin"), top("priced")[0], top("priced, 60 %")[0]),
        *(_percent("priced"), _percent("priced, 60 %"), top("expert")[0]),
        *(top("one operation")[0], top("off")[0]),
    ]


def _memory() -> list[Value]:
    gap, error = _less("full, last loss", "full feedback")
    return [0.5, gap, error]


def _readouts() -> list[Value]:
    """Return rank correlations with the readout at the end, of the last time and of the first."""
    names = ("probe, accuracy", "probe, loss", "neighbours, loss", "neighbours, accuracy")
    networks = list(stored("simclr-readout"))
    ends = [network["times"][-1]["final"] for network in networks]

    def told(at: int) -> list[float]:
        values = dict(candidates(networks, at))
        return [rank_correlation(values[name], ends) for name in names]

    last = len(networks[0]["times"]) - 1
    return [len(networks), *told(last), *told(0)]


def _kept() -> list[Value]:
    full, default = (_less(m, "fixed 0.5")[0] for m in ("full feedback", "as it comes"))
    return [full, default / full]


def _with_the_papers_reward() -> list[Value]:
    low, middle, high = (f"confidence {kappa}, accuracy" for kappa in (0.7, 0.8, 0.9))
    coins, full = (f"coin for {kappa}, accuracy" for kappa in (0.7, 0.8, 0.9)), "full, accuracy"
    by_low, by_middle, by_high = map(_less, (low, middle, high), coins)
    asked = [queries(method) for method in (low, full, middle, high, full)]
    return [*by_low, *_less(low, full), *asked, *by_middle, *by_high]


QUOTES = (
    *(
        Quote(AUGMENTATION, f"| {line} |", partial(_line, method))
        for line, method in _LINES.items()
    ),
    Quote(
        AUGMENTATION,
        "| tuned, priced: # % and # % of the queries | # (#), # (#) | # (#), # (#) | #, # |",
        _priced_line,
    ),
    Quote(
        AUGMENTATION,
        "level with full feedback at # % of the queries, but not at # % (# below, standard error"
        " #); priced queries at # and # % are # and # below full feedback (# and #). A coin at # %"
        " is as good",
        _rules,
    ),
    Quote(
        AUGMENTATION,
        "With the paper's reward** the lowest threshold ends # (standard error #) above a coin that"
        " queries as often, and # (#) above full feedback, with # of # queries. The higher ones query"
        " in # and # of # rounds in the mean, and end # (#) and # (#) above their coins",
        _with_the_papers_reward,
    ),
    Quote(
        AUGMENTATION,
        "The tuner takes # to # % of the time of these short runs, queries # to # %.",
        _of_the_time,
    ),
    Quote(
        AUGMENTATION,
        "On # networks with constant probabilities, the rank correlation with the linear readout"
        " at the end is # for the accuracy and # for the loss of a brief linear probe, # for the"
        " loss of the neighbours and # for their accuracy. After a third of the run they predict"
        " the end with #, #, # and #",
        _readouts,
    ),
    Quote(
        NUMBERS,
        "fixed 0.5 #; tuned with full feedback #, # above (standard error #); `OnlineTuner` as it"
        " comes # with half of the queries; confidence 0.8 # with # %, and a coin # with # %;"
        " priced # and # with # and # %; the authors' policy # (our aim of being level is missed),"
        " one random operation #, no augmentation but crops #",
        _numbers,
    ),
    Quote(
        "docs/guide/rewards.md",
        "(#, five seeds: # points below, standard error #)",
        _memory,
    ),
    Quote(
        AUGMENTATION,
        "tuning gains # points in the run itself. The default keeps # of that",
        _kept,
    ),
)
