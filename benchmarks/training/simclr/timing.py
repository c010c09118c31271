"""Time of a contrastive step and of its parts: ``python -m benchmarks simclr-time``.

Steps under constant probabilities and steps whose eight probabilities change every time take turns.
With ``--compile`` the views and the network are compiled first, and the graphs that were compiled are
counted before and after the probabilities change: there must be no new one.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from benchmarks.harness.clock import by_turns, median_ms
from benchmarks.harness.command_line import parser_for
from benchmarks.harness.record import Row, rows_of, write_results
from benchmarks.training.simclr.augmentation import augment, draw
from benchmarks.training.simclr.methods import policy_of
from benchmarks.training.simclr.recipes import CPU, PUBLISHED, Recipe, tiny
from benchmarks.training.simclr.run import SPACE, START, ContrastiveProblem, ContrastiveRun

NAME = "simclr-time"
_LARGEST = 1.05  # a step under changing probabilities by one under constant ones
_DECISIONS = 30  # of a tuner that is told a reward each time
# Of ResNet-18 fewer pictures at once: a CPU has no advantage of more.
RECIPES = {
    "small": CPU,
    "resnet18": PUBLISHED,
    "resnet18, 16 pictures": replace(PUBLISHED, batch=16, device="cpu", precision="fp32"),
}


def steps_of(run: ContrastiveRun) -> dict[str, Callable[[], object]]:
    """Return rounds of one step under constant probabilities, and under changing ones."""
    generator = torch.Generator().manual_seed(0)

    def changing() -> None:
        run.train_round(SPACE.decode(SPACE.sample(1, generator)[0]))

    return {"constant": lambda: run.train_round(START), "changing": changing}


def measure(name: str, recipe: Recipe, repeats: int) -> Row:
    """Return the milliseconds of a step, of its views, of a query and of a decision."""
    run = ContrastiveProblem(replace(recipe, steps=1)).setup(0)
    # Once under each, so that whatever is compiled for either has been.
    run.train_round(START)
    before = _graphs()
    spent: dict[str, Any] = by_turns(steps_of(run), repeats)
    pictures = run.pictures(recipe.batch)
    draws = draw(len(pictures), torch.Generator(device=run.device).manual_seed(0))
    probabilities = torch.full((8,), 0.5, device=run.device)
    view, _ = median_ms(lambda: augment(pictures, probabilities, draws), repeats)
    query, _ = median_ms(run.validate, max(repeats // 4, 1))
    return {
        "network": name,
        "batch": recipe.batch,
        "device": str(run.device),
        "compiled": recipe.compiled,
        **spent,
        "views": 2 * view,
        "query": query,
        "decision": _decision(recipe),
        "round_steps": recipe.steps,
        "graphs": _graphs() - before,
    }


def _graphs() -> int:
    """Return how many graphs have been compiled so far."""
    from torch._dynamo.utils import counters

    return counters["stats"]["unique_graphs"]


def _decision(recipe: Recipe) -> float:
    """Return the milliseconds of asking a tuner and telling it, with full feedback."""
    problem = ContrastiveProblem(recipe)
    policy: Any = policy_of("full feedback", problem, 0)
    tuner, generator = policy.policy.tuner, torch.Generator().manual_seed(0)

    def once() -> None:
        decision = tuner.ask()
        tuner.tell(decision, torch.rand((), generator=generator).item())

    return median_ms(once, min(_DECISIONS, problem.horizon - 1))[0]


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each network."""
    for name in options.networks:
        recipe = RECIPES[name]
        if options.smoke:  # with rounds enough for decisions
            recipe = replace(tiny(recipe), steps=recipe.steps, epochs=recipe.steps)
        recipe = replace(recipe, device=options.device or recipe.device, compiled=options.compile)
        yield measure(name, recipe, options.repeats)


def text(rows: Sequence[Row]) -> str:
    """Return the times, throughput, and the shares of views, queries and decisions."""
    lines = [
        f"{'network':<24}{'batch':>6}{'device':>8}{'compiled':>9}{'ms/step':>9}{'changing':>9}{'by':>7}"
        f"{'pictures/s':>11}{'views':>7}{'query':>7}{'tuner':>7}{'new graphs':>11}"
    ]
    for row in rows:
        ratio = row["changing"] / row["constant"]
        whole = row["constant"] * row["round_steps"] + row["query"] + row["decision"]
        shares = (row["views"] * row["round_steps"], row["query"], row["decision"])
        holds = ratio <= _LARGEST and row["graphs"] == 0
        lines.append(
            f"{row['network']:<24}{row['batch']:>6}{row['device']:>8}{row['compiled']!s:>9}"
            f"{row['constant']:>9.1f}{row['changing']:>9.1f}{ratio:>7.2f}"
            f"{1e3 * row['batch'] / row['constant']:>11.0f}"
            + "".join(f"{share / whole:>7.1%}" for share in shares)
            + f"{row['graphs']:>11}  {'holds' if holds else 'DOES NOT HOLD'}"
        )
    lines.append(
        f"changing: at most {_LARGEST} of constant, and no new graph; shares are of a round"
    )
    lines.append("with full feedback: its steps, a query and a decision")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Time the steps, store the rows and print them."""
    parser = parser_for(NAME, "milliseconds of a contrastive step and of its parts")
    parser.add_argument("--networks", nargs="+", choices=RECIPES, default=["small"])
    parser.add_argument("--device", help="where to compute; that of the setting if omitted")
    parser.add_argument("--compile", action="store_true", help="compile views and network first")
    parser.add_argument("--smoke", action="store_true", help="the same code on tiny sizes")
    parser.add_argument("--repeats", type=int, default=20, help="of each step, by turns")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)

    def stays(row: Row) -> bool:
        mine = {"network": set(options.networks), "compiled": {options.compile}}
        return not all(row[key] in values for key, values in mine.items())

    device = options.device or "cpu"
    write_results(NAME, rows(options), [0], device, options.results, keep=stays)
    print(text(rows_of(NAME, options.results)))
