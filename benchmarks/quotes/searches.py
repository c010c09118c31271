"""Quotes on searches: parts of the data, entropy search, earlier studies, learning curves."""

from functools import cache, partial
from statistics import fmean, median

from benchmarks.harness.record import Row
from benchmarks.harness.statistics import Estimate
from benchmarks.information.benchmark import INITIAL, needed
from benchmarks.meta.algoperf import by_workload
from benchmarks.meta.synthetic.benchmark import remaining
from benchmarks.quotes.quote import Quote, Value
from benchmarks.quotes.rows import by_seed, column, less, mean, row, rows, stored

NUMBERS, SEVERAL = "docs/numbers.md", "docs/guide/several.md"
_OURS = "SubsetOptimizer"

# -- parts of the data, and entropy search ---------------------------------------------------------


def _regret(table: str, method: str, at: str) -> Estimate:
    return mean(by_seed("fabolas", f"at {at}", table=table, method=method))


def _language_models(table: str) -> list[Value]:
    methods = (_OURS, "LogEI at the target", "halving", "MF-MES", "Step Law")
    return [_regret(table, method, at) for method in methods for at in ("1", "3")]


def machines() -> list[Value]:
    """Return regrets of ``SubsetOptimizer`` and of LogEI on a grid of support vector machines."""
    methods = (_OURS, "LogEI at the target")
    return [_regret("svm", m, at) for m in methods for at in ("0.25", "1", "3")]


def machines_of(method: str) -> list[Value]:
    """Return regrets of a method on the same grid."""
    return [_regret("svm", method, at) for at in ("0.25", "1", "3")]


def _machines() -> list[Value]:
    ours = [_regret("svm", _OURS, at) for at in ("0.25", "1", "3")]
    rivals = [
        _regret("svm", m, at) for m in ("halving", "LogEI at the target") for at in ("1", "3")
    ]
    return [*ours, *rivals]


def live_machines() -> list[Value]:
    """Return three times, and the errors of ``SubsetOptimizer`` and of LogEI by then."""
    times = ("5", "20", "80")
    ours = [fmean(column("svm-live", f"at {t}", method=_OURS)) for t in times]
    theirs = [fmean(column("svm-live", f"at {t}", method="LogEI on all")) for t in times]
    return [*map(float, times), *ours, *theirs]


def networks() -> list[Value]:
    """Return the errors of the small networks by ``SubsetOptimizer`` and by LogEI on all pictures."""
    programs = {"cnn, small": (2, 4, 8, 16), "residual, small": (2, 16)}
    return [
        fmean(column("fabolas-networks", f"at {t}", program=program, method=method))
        for program, times in programs.items()
        for method in (_OURS, "LogEI on all")
        for t in times
    ]


def smallest() -> list[Value]:
    """Return the mean total variation of 50 points by each method."""
    return [
        50,
        *(fmean(column("prob-min", m, points=50)) for m in ("draws", "corrected", "MVNXPB")),
    ]


def known_at(problem: str, method: str, evaluations: int) -> float:
    """Return the median regret of the point believed best after so many evaluations."""
    results = rows("entropy-search", problem=problem, method=method)
    return median(r["inference"][evaluations - INITIAL] for r in results)


def _needed(method: str) -> float:
    """Return after how many evaluations of samples the regret stays below .05, the median."""
    results = rows("entropy-search", problem="GP sample", method=method)
    return median(needed(r["inference"], 0.05) for r in results)


def _samples() -> list[Value]:
    methods = ("ES, optima of draws", "ES", "LogEI", "JES")
    return [
        *(known_at("GP sample", method, 20) for method in methods),
        *map(_needed, methods),
    ]


def _branin() -> list[Value]:
    exact = ("ES, told exact", "LogEI, told exact", "JES, told exact")
    return [known_at("branin", method, 20) for method in ("ES", "LogEI", *exact)]


# -- learners --------------------------------------------------------------------------------------

_SHARES = ("1/50", "1/20", "1/10")


def _learners(method: str) -> list[Row]:
    return rows("learners", half="confirm", told="mean of 25 splits", method=method)


