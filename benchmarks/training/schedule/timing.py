"""Milliseconds of a self-tuning step beside the plain one: ``python -m benchmarks stn-time``.

A plain step trains the same network without a response to hyperparameters: the same pictures are altered
and the same units dropped. Steps are timed by turns, with the update of the weights.
"""

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from benchmarks.harness.clock import by_turns
from benchmarks.harness.command_line import parser_for
from benchmarks.harness.record import Row, write_results
from benchmarks.training import stn
from benchmarks.training.schedule.recipes import CPU, PUBLISHED, Recipe
from botorch_costly.device import check_device

NAME = "stn-time"
LARGEST = 1.6  # a self-tuning training step by a plain one
# Of VGG16 fewer pictures at once: a CPU has no advantage of more.
RECIPES = {"small": CPU, "vgg16": replace(PUBLISHED, batch=16, device="cpu", precision="fp32")}


def steps_of(recipe: Recipe) -> dict[str, Callable[[], object]]:
    """Return a plain step, a self-tuning one, a tuning step, and a validation of a batch."""
    device = check_device(recipe.device)
    generator = torch.Generator().manual_seed(0)
    draws = torch.Generator(device=device).manual_seed(0)
    found = stn.Hyperparameters(recipe.hyperparameters, recipe.scale).to(device)
    pictures = torch.rand(recipe.batch, 3, 32, 32, generator=generator).to(device)
    targets = torch.randint(10, (recipe.batch,), generator=generator).to(device)

    def responding_to(hyperparameters: int) -> stn.SelfTuning:
        made = stn.SelfTuningNetwork(
            recipe.plan, hyperparameters=hyperparameters, generator=generator
        )
        return stn.SelfTuning(made.to(device), found, lambda pixels: (pixels - 0.5) / 0.25)

    def training(network: stn.SelfTuning) -> Callable[[], object]:
        optimizer = torch.optim.SGD(network.network.parameters(), 1e-3, recipe.momentum)

        def step() -> None:
            optimizer.zero_grad()
            stn.training_loss(network, pictures, targets, draws)[0].backward()
            optimizer.step()

        return step

    tuned = responding_to(len(found.names))
    optimizer = torch.optim.Adam(found.parameters(), 1e-3)

    def tuning() -> None:
        loss = stn.tuning_loss(tuned, pictures, targets, draws)
        stn.hypergradient(stn.tuning_objective(loss, found, recipe.tau), found)
        optimizer.step()

    def validation() -> None:
        stn.unperturbed_logits(tuned, pictures)

    plain, responding = training(responding_to(0)), training(tuned)
    return {"plain": plain, "self-tuning": responding, "tuning": tuning, "validation": validation}


def rows(options: argparse.Namespace) -> Iterator[Row]:
    """Yield a row for each network."""
    for name in options.networks:
        recipe = replace(RECIPES[name], device=options.device)
        spent: dict[str, Any] = by_turns(steps_of(recipe), options.repeats)
        yield {"network": name, "batch": recipe.batch, **spent}


def text(rows: Sequence[Row]) -> str:
    """Return the milliseconds of each step, and the self-tuning step by the plain one."""
    steps = ("plain", "self-tuning", "tuning", "validation")
    lines = [f"{'ms of a batch':<14}{'batch':>6}" + "".join(f"{step:>13}" for step in steps)]
    for row in rows:
        ratio = row["self-tuning"] / row["plain"]
        verdict = "holds" if ratio <= LARGEST else "DOES NOT HOLD"
        numbers = "".join(f"{row[step]:>13.1f}" for step in steps)
        lines.append(f"{row['network']:<14}{row['batch']:>6}{numbers}")
        lines.append(f"  self-tuning by plain: {ratio:.2f}; at most {LARGEST} {verdict}")
    return "\n".join(lines)


def main(arguments: list[str]) -> None:
    """Time the steps, store the rows and print them."""
    parser = parser_for(NAME, "milliseconds of a step of a self-tuning network, and of a plain one")
    parser.add_argument("--networks", nargs="+", choices=RECIPES, default=list(RECIPES))
    parser.add_argument("--device", default="cpu", help="where to compute")
    parser.add_argument("--repeats", type=int, default=20, help="of each step, by turns")
    options = parser.parse_args(arguments)
    torch.set_num_threads(1)
    print(text(write_results(NAME, rows(options), [0], options.device, options.results)))
