"""Quotes on runs that have no compute to waste."""

import math
from collections.abc import Iterator, Sequence
from functools import cache
from statistics import fmean
from typing import NamedTuple

from benchmarks.harness.record import grouped
from benchmarks.harness.statistics import Estimate
from benchmarks.quotes.quote import Quote, Value
from benchmarks.quotes.rows import less, mean, rows, stored
from benchmarks.suite.compute_bound.problems import PROBLEMS

README, NUMBERS, ONLINE = "README.md", "docs/numbers.md", "docs/guide/online.md"

# What a page calls a program, with what the large table adds.
_PROGRAMS = {
    "graph network": ("graph_nodes", " (its dropout is switched off)"),
    "small GPT": ("small_gpt", " (its warm-up is waited for, its dropout switched off)"),
    "ratings": ("ratings", ""),
    "transformer": ("transformer_text", ""),
    "diffusion": ("diffusion", ""),
    "tones": ("tones", ""),
    "recurrent network": ("recurrent_text", ""),
    "variational autoencoder": ("vae", ""),
    "super-resolution": ("super_resolution", ""),
    "MNIST, one pass": ("mnist_one_pass", ""),
    "character MLP": ("character_mlp", ""),
    "denoising": ("denoising", ""),
    "fine-tuning on pictures": ("fine_tuning_pictures", ""),
    "CIFAR-10, one pass": ("cifar_one_pass", ""),
    "fine-tuning a transformer": ("fine_tuning_text", ""),
    "word model": ("word_language_model", " (SGD at a rate of 20)"),
}
_RIVALS = ("greedy", "adalrs", "finder, cosine", "narrow, then wide")
_BAD = ("slow", "fast", "strong")
_FEW = 3  # seeds: fewer are in brackets


@cache
def _in_nats(program: str) -> bool:
    return PROBLEMS[program]().work.in_nats


@cache
def _levels(
    program: str, method: str, start: str = "sensible", scale: int = 1, *, logs: bool = False
) -> dict[int, float]:
    """Return losses by seed: their logarithms where they are squares, or of all programs."""
    where = {"problem": program, "method": method, "start": start, "scale": scale}
    mine = [r for r in stored("short") if all(r[key] == value for key, value in where.items())]
    level = math.log if logs or not _in_nats(program) else float
    return {r["seed"]: level(r["loss"]) for r in mine if r["loss"] is not None}


def _above(
    program: str,
    method: str,
    start: str = "sensible",
    rival: str = "wsd",
    *,
    scale: int = 1,
    logs: bool = False,
) -> Estimate:
    """Return by how much a method ends above another one from the sensible start, on equal seeds."""
    ours = _levels(program, method, start, scale, logs=logs)
    return less(ours, _levels(program, rival, scale=scale, logs=logs))


def _sessions(*, logs: bool = False) -> list[Estimate]:
    return [_above(program, "session", logs=logs) for program, _ in _PROGRAMS.values()]


def _headline() -> list[Value]:
    """Return by how many per cent the loss is lower in the mean, the most it is lower, and higher."""
    ends = [end.value for end in _sessions(logs=True)]
    value, low, high = (100 * (1 - math.exp(x)) for x in mean(ends))
    return [
        Estimate(value, high, low),
        100 * (1 - math.exp(min(ends))),
        100 * (math.exp(max(ends)) - 1),
    ]


def _logarithms() -> list[Value]:
    values = [end.value for end in _sessions(logs=True)]
    return [min(values), max(values), mean(values)]


def _sessions_counted() -> list[Value]:
    ends = [end.value for end in _sessions(logs=True)]
    return [sum(x < 0 for x in ends), len(ends), sum(x > 0 for x in ends), _headline()[2]]


def _of_the_table() -> list[Value]:
    ends = [end.value for end in _sessions()]
    return [fmean(ends), sum(round(x, 3) <= 0.008 for x in ends), len(ends), 0.008]


def _back(program: str) -> float:
    where = {"problem": program, "method": "session", "start": "sensible", "scale": 1}
    return fmean(r["given_back"] for r in rows("short", **where))


def _program_lines() -> Iterator[Quote]:
    for title, (program, more) in _PROGRAMS.items():
        cells = [_levels(program, rival) for rival in _RIVALS]
        marks = ["" if not cell else "#" if len(cell) >= _FEW else "(#)" for cell in cells]

        def values(program: str = program) -> list[Value]:
            rivals = [_above(program, rival) for rival in _RIVALS if _levels(program, rival)]
            return [_above(program, "session"), _back(program), *rivals]

        yield Quote(NUMBERS, f"| {title}{more} | # | # | {' | '.join(marks)} |", values)