def _values(method: str, share: str, sets: tuple[int, ...] = ()) -> list[float]:
    return [
        value
        for r in _learners(method)
        for number, value in zip(r["data_sets"], r[f"at {share}"], strict=True)
        if not sets or number in sets
    ]


@cache
def _sixteen() -> tuple[int, ...]:
    return tuple(_learners(f"{_OURS} after 25 sets")[0]["data_sets"])


def _on_sixteen() -> list[Value]:
    methods = (f"{_OURS} after 25 sets", _OURS, "all at 1/32")
    results = [fmean(_values(m, share, _sixteen())) for m in methods for share in _SHARES]
    return [*results, fmean(_values("mostly best", "1/50", _sixteen()))]


def _all_sets() -> list[Value]:
    arms, screening = "arms by knowledge gradient", "all at 1/16"
    return [median(_values(arms, "1/20")), median(_values(screening, "1/20"))]


# -- earlier studies -------------------------------------------------------------------------------


def after(method: str, at: int, family: str = "svm") -> float:
    """Return the mean regret of a method on a family after so many evaluations."""
    results = rows("meta", family=family, twist="", method=method)
    return fmean(value for r in results for value in r[f"at {at}"])


def _machines_after() -> list[Value]:
    methods = ("TransferOptimizer", "RM-GP-UCB", "ScaML-GP", "GP-UCB")
    return [after(method, at) for method in methods for at in (5, 10, 20)]


def sums(cell: str, *methods: str) -> list[Value]:
    """Return sums of regrets where gaps of tasks are known, by the methods."""
    return [mean(by_seed("meta-synthetic", "sum", cell=cell, method=m)) for m in methods]


def _where_gaps_are_known() -> list[Value]:
    results = rows("meta-synthetic", cell="two alike, two not", method="RM-GP-UCB")
    lost = [remaining(r) for r in results]
    methods = ("RM-GP-UCB", "TransferOptimizer", "GP-UCB")
    return [
        *(sum(run.part <= 0.1 for run in lost), len(results)),
        *sums("two alike, two not", *methods),
    ]


def _none_alike(cell: str = "none alike") -> list[Value]:
    """Return the sums of regrets where no task is alike: RM-GP-UCB's, GP-UCB's, and their seeds."""
    methods = ("RM-GP-UCB", "GP-UCB")
    ours, plain = (by_seed("meta-synthetic", "sum", cell=cell, method=m) for m in methods)
    return [mean(ours), mean(plain), *list(less(ours, plain))[1:], len(ours)]


def _workloads() -> list[Value]:
    methods = ("TransferOptimizer", "RM-GP-UCB", "earlier bests", "GP-UCB")
    results = [by_workload(rows("algoperf", method=method), 3) for method in methods]
    return [value for ratios in results for value in (fmean(ratios), max(ratios))]


def _speed() -> list[Value]:
    def milliseconds(size: str, rule: str) -> float:
        return 1000 * median(row("meta-speed", size=size, rule=rule)["clock"])

    rules = ("RM-GP-UCB", "RM-GP-TS", "evidence")
    return [
        *(milliseconds("3x50", rule) for rule in rules),
        *(milliseconds("1000x100", r) / 1000 for r in rules),
    ]


def _advice() -> list[Value]:
    """Return the least and most that five hostile proposals cost after twenty evaluations."""
    problems = dict.fromkeys(r["problem"] for r in stored("advice"))
    costs = [
        less(
            by_seed("advice", "at 20", problem=problem, advice="hostile, of five"),
            by_seed("advice", "at 20", problem=problem, advice="none"),
        ).value
        for problem in problems
    ]
    return [min(costs), max(costs)]


# -- learning curves -------------------------------------------------------------------------------


def _curves(table: str, policy: str, at: int) -> float:
    return fmean(column("curves-earlier", f"at {at}", table=table, policy=policy))


def _quick_tune() -> list[Value]:
    name, tasks = "quick-tune", "lcbench, 10 to 33"
    games = ("pong after pong", "pong after enduro", "enduro after pong")
    misled = [_curves(game, f"{name}, negated", 10) for game in games]
    alone = [_curves(game, "alone", 10) for game in games]
    return [
        *(_curves(tasks, name, 3), _curves(tasks, name, 10)),
        *(_curves(tasks, "with studies", 3), _curves(tasks, "with studies", 10), 3, 10),
        *(_curves(tasks, f"{name}, negated", 10), min(misled), max(misled)),
        *(_curves(tasks, "alone", 10), min(alone), max(alone)),
    ]


