"""Quotes on the online suite, of the demo and of the verdicts on them."""

from collections.abc import Sequence
from statistics import fmean, median

from benchmarks.harness.statistics import Estimate
from benchmarks.quotes.quote import Quote, Value
from benchmarks.quotes.rows import by_seed, column, less, mean, rows, stored
from benchmarks.suite.verdicts import holds, is_right

README, NUMBERS, BENCHMARKS = "README.md", "docs/numbers.md", "benchmarks/README.md"
AUGMENTATION = "digits_augmentation"
GOOD = ("digits_optimization", "breast_cancer", "digits_strengths", "fine_tuning", "pima")


def ends(problem: str, method: str, name: str = "online-suite") -> dict[int, float]:
    """Return test accuracies in per cent by seed."""
    return by_seed(name, "test_accuracy", 100, problem=problem, method=method)


def demo(method: str, name: str = "demo") -> dict[int, float]:
    """Return test accuracies of the demo in per cent by seed."""
    return by_seed(name, "test_accuracy", 100, method=method)


def _end(problem: str, method: str = "tuned", name: str = "online-suite") -> Estimate:
    return mean(ends(problem, method, name))


def _worst(problem: str, method: str = "tuned", name: str = "online-suite") -> float:
    return min(ends(problem, method, name).values())


def _gain(problem: str, name: str = "online-suite") -> Estimate:
    return less(ends(problem, "tuned", name), ends(problem, "default", name))


def _queried() -> float:
    """Return the share of rounds with a query in per cent."""
    runs = rows("online-suite", problem=AUGMENTATION, method="tuned")
    return 100 * fmean(r["queries"] / r["rounds"] for r in runs)


def _headline() -> list[Value]:
    return [
        *(_end(AUGMENTATION, "default"), _end(AUGMENTATION), 20, _worst(AUGMENTATION)),
        *(_queried(), _end(AUGMENTATION, "best fixed"), _end(AUGMENTATION, "population")),
    ]


def _gains() -> list[Value]:
    names = (AUGMENTATION, "mnist_augmentation", "cifar_augmentation", "digits_arms")
    return [_gain(name) for name in names]


def _thirty() -> Estimate:
    return _gain("digits_strengths", "strengths-thirty")


def _good_ones() -> list[Estimate]:
    """Return gains where the default is good already, of the most seeds that there are."""
    most = {"digits_strengths": "strengths-thirty", "digits_optimization": "online-suite-hundred"}
    return [_gain(problem, most.get(problem, "online-suite")) for problem in GOOD]


def _from_good() -> list[Value]:
    gains = _good_ones()
    lost = min(gains, key=lambda gain: gain.value)
    return [Estimate(-lost.value, -lost.high, -lost.low), max(g.value for g in gains)]


def _ends_of(problem: str, *methods: str) -> list[Value]:
    return [_end(problem, method) for method in methods]


def _suite() -> list[Value]:
    arms, cifar, mnist = "digits_arms", "cifar_augmentation", "mnist_augmentation"
    return [
        _queried(),
        *(_end(AUGMENTATION), 20, _worst(AUGMENTATION)),
        *(_end(AUGMENTATION, name="online-suite-fresh"), 20),
        *(_worst(AUGMENTATION, name="online-suite-fresh"), 95),
        *_ends_of(AUGMENTATION, "default", "best fixed", "population", "halving"),
        *_ends_of(arms, "tuned", "default", "best fixed"),
        *_ends_of(cifar, "tuned", "default", "best fixed", "population", "halving"),
        *(_end(mnist), _worst(mnist)),
        *_ends_of(mnist, "default", "best fixed", "population", "halving"),
    ]


def _hundred() -> list[Value]:
    name, problem = "online-suite-hundred", "digits_optimization"
    gain = _gain(problem, name)
    published = by_seed(
        "online-suite", "test_accuracy", 100, problem=problem, method="full feedback"
    )
    return [
        *(len(ends(problem, "tuned", name)), _worst(problem, name=name), _end(problem, name=name)),
        *(_end(problem, "default", name), *gain),
        *(_end(problem, "random schedule", name), mean(published)),
    ]


def _medians(*methods: str) -> list[Value]:
    ends_ = [list(demo(method).values()) for method in methods]
    return [value for values in ends_ for value in (median(values), min(values))]


def _demo() -> list[Value]:
    gap = less(demo("as published"), demo("full feedback"))
    share = 100 * fmean(column("demo", "queries", method="as published")) / 200
    return [
        *(5, *_medians("fixed 0.5", "random schedule", "full feedback", "coin", "as published")),
        *(share, gap.value, gap.low, gap.high),
    ]


def _demo_means() -> list[Value]:
    off, full, published, good = (
        mean(demo(m)) for m in ("all off", "full feedback", "as published", "good fixed")
    )
    behind = [good.value - tuned.value for tuned in (full, published)]
    return [off, full, published, min(behind), max(behind), good]