def _bad_lines() -> Iterator[Quote]:
    for title, (program, _) in _PROGRAMS.items():

        def values(program: str = program) -> list[Value]:
            return [
                _above(program, method, start) for start in _BAD for method in ("session", "wsd")
            ]

        yield Quote(NUMBERS, f"| {title} | # (#) | # (#) | # (#) |", values)


class _Return(NamedTuple):
    """A run from a bad start: how much of the way it went back, and how far above the default it is."""

    program: str
    start: str
    share: float
    above: float
    bad: float  # how far above the default the start itself ends


@cache
def _returns() -> list[_Return]:
    returns = []
    for program, _ in _PROGRAMS.values():
        good = _levels(program, "wsd")
        for start in _BAD:
            own, low = _levels(program, "session", start), _levels(program, "wsd", start)
            for seed in sorted(own):
                bad, above = low[seed] - good[seed], own[seed] - good[seed]
                share = 1 - above / bad if bad > 0 else math.nan
                returns.append(_Return(program, start, share, above, bad))
    return returns


def _is_back(run: _Return, share: float) -> bool:
    return run.share >= share or (run.bad <= 0.02 and run.above <= 0.02)


def _returned() -> list[Value]:
    all_ = _returns()
    behind = [run for run in all_ if not _is_back(run, 0.85)]
    of = {
        program: sum(run.program == program for run in behind) for program, _ in _PROGRAMS.values()
    }
    named = [
        of[p] for p in ("word_language_model", "fine_tuning_text", "small_gpt", "character_mlp")
    ]
    return [
        *(sum(_is_back(run, 0.95) for run in all_), len(all_), 95, 0.02),
        *(85, len(behind), named[0], 9, named[1], named[2]),
        *(len(behind) - sum(named), sum(run.above > 0.02 for run in all_), len(all_), 0.02),
    ]


def _ahead(method: str) -> list[Value]:
    """Return on how many programs a session ends below a method on equal seeds, and of how many."""
    ends = [_below(program, method) for program, _ in _PROGRAMS.values()]
    ran = [end for end in ends if end is not None]
    return [sum(end < 0 for end in ran), len(ran)]


def _below(program: str, method: str) -> float | None:
    theirs = _levels(program, method)
    return less(_levels(program, "session"), theirs).value if theirs else None


def _rivals() -> list[Value]:
    methods = (*_RIVALS[:3], _RIVALS[3])
    counts = [value for method in methods for value in _ahead(method)]
    whole = [
        _ahead(m)
        for m in ("best of four, wsd", "population, full length", "bandit population, full length")
    ]
    return [*counts, _ahead("cosine")[0], *(value for pair in whole for value in pair)]


def _online(*programs: str, rival: str) -> list[Value]:
    return [_above(program, "online tuner", rival=rival) for program in programs]


def _online_line(left: str, right: str, first: Sequence[str], second: Sequence[str]) -> Quote:
    """Return a line of the table of ``OnlineTuner``, with programs against both defaults."""
    cells = [", ".join("#" for _ in programs) for programs in (first, second)]
    sentence = f"| {left} | {cells[0]} | {right} | {cells[1]} |"
    return Quote(
        NUMBERS,
        sentence,
        lambda: [*_online(*first, rival="constant"), *_online(*second, rival="wsd")],
    )


def _longer() -> list[Value]:
    """Return how far sessions of 3 and 10 times the rounds end above the default, and % given back."""
    pairs = (("character_mlp", 3), ("character_mlp", 10), ("ratings", 3), ("ratings", 10))
    ends = [_above(program, "session", scale=scale).value for program, scale in pairs]
    lower = [-_above(p, "session", scale=3).value for p in ("diffusion", "transformer_text")]
    others = (("diffusion", 3), ("transformer_text", 3), ("transformer_text", 10))
    back = [_share_back(program, scale) for program, scale in (*pairs, *others)]
    return [*ends, *lower, min(back), max(back)]


def _share_back(program: str, scale: int = 1) -> float:
    where = {"problem": program, "method": "session", "start": "sensible", "scale": scale}
    return 100 * fmean(r["given_back"] / r["horizon"] for r in rows("short", **where))


