"""Quotes of the first tables of the papers' pages."""

from functools import partial
from statistics import fmean, median

from benchmarks.quotes.contrastive import queries, top
from benchmarks.quotes.priced import on_arms
from benchmarks.quotes.quote import Quote, Value
from benchmarks.quotes.rows import less, row, rows, stored
from benchmarks.quotes.searches import (
    after,
    known_at,
    live_machines,
    machines,
    machines_of,
    networks,
    smallest,
    sums,
)
from benchmarks.quotes.self_tuning import COINS, losses
from benchmarks.quotes.speed import claims
from benchmarks.tables.paper import FORGETTING_RATES, TABLE_A2
from benchmarks.tables.table_a2 import MERGED
from benchmarks.tables.table_a2_report import agreement, table_of

CE_GP_UCB, FABOLAS = "docs/papers/ce-gp-ucb.md", "docs/papers/fabolas.md"
RM_GP_UCB = "docs/papers/rm-gp-ucb.md"
_KAPPAS = (0.9, 0.8, 0.7)
_MIDDLE = ("confidence 0.7", "confidence 0.8", "5 to 1", "train only", "train and tune")


def _of_table_a2(policy: str, *names: str) -> list[Value]:
    """Return the columns of a policy by the forgetting rates."""
    return [
        row("table-a2", policy=policy, forgetting=rate)[name]
        for name in names
        for rate in FORGETTING_RATES
    ]


def _spread(policy: str, rate: float) -> list[Value]:
    """Return the mean regret of a policy at a forgetting rate, and its standard deviation."""
    found = row("table-a2", policy=policy, forgetting=rate)
    return [found["regret"], found["regret_std"]]


def _cell_by_cell(end: str = "") -> list[Value]:
    """Return how many regrets, queries and both agree with the printed cells of the confidence rules."""
    ours = table_of(stored("table-a2"))
    agrees = [
        agreement(ours[name + end][rate], cell)
        for name, cells in TABLE_A2.items()
        if name.startswith("CE-GP-UCB @")
        for rate, cell in cells.items()
    ]
    regrets, queries = (sum(some) for some in zip(*agrees, strict=True))
    return [regrets, queries, sum(map(all, agrees))]


def _confidence() -> list[Value]:
    curve = claims()["curve"]
    return [
        *_of_table_a2("CE-GP-UCB @0.90", "regret", "queries"),
        *(curve[1], curve[0], 0.03, *_cell_by_cell(), *_cell_by_cell(MERGED)),
    ]


def _synthetic() -> list[Value]:
    return sums("two alike, two not", "RM-GP-UCB", "RM-GP-UCB, even weights", "GP-UCB")


def _rates() -> list[Value]:
    names = ("RM-GP-UCB, eta 0.01", "RM-GP-UCB, eta 0.1", "RM-GP-UCB", "RM-GP-UCB, eta 10")
    return sums("two alike, two not", *names)


def _milliseconds() -> list[Value]:
    return [
        1000 * median(row("meta-speed", size=size, rule=rule)["clock"])
        for size in ("3x50", "1000x100")
        for rule in ("RM-GP-UCB", "RM-GP-TS")
    ]


def _family(family: str, *methods: str) -> list[Value]:
    return [after(method, 10, family) for method in methods]


def _pictures() -> list[Value]:
    """Return what is said of the pictures: regrets after 5 and after 10."""
    plain = [after(method, at, "images") for at in (5, 10) for method in ("RM-GP-UCB", "GP-UCB")]
    return [*plain, *_family("images", "RM-GP-TS", "RGPE")]


def _largest(family: str) -> list[Value]:
    """Return regrets by the largest gap and by the mean, and the interval of their difference."""
    methods = ("RM-GP-UCB, largest gap", "RM-GP-UCB")
    runs = [rows("meta", family=family, twist="", method=method) for method in methods]
    ours, theirs = ({one["seed"]: fmean(one["at 10"]) for one in some} for some in runs)
    return [*_family(family, *methods), *list(less(ours, theirs))[1:]]


