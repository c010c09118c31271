"""Each of two ranks of a run: ``torch.distributed.run .. shared_program.py <folder> <case>``."""

import json
import os
import sys
import warnings
from pathlib import Path

import torch
import torch.distributed as dist

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, RanksDisagreeError
from botorch_costly.integrations.validation import SharedValidation

STEPS = 600


def loss_of(step, rank):
    return 2 / (1 + step) ** 0.5 + 0.1 * rank


class Clock:
    """Every span takes a second on rank 0, and a millisecond on other ranks."""

    def __init__(self, rank):
        self.now, self.span = 0.0, 1.0 if rank == 0 else 1e-3

    def __call__(self):
        self.now += self.span
        return self.now


def shared_of(rank, **options):
    validation = bc.Validation(0.05, clock=Clock(rank), read_at=[301], **options)
    return SharedValidation(validation, timeout=20)


def play(shared, rank, steps, spike=None):
    """Readings of some steps, each with the mean and the verdicts of the rank."""
    seen = []
    for step in steps:
        bad = spike is not None and step >= spike
        loss = 30.0 if bad else loss_of(step, rank)
        if shared.due(step, train_loss=loss, last=step == STEPS - 1):
            mean = shared.tell(None if step == 301 and rank == 1 else loss, weight=1 + 2 * rank)
            seen.append([step, mean, shared.is_best, shared.should_stop, list(shared.best[:2])])
    return seen


def loop(rank, folder):
    """One run, a resumed run, and ranks that are at different steps."""
    shared, meetings = shared_of(rank), []
    meet = shared.ranks.meet
    shared.ranks.meet = lambda place, *rest: meetings.append(place) or meet(place, *rest)
    seen = play(shared, rank, range(STEPS // 2))
    state = folder / "state.pt"
    if rank == 0:
        torch.save(shared.state_dict(), state)
    dist.barrier()
    seen += play(shared, rank, range(STEPS // 2, STEPS))
    resumed = shared_of(rank)
    resumed.load_state_dict(torch.load(state, weights_only=True))
    again = play(resumed, rank, range(STEPS // 2, STEPS))
    refused = ""
    try:
        shared_of(rank, examples=100)
    except InvalidArgumentError as error:
        refused = str(error)
    other = shared_of(rank)
    try:
        other.due(3 + rank)
    except RanksDisagreeError as error:
        return {
            "seen": seen,
            "meetings": meetings.count("validation"),
            "again": again,
            "spiked": [step for step, *_ in play(shared_of(rank), rank, range(500), spike=450)],
            "error": str(error),
            "refused": refused,
            "readings": shared.validation.readings,
        }


def lightning(rank, folder):
    """A trainer with two ranks, a spike on both, and the guard."""
    from tests.integrations.validation.test_lightning import (
        Run,
        Spike,
        ValidationCallback,
        readings,
        trainer_of,
        validation,
        weights,
    )

    callback, module = ValidationCallback(validation(), "val_loss", guard=True, timeout=30), Run()
    trainer = trainer_of(callback, Spike(15, -20.0), devices=2, strategy="ddp", max_epochs=8)
    trainer.fit(module)
    return {
        "weights": weights(module).tolist(),
        "losses": module.losses[1:],
        "read": readings(callback.validation),
        "restores": callback.run.restores,
        "best": list(callback.run.connect().best[:2]),
    }


def main():
    warnings.filterwarnings("ignore")
    folder, case = Path(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    rank = int(os.environ["RANK"])
    if case == "loop":
        dist.init_process_group("gloo")
    result = loop(rank, folder) if case == "loop" else lightning(rank, folder)
    (folder / f"{rank}.json").write_text(json.dumps(result))
    if case == "loop":
        dist.destroy_process_group()
    os._exit(0)


if __name__ == "__main__":
    main()