def _all_shares_back() -> list[Value]:
    shares = [_share_back(program) for program, _ in _PROGRAMS.values()]
    return [min(shares), max(shares)]


def _lengths() -> list[Value]:
    """Return the most that short runs, and the least and most that longer ones, end above the default."""
    ends = {}
    for (program, steps), mine in grouped(stored("short-lengths"), "problem", "steps").items():
        logs = {
            method: {r["seed"]: math.log(r["loss"]) for r in mine if r["method"] == method}
            for method in ("session", "wsd")
        }
        ends[program, steps] = less(logs["session"], logs["wsd"]).value
    short = [end for (_, steps), end in ends.items() if steps <= 400]
    longer = [end for (_, steps), end in ends.items() if steps >= 600]
    return [100, 400, max(short), 600, 2000, -min(longer), max(longer)]


QUOTES = (
    Quote(
        README,
        "The loss at the end falls by # % in the mean over sixteen programs that compute binds"
        " (ten seeds; from # % lower to # % higher)",
        _headline,
    ),
    Quote(README, "# of # programs end lower, # up to # % higher", _sessions_counted),
    Quote(
        README,
        "it takes small steps, and still costs # nats on CIFAR-10",
        lambda: _online("cifar_one_pass", rival="constant"),
    ),
    Quote(
        NUMBERS,
        "logarithms, ten seeds | # to #, mean #: by program",
        _logarithms,
    ),
    Quote(NUMBERS, "The mean is #. # of # are at most # above the default", _of_the_table),
    *_program_lines(),
    *_bad_lines(),
    Quote(
        NUMBERS,
        "# of # runs go # % of the way back or more, or stay within # of the default where the bad"
        " start is none; the aim was all of them. Below # % are #: # of # on the word model, # in"
        " fine-tuning a transformer, # each of the small GPT and of the character MLP from a rate"
        " that is hardly bad, and # others. # of # end more than # above the default",
        _returned,
    ),
    Quote(
        NUMBERS,
        "On equal seeds a session ends below GreedyLR on # of # programs, below AdaLRS on # of #,"
        " below Lightning's finder with a cosine on # of #, below the rate of a narrow network on"
        " # of #, and below the plain cosine on all #. Methods with four times the compute: below"
        " the best of four whole runs on # of #, below PBT on # of #, PB2 on # of #",
        _rivals,
    ),
    _online_line(
        "fine-tuning a transformer", "graph network", ["fine_tuning_text"], ["graph_nodes"]
    ),
    _online_line("recurrent network", "small GPT", ["recurrent_text"], ["small_gpt"]),
    _online_line("MNIST, one pass", "diffusion", ["mnist_one_pass"], ["diffusion"]),
    _online_line(
        "transformer, denoising",
        "variational autoencoder",
        ["transformer_text", "denoising"],
        ["vae"],
    ),
    _online_line("character MLP", "super-resolution", ["character_mlp"], ["super_resolution"]),
    _online_line(
        "tones, fine-tuning on pictures",
        "word model",
        ["tones", "fine_tuning_pictures"],
        ["word_language_model"],
    ),
    Quote(
        NUMBERS,
        "| CIFAR-10, one pass | # | | |",
        lambda: _online("cifar_one_pass", rival="constant"),
    ),
    Quote(NUMBERS, "| ratings | # | | |", lambda: _online("ratings", rival="constant")),
    Quote(
        NUMBERS,
        "the character MLP ends # and # above the default, ratings # and #, diffusion # and the"
        " transformer # below at 3 times; # to # % of the rounds are given back",
        _longer,
    ),
    Quote(
        ONLINE,
        "# nats on a transformer, # on a character perceptron, # on a network that names tones, #"
        " on one pass over CIFAR-10 and # in the logarithm of the squared error on ratings (two"
        " seeds each)",
        lambda: _online(
            "transformer_text",
            "character_mlp",
            "tones",
            "cifar_one_pass",
            "ratings",
            rival="constant",
        ),
    ),
    Quote(
        NUMBERS,
        "A run of # to # steps is trained as without a tuner: within # of it, or lower, on three"
        " programs; from # to # steps a session ends between # below and # above",
        _lengths,
    ),
    Quote(
        "docs/guide/twins.md",
        "Rounds that are given back are # to # % of the compute",
        _all_shares_back,
    ),
)