def _gains_and_good() -> list[Value]:
    thirty, hundred = _thirty(), _gain("digits_optimization", "online-suite-hundred")
    return [
        *(*_gains(), 100, *_turned(hundred), *_turned(thirty)),
    ]


def _turned(gain: Estimate) -> Sequence[float]:
    """Return a loss and its interval from a gain."""
    return [-gain.value, -gain.high, -gain.low]


def _twins() -> list[Value]:
    problems = (
        *(AUGMENTATION, "digits_strengths", "mnist_augmentation", "digits_arms"),
        *("digits_optimization", "fine_tuning", "breast_cancer", "pima"),
    )
    methods = ("default", "tuned", "twins")
    return [_end(p, m, "online-suite-twins") for p in problems for m in methods]


def _heldout() -> list[Value]:
    name = "demo-heldout"
    ours, full = demo("CE-GP-UCB", name), demo("full feedback", name)
    priced = demo("priced", name)

    def two(ends_: dict[int, float]) -> list[float]:
        return [median(ends_.values()), min(ends_.values())]

    return [
        *(200, 207, *two(full), *two(ours), *less(ours, full)),
        *(*two(priced), *less(priced, full), median(demo("all off", name).values())),
    ]


def _coins() -> list[Value]:
    held = "demo-heldout"
    pairs = (("coin", "demo"), ("as published", "demo"), ("Bernoulli", held), ("CE-GP-UCB", held))
    return [median(demo(method, name).values()) for method, name in pairs]


def _never_diverged() -> list[Value]:
    runs = [*ends(AUGMENTATION, "tuned").values()]
    runs += ends(AUGMENTATION, "tuned", "online-suite-fresh").values()
    return [len(runs), min(runs)]


def _verdicts(tuner: str, now: int) -> tuple[int, int, int]:
    """Return how many answers were right, how many there were, and how many could not be told."""
    right = [is_right(r) for r in rows("online-suite-verdicts", tuner=tuner, round=now)]
    untold = right.count(None)
    return right.count(True), len(right) - untold, untold


def _late(tuner: str) -> list[Value]:
    late, after = _verdicts(tuner, 180), _verdicts(tuner, 200)
    return [*late[:2], *after[:2], late[2], after[2]]


def _leads() -> list[Value]:
    """Return how many leads of twins are within the range that is said, of how many, and below it."""
    said = [r for r in rows("online-suite-verdicts", tuner="TwinTuner") if r["given_back"]]
    found = [holds(r) for r in said if r["gained"] is not None]
    return [found.count(True), len(found), found.count(None)]


def _late_and_after() -> list[Value]:
    late, after = _verdicts("OnlineTuner", 180), _verdicts("OnlineTuner", 200)
    return [a + b for a, b in zip(late, after, strict=True)]


def _start_and_end() -> list[Value]:
    return [median(demo(method).values()) for method in ("fixed 0.5", "OnlineTuner")]


def _behind_and_ahead() -> list[Value]:
    """Return on how many problems a session is behind by half a point, by how much, and ahead."""
    name = "online-suite-twins"
    problems = list(dict.fromkeys(r["problem"] for r in stored(name)))
    gaps = [_end(p, "twins", name).value - _end(p, "tuned", name).value for p in problems]
    behind = [-gap for gap in gaps if gap < -0.5]
    return [len(behind), len(gaps), min(behind), max(behind), sum(gap > 0 for gap in gaps)]


def _costs() -> list[Value]:
    small = (AUGMENTATION, *GOOD)

    def seconds(method: str) -> list[float]:
        return [fmean(column("online-suite", "seconds", problem=p, method=method)) for p in small]

    queries = fmean(column("online-suite", "queries", problem=AUGMENTATION, method="tuned"))
    plain, tuned = seconds("default"), seconds("tuned")
    return [queries, min(plain), max(plain), min(tuned), max(tuned)]


_EVERY_ROUND = ("digits_augmentation", "digits_strengths", "mnist_augmentation")


def _lost() -> list[Value]:
    """Return how much tuning loses on two problems, and gains on rivals at the same compute."""
    problems = list(dict.fromkeys(r["problem"] for r in stored("online-suite")))
    gaps = [
        median(less(ends(p, "tuned"), ends(p, rival)).value for p in problems)
        for rival in ("population", "halving")
    ]
    hundred = _gain("digits_optimization", "online-suite-hundred")
    pima = less(ends("pima", "population"), ends("pima", "tuned"))
    return [*_turned(_thirty()), *_turned(hundred), *gaps, *pima]


def _quarter() -> list[Value]:
    gaps = [less(ends(p, "tuned"), ends(p, "tuned, every round")).value for p in _EVERY_ROUND]
    return [min(gaps), max(gaps)]