def _gaps() -> list[Value]:
    families = ("images", "diabetes", "diabetes likelihood")
    synthetic = sums("two alike, two not", "RM-GP-UCB, largest gap", "RM-GP-UCB")
    return [*(value for family in families for value in _largest(family)), *synthetic]


_FOUR = ("RM-GP-UCB", "RM-GP-TS", "RGPE", "GP-UCB")
_FIVE = ("RM-GP-UCB", "RM-GP-TS", "RGPE", "TAF", "GP-UCB")

QUOTES = (
    Quote(
        CE_GP_UCB,
        "| .094, .126, .184, .305, .392 | #, #, #, #, # |",
        lambda: _of_table_a2("TV-GP-UCB", "regret"),
    ),
    Quote(
        CE_GP_UCB,
        "| #, #, #, #, # after #, #, #, #, #. Of # cells # are at most # above the printed curve;"
        " within two standard errors of the printed number are # of the regrets, # of the queries,"
        " # of both, and #, #, # if rivals within .2",
        _confidence,
    ),
    Quote(
        CE_GP_UCB,
        "within .04 in # of # cells with a belief that does not age, in # of # with one that ages"
        " |",
        lambda: [*claims()["printed"], *claims()["ageing"]],
    ),
    Quote(
        CE_GP_UCB,
        "| #, #, #, #, # with periods of our choice",
        lambda: _of_table_a2("R-GP-UCB", "regret"),
    ),
    Quote(
        CE_GP_UCB,
        "every 25 rounds # ± #, never anew # ± # |",
        lambda: [*_spread("R-GP-UCB N=25", 0.003), *_spread("R-GP-UCB", 0.003)],
    ),
    Quote(
        CE_GP_UCB,
        "printed means (#, #, #, #, #)",
        lambda: _of_table_a2("R-GP-UCB N=20", "regret"),
    ),
    Quote(
        CE_GP_UCB,
        "regret # ± # instead of # ± #; at ε = .003 # instead of #;",
        lambda: [
            *_spread("CE-GP-UCB literal @0.90", 0.05),
            *_spread("CE-GP-UCB @0.90", 0.05),
            _spread("CE-GP-UCB literal @0.90", 0.003)[0],
            _spread("CE-GP-UCB @0.90", 0.003)[0],
        ],
    ),
    Quote(
        CE_GP_UCB,
        "| # / #, # / #, # / #: the curves are not printed",
        lambda: list(on_arms("CE-GP-UCB")),
    ),
    Quote(
        CE_GP_UCB,
        "| #, #, # after #, with a known noise; #, #, # if noise and scales are fitted",
        lambda: [
            *on_arms("GP-UCB")[::2],
            on_arms("GP-UCB")[1],
            *on_arms("GP-UCB, fitted")[::2],
        ],
    ),
    Quote(
        CE_GP_UCB,
        "| #, #, #: κ = .7 ends behind never tuning (#);",
        lambda: losses("confidence 0.7", "confidence 0.8", "static grid", "train only"),
    ),
    Quote(
        CE_GP_UCB,
        "a middle-sized network #, #, #, never tuning #, always #; the ten coins under bandits # to"
        " #, each",
        lambda: [
            *(row("stn", recipe="middle", method=method)["validation_loss"] for method in _MIDDLE),
            *(pick(losses(*COINS)) for pick in (min, max)),
        ],
    ),
    Quote(
        CE_GP_UCB,
        "With the paper's, κ = .9, .8, .7 #, #, # at #, #, # of # queries, coins that query as often #,"
        " #, #, full feedback #",
        lambda: [
            *(top(f"confidence {kappa}, accuracy")[0] for kappa in _KAPPAS),
            *(queries(f"confidence {kappa}, accuracy") for kappa in _KAPPAS),
            queries("full, accuracy"),
            *(top(f"coin for {kappa}, accuracy")[0] for kappa in _KAPPAS),
            top("full, accuracy")[0],
        ],
    ),
    Quote(
        CE_GP_UCB,
        "| #, #, # (a coin as often as κ = .8), #, #, #, #; with a reward of our own",
        lambda: [
            top(m)[0]
            for m in (
                "fixed 0.5",
                "full feedback",
                "coin",
                "confidence 0.9",
                "confidence 0.8",
                "confidence 0.7",
                "expert",
            )
        ],
    ),
    Quote(
        FABOLAS,
        "regret in error #, #, # at the cost of .25, 1 and 3 whole trainings; LogEI on all of the"
        " data #, #, #. With our costs",
        machines,
    ),
    Quote(
        FABOLAS,
        "Fabolas as published #, #, #, beside each",
        partial(machines_of, "Fabolas as published"),
    ),
    Quote(
        FABOLAS,
        "| entropy search #, #, #; MTBO on a 16th #, #, # |",
        lambda: [*machines_of("entropy search at the target"), *machines_of("MTBO, 1/16")],
    ),
    Quote(
        FABOLAS,
        "| total variation of # points # by expectation propagation, # by draws |",
        lambda: [smallest()[0], smallest()[2], smallest()[1]],
    ),
    Quote(
        FABOLAS,
        "median regret after 20 evaluations of samples # with points by draws, LogEI #",
        lambda: [known_at("GP sample", m, 20) for m in ("ES, optima of draws", "LogEI")],
    ),
    Quote(
        FABOLAS,
        "| an error of #, #, # after #, #, # s, LogEI on all pictures #, #, # |",
        lambda: [*live_machines()[3:6], *live_machines()[:3], *live_machines()[6:]],
    ),
    Quote(
        FABOLAS,
        "an error of #, #, #, # after 2, 4, 8, 16 s of training the convolutional network, LogEI on all "
        "pictures #, #, #, #; the residual network, too small to learn in this time, # to #, "
        "LogEI # to # |",
        networks,
    ),
    Quote(RM_GP_UCB, "sum of regrets #, even weights #, GP-UCB #;", _synthetic),
    Quote(RM_GP_UCB, "| #, #, #, # for η = .01, .1, 1, 10", _rates),
    Quote(
        RM_GP_UCB,
        "| #, GP-UCB #, where all methods begin with the same three random evaluations, as in the paper;"
        " # where RM-GP-UCB has no random ones",
        lambda: [
            *sums("none alike, three random first", "RM-GP-UCB", "GP-UCB"),
            *sums("none alike", "RM-GP-UCB"),
        ],
    ),
    Quote(
        RM_GP_UCB,
        "| #, GP-UCB #: better",
        lambda: sums("5, 35, 5, 35 observations", "RM-GP-UCB", "GP-UCB"),
    ),
    Quote(
        RM_GP_UCB,
        "regret after 5 of RM-GP-UCB #, GP-UCB #, after 10 # and #: ahead early, not later;"
        " RM-GP-TS #, RGPE # after 10 |",
        _pictures,
    ),
    Quote(
        RM_GP_UCB,
        "a picture: RM-GP-UCB is best | #, RM-GP-TS #, RGPE #, GP-UCB #: it is best |",
        lambda: _family("omniglot", *_FOUR),
    ),
    Quote(
        RM_GP_UCB,
        "| #, RM-GP-TS #, RGPE #, GP-UCB #: RM-GP-UCB is worst; by likelihood #, #, #, # |",
        lambda: [*_family("diabetes", *_FOUR), *_family("diabetes likelihood", *_FOUR)],
    ),
    Quote(
        RM_GP_UCB,
        "| # ms, RM-GP-TS #; after 1,000 tasks of 100 # and # ms",
        _milliseconds,
    ),
    Quote(
        RM_GP_UCB,
        "| after 10 #, RM-GP-TS #, RGPE #, TAF #, GP-UCB # |",
        lambda: _family("svm", *_FIVE),
    ),
    Quote(
        RM_GP_UCB,
        "| #, RM-GP-TS #, RGPE #, TAF #, GP-UCB #: RGPE is best",
        lambda: _family("cart-pole", *_FIVE),
    ),
    Quote(
        RM_GP_UCB,
        "images # and # (difference # to #), diabetes # and # (# to #), its likelihood # and #"
        " (# to #); on Figure 1a's problem sums of # and #",
        _gaps,
    ),
)