QUOTES = (
    Quote(
        NUMBERS,
        "429 M parameters and 100 B tokens | `SubsetOptimizer` # and #, LogEI on whole trainings #"
        " and #, halving # and #, MF-MES # and #, the fitted formula of Step Law # and #",
        lambda: _language_models("429m-100b"),
    ),
    Quote(
        NUMBERS,
        "1.07 B and 20 B | `SubsetOptimizer` # and #, LogEI on whole trainings # and #, halving #"
        " and #, MF-MES # and #, the fitted formula of Step Law # and #",
        lambda: _language_models("1.07b-20b"),
    ),
    Quote(
        NUMBERS,
        "`SubsetOptimizer` #, #, # at the cost of 0.25, 1 and 3 whole trainings; halving # and #"
        " at 1 and 3, LogEI on all of the data # and #",
        _machines,
    ),
    Quote(
        NUMBERS,
        "after #, # and # s: `SubsetOptimizer` #, #, #, LogEI on all pictures #, #, #",
        live_machines,
    ),
    Quote(
        NUMBERS,
        "which of # values is the smallest, total variation from 4,000,000 draws | # by 256 draws,"
        " # by expectation propagation, # by MVNXPB of BoTorch",
        smallest,
    ),
    Quote(
        NUMBERS,
        "median regret after 20 evaluations # with points by draws, # with points by improvement,"
        " LogEI #, JES #; evaluations until it stays below 0.05 #, #, #, #",
        _samples,
    ),
    Quote(
        NUMBERS,
        "# where noise is learnt, and LogEI #: entropy search loses; # with exact values declared,"
        " LogEI #, JES #",
        _branin,
    ),
    Quote(
        NUMBERS,
        "arms by knowledge gradient #, a screening at a 16th #: the screening is better",
        _all_sets,
    ),
    Quote(
        NUMBERS,
        "`TransferOptimizer` #, #, #; RM-GP-UCB #, #, #; ScaML-GP #, #, #; GP-UCB #, #, #",
        _machines_after,
    ),
    Quote(
        NUMBERS,
        "dissimilar tasks lose 90 % of their weight on # of # seeds; the sum of regrets is # under"
        " RM-GP-UCB, # under `TransferOptimizer`, # under GP-UCB",
        _where_gaps_are_known,
    ),
    Quote(
        NUMBERS,
        "# under RM-GP-UCB, # under GP-UCB (difference # to #, # seeds)",
        _none_alike,
    ),
    Quote(
        NUMBERS,
        "after the same three random evaluations, as in the paper, # and # (# to #, # seeds)",
        partial(_none_alike, "none alike, three random first"),
    ),
    Quote(
        NUMBERS,
        "`TransferOptimizer` # (worst workload #), RM-GP-UCB # (#), earlier bests # (#), GP-UCB #"
        " (#)",
        _workloads,
    ),
    Quote(
        NUMBERS,
        "# ms under RM-GP-UCB, # under RM-GP-TS, # under `TransferOptimizer`; after 1,000 tasks of"
        " 100 #, # and # s",
        _speed,
    ),
    Quote(
        SEVERAL,
        "a mean regret of #, # and # at 1/50, 1/20 and 1/10 of the seconds of all learners on all"
        " data; without studies #, # and #. The plain screening at a 32nd has #, # and # there"
        " (three seeds), and the learner that was mostly best, untried, #",
        _on_sixteen,
    ),
    Quote(
        SEVERAL,
        "# and # against # and # at # and # on the confirming tasks. On Pong it is better at every"
        " budget, partly because it looks twice as often at noisy readings; with negated studies"
        " it does not recover: # at ten on LCBench, # to # on the games, where a search alone has"
        " # and # to #",
        _quick_tune,
    ),
    Quote(SEVERAL, "five hostile ones cost # to # of the range after twenty", _advice),
)
