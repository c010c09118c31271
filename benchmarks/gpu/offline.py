"""Seconds of an ask of the offline optimizers on a device: ``python -m benchmarks offline``.

``CurveOptimizer``, ``SubsetOptimizer`` and ``TransferOptimizer`` play a space of three parameters on the
CPU. Their states are loaded before each of the last asks, on the CPU and on the device: timed is the ask
after it, which begins cold on both. How often both ask for the same, to six digits, is reported. A search
looks less often on a device at what is left of it, so a tie may go the other way.
"""

import argparse
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from statistics import median
from typing import Any

import torch

import botorch_costly as bc
from benchmarks.harness.clock import timed
from benchmarks.harness.command_line import parser_for
from benchmarks.harness.record import Row, told, write_results
from botorch_costly.plain import as_number

NAME = "offline"
_LONGEST = 20  # iterations of a training
_LR, _DECAY, _DEPTH = bc.Real(1e-5, 1.0, log=True), bc.Real(0.0, 1.0), bc.Integer(1, 8)
SPACE = bc.SearchSpace([("lr", _LR), ("decay", _DECAY), ("depth", _DEPTH)])


def value(config: Mapping[str, Any]) -> float:
    """Return how good a configuration is."""
    lr, decay, depth = (as_number(name, config[name]) for name in SPACE.names)
    return -((math.log10(lr) + 2) ** 2) - (decay - 0.3) ** 2 - 0.05 * (depth - 5) ** 2


def _studies() -> list[bc.Task]:
    """Return five earlier studies of forty configurations, whose optima differ."""
    studies = []
    for seed in range(5):
        generator = torch.Generator().manual_seed(seed)
        points = [SPACE.decode(x) for x in SPACE.sample(40, generator)]
        values = [value(c) + 0.3 * seed * math.log10(as_number("lr", c["lr"])) for c in points]
        studies.append(bc.Task(points, values))
    return studies


def _tell_curve(optimizer: Any, asked: Any) -> None:
    at = range(asked.since + 1, asked.until + 1)
    optimizer.tell(asked, [value(asked.config) - 1 / k for k in at])


def _tell_part(optimizer: Any, asked: Any) -> None:
    fraction = asked.fidelities["fraction"]
    optimizer.tell(asked, value(asked.config) - 0.1 * (fraction**-0.3 - 1), cost=60 * fraction)


def _tell_value(optimizer: Any, asked: Any) -> None:
    optimizer.tell(asked, value(asked.config))


OPTIMIZERS: dict[str, tuple[Callable[..., Any], Callable[[Any, Any], None]]] = {
    "CurveOptimizer": (lambda **at: bc.CurveOptimizer(SPACE, _LONGEST, **at), _tell_curve),
    "SubsetOptimizer": (lambda **at: bc.SubsetOptimizer(SPACE, **at), _tell_part),
    "TransferOptimizer": (lambda **at: bc.TransferOptimizer(SPACE, _studies(), **at), _tell_value),
}


def measure(name: str, device: str, evaluations: int, asks: int, seed: int) -> Row:
    """Return the median seconds of the last asks on the CPU and on a device."""
    make, tell = OPTIMIZERS[name]
    played = make(seed=seed)
    copies = {"cpu": make(seed=seed), device: make(seed=seed, device=device)}
    times: dict[str, list[float]] = {place: [] for place in copies}
    same = 0
    for number in range(evaluations + asks):
        if number >= evaluations:
            asked = []
            for place, optimizer in copies.items():
                optimizer.load_state_dict(played.state_dict())
                spent, again = timed(optimizer.ask, place)
                times[place].append(1e-3 * spent)
                asked.append(again.config)
            same += _is_near(asked[0], asked[-1])
        tell(played, played.ask())
    return {
        "optimizer": name, "device": device, "evaluations": evaluations, "asks": asks, "seed": seed,
        "seconds": median(times[device]), "cpu_seconds": median(times["cpu"]), "same": same,
    }  # fmt: skip


def _is_near(config: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    one, two = SPACE.encode(config), SPACE.encode(other)
    return bool(torch.allclose(one, two, rtol=0.0, atol=1e-6))


def describe(row: Row) -> str:
    """Return a row in words."""
    return (
        f"{row['optimizer']:<18} after {row['evaluations']} evaluations: {row['seconds']:.3f} s an ask "
        f"on {row['device']}, {row['cpu_seconds']:.3f} s on the CPU; the same asked in {row['same']} of "
        f"{row['asks']}"
    )


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each optimizer and number of evaluations."""
    for evaluations in options.evaluations:
        for name in options.optimizers:
            yield measure(name, options.device, evaluations, options.asks, options.seed)


def main(arguments: Sequence[str]) -> None:
    """Measure, store the rows and print them."""
    parser = parser_for(NAME, "seconds of an ask of the offline optimizers on a device")
    parser.add_argument("--optimizers", nargs="+", choices=OPTIMIZERS, default=list(OPTIMIZERS))
    parser.add_argument("--device", default="cpu", help="where to compute")
    parser.add_argument("--evaluations", nargs="+", type=int, default=[20, 60], help="before it")
    parser.add_argument("--asks", type=int, default=5, help="that are timed")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    found = told(rows(options), describe)
    write_results(NAME, found, [options.seed], options.device, options.results)
