"""Quotes on populations, beside PB2."""

from statistics import fmean

from benchmarks.harness.statistics import mean_error
from benchmarks.quotes.quote import Quote, Value
from benchmarks.quotes.rows import by_seed, column, less, mean

NUMBERS, GUIDE = "docs/numbers.md", "docs/guide/populations.md"


def _ends(problem: str, method: str) -> dict[int, float]:
    """Return test accuracies in per cent by seed."""
    return by_seed("populations", "test_accuracy", 100, problem=problem, method=method)


def _populations() -> list[Value]:
    digits, tuned = "digits_augmentation", "fine_tuning"
    gap, small = (less(_ends(p, "ours"), _ends(p, "PB2")) for p in (digits, tuned))
    return [
        *(mean(_ends(digits, m)) for m in ("ours", "PB2")),
        *(gap, _error(_ends(digits, "ours"), _ends(digits, "PB2"))),
        *(min(_ends(digits, m).values()) for m in ("ours", "PB2")),
        *(mean(_ends(digits, m)) for m in ("random", "default")),
        *(mean(_ends(tuned, m)) for m in ("ours", "PB2")),
        *(small, _error(_ends(tuned, "ours"), _ends(tuned, "PB2"))),
        *(mean(_ends(tuned, m)) for m in ("random", "default")),
        *_deciding(),
    ]


def _deciding() -> list[Value]:
    def seconds(problem: str, method: str) -> float:
        return fmean(column("populations", "deciding", problem=problem, method=method))

    digits, tuned = "digits_augmentation", "fine_tuning"
    return [seconds(digits, "ours"), seconds(digits, "PB2"), seconds(tuned, "PB2")]


def _error(ours: dict[int, float], theirs: dict[int, float]) -> float:
    """Return the standard error of a paired difference."""
    return mean_error([ours[s] - theirs[s] for s in sorted(set(ours) & set(theirs))])[1]


def _members() -> list[Value]:
    digits = "digits_augmentation"
    gap = less(_ends(digits, "ours"), _ends(digits, "PB2"))
    methods = ("ours", "PB2", "random", "default")
    error = _error(_ends(digits, "ours"), _ends(digits, "PB2"))
    return [*(mean(_ends(digits, method)) for method in methods), gap, error]


QUOTES = (
    Quote(
        NUMBERS,
        "digits with eight augmentations # against # (difference #, standard error #; worst seed"
        " #, #), random configurations #, the bad default #; fine-tuning # against # (#, #),"
        " random #, default #: not clearly ahead of PB2, and level with chance in fine-tuning;"
        " deciding takes # s a run, PB2 # and #",
        _populations,
    ),
    Quote(
        GUIDE,
        "our best member ends at about # % of test accuracy, PB2's at # %, random configurations"
        " at # %, the bad setting at # %. The difference from PB2, about # points with a standard"
        " error of #",
        _members,
    ),
    Quote(
        GUIDE,
        "about # seconds for all decisions of a run, PB2 # and #.",
        _deciding,
    ),
)