QUOTES = (
    Quote(
        README,
        "Accuracy rises from # % to # % (mean of # seeds, the worst # %) when eight augmentation"
        " probabilities of a digit classifier are tuned from a bad default within one run, with a"
        " query in # % of the rounds. The best of fifty fixed settings reaches # %, a population"
        " of four at the same compute # %",
        _headline,
    ),
    Quote(
        README,
        "# points of accuracy with eight augmentations of digits, # on MNIST, # on CIFAR-10, #"
        " among six policies",
        _gains,
    ),
    Quote(
        README,
        "on five problems the result is between # points lower and # higher",
        _from_good,
    ),
    Quote(
        NUMBERS,
        "a query in # % of the rounds | digits with eight augmentations # on average of # seeds"
        " (worst #), # of # others (#; our aim of # is missed) from a default of #, the best of"
        " fifty fixed settings #, a population of four at the same compute #, halving #; six"
        " policies as arms # from # (best fixed #); CIFAR-10 with the eight augmentations # from #"
        " (best fixed #), population #, halving #; MNIST with them # (worst #) from # (best fixed"
        " #), population #, halving #",
        _suite,
    ),
    Quote(
        NUMBERS,
        "on the five problems whose default is good already about level with it, between # below"
        " and # above",
        _from_good,
    ),
    Quote(
        NUMBERS,
        "# seeds | no run diverged for good: worst #, mean # (default #: #, 95 % # to #; 94.8"
        " before the small steps around the start, which are safer where compute binds; random"
        " schedule #; the published tuner # on ten seeds)",
        _hundred,
    ),
    Quote(
        NUMBERS,
        "on the problem of `make demo`, # seeds, median (worst) test accuracy in % | fixed 0.5 #"
        " (#) · random # (#) · full feedback # (#) · Bernoulli # (#) · CE-GP-UCB # (#) at # % of"
        " the queries (its cap): # points above full feedback, 95 % interval # to #",
        _demo,
    ),
    Quote(
        NUMBERS,
        "(mean # on these seeds; full feedback #, CE-GP-UCB #) and # to # points below a good fixed"
        " choice (#)",
        _demo_means,
    ),
    Quote(
        NUMBERS,
        "(# points with eight augmentations of digits, # on MNIST, # on CIFAR-10, # among six"
        " policies), and about level with a good one: on # seeds with learning rate, momentum,"
        " weight decay and dropout # points below the untouched default (95 % interval # to #),"
        " with four augmentation strengths # below (# to #; 30 seeds)",
        _gains_and_good,
    ),
    Quote(
        NUMBERS,
        "eight bad augmentation probabilities #, #, #; four good strengths #, #, #; MNIST #, #, #;"
        " six policies #, #, #; optimization of digits #, #, #; fine-tuning #, #, #; breast cancer"
        " #, #, #; Pima #, #, #.",
        _twins,
    ),
    Quote(
        NUMBERS,
        "On eight others (# to #, `demo-heldout`) full feedback ended at a median of # (worst #),"
        " CE-GP-UCB at # (worst #), on average # points above (95 % interval # to #), and the"
        " priced query at # (worst #), on average # points above (# to #); all augmentations off"
        " at #.",
        _heldout,
    ),
    Quote(
        NUMBERS,
        "come close to its median on the demo (# for #; held out # for #)",
        _coins,
    ),
    Quote(
        NUMBERS,
        "of # seeds with eight augmentations none ended diverged (worst #)",
        _never_diverged,
    ),
    Quote(
        "docs/guide/populations.md",
        "a population of four at the compute of one run ends at about # % of test accuracy,"
        " `OnlineTuner` at about # %",
        lambda: _ends_of(AUGMENTATION, "population", "tuned"),
    ),
    Quote(
        NUMBERS,
        "late and after the loop # of # answers were right, and in # runs it could not tell",
        _late_and_after,
    ),
    Quote(
        "docs/guide/online.md",
        "After 90 % of the rounds # of # answers were right, after the loop # of #, counting"
        " either answer as right where a run was neither clearly better nor not better; in # and #"
        " runs it could not tell",
        lambda: _late("OnlineTuner"),
    ),
    Quote(
        "docs/guide/twins.md",
        "# of # answers were right after 90 % of the rounds, and # of # after the loop",
        lambda: _late("TwinTuner")[:4],
    ),
    Quote(
        "docs/guide/twins.md",
        "in # of # answers it was within the range, give or take a twentieth, and in # below",
        _leads,
    ),
    Quote(NUMBERS, "accuracy rises from # % to # % within the run (medians", _start_and_end),
    Quote(
        NUMBERS,
        "a session is behind `OnlineTuner` on # of #, by # to # points, and ahead on #",
        _behind_and_ahead,
    ),
    Quote(
        NUMBERS,
        "# queries in 200 rounds, and the decisions: the small networks of digits and tables train"
        " for # to # seconds, and a tuned run takes # to #",
        _costs,
    ),
    Quote(
        BENCHMARKS,
        "tuning ends # points below the default over thirty seeds (# to #), on"
        " `digits_optimization` # over 100 other seeds (# to #), and none of these runs diverged."
        " Against a population and halving at the same compute we win where the default is bad and"
        " are about level elsewhere: the median difference over nine problems is # and # points; a"
        " population is # points better on `pima` (# to #)",
        _lost,
    ),
    Quote(BENCHMARKS, "better by # to # points on `digits_augmentation`,", _quarter),
)
