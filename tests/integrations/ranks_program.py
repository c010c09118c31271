"""What each of two ranks runs: ``torch.distributed.run .. ranks_program.py <folder> <case>``."""

import json
import os
import random
import sys
import time
from pathlib import Path

import numpy as np
import torch
import torch.distributed as dist

import botorch_costly as bc
from botorch_costly.errors import (
    HorizonExceededError,
    RankError,
    RankLostError,
    RanksDisagreeError,
)
from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.distributed import SharedTuner
from botorch_costly.integrations.driver import Driver
from botorch_costly.integrations.training import Trained, TrainerOptions

SPACE = bc.SearchSpace(
    {"lr": bc.Real(1e-4, 1e-1, log=True), "policy": bc.Choice(["a", "b" * 3000])}
)
ROUNDS = 20


def tuner(horizon=ROUNDS, seed=0):
    return bc.OnlineTuner(SPACE, horizon, seed=seed)


def metric(decision, rank):
    return (decision.config["lr"] - 0.01) ** 2 + 0.1 * rank + 1 / (1 + decision.round)


def play(shared, rank, rounds):
    """Decisions of some rounds, with a metric of which each rank measures a part."""
    seen = []
    for _ in range(rounds):
        decision = shared.ask()
        loss = None
        if decision.query:
            loss = shared.mean(metric(decision, rank), weight=1 + 2 * rank)
            shared.tell(decision, -loss)
        seen.append([decision.to_dict(), loss])
    return seen


def decide(rank, folder):
    """Decisions are one; so are errors; states fit one rank, and a distributed checkpoint."""
    import torch.distributed.checkpoint as dcp

    shared = SharedTuner(tuner(seed=rank), timeout=20)  # the tuner of rank 1 is another one
    seen = play(shared, rank, ROUNDS // 2)
    torch.save(shared.state_dict(), folder / f"state{rank}.pt")
    dcp.save({"tuner": shared.checkpoint()}, checkpoint_id=str(folder / "checkpoint"))
    seen += play(shared, rank, ROUNDS // 2)
    said = {"seen": seen, "agreed": shared.agree(float(rank + 7))}
    # A rank without examples has a weight of 0, and the mean of none.
    empty = rank == 1
    said["of_one"] = shared.mean(float("nan") if empty else 2.0, weight=0.0 if empty else 3.0)
    try:
        shared.ask()
    except HorizonExceededError as error:
        said["over"] = str(error)
    resumed = SharedTuner(tuner(seed=rank), timeout=20)
    dcp.load({"tuner": resumed.checkpoint()}, checkpoint_id=str(folder / "checkpoint"))
    said["resumed"] = play(resumed, rank, ROUNDS // 2)
    broken = SharedTuner(Broken(SPACE, ROUNDS), timeout=20)
    try:
        broken.ask()
    except (RankError, ZeroDivisionError) as error:
        said["broken"] = [type(error).__name__, str(error)]
    return {**said, "generators": generators(rank, folder), "disagreed": disagree(rank)}


class Broken(bc.OnlineTuner):
    """A tuner that fails."""

    def ask(self):
        raise ZeroDivisionError("no idea")


def disagree(rank):
    """Rank 1 skips a query, and asks for the next round."""
    shared = SharedTuner(tuner(), timeout=20)
    shared.ask()
    try:
        shared.mean(1.0) if rank == 0 else shared.ask()
    except RanksDisagreeError as error:
        return str(error)


def lose(rank, folder, way):
    """Rank 1 ends, or hangs, in the middle of a run; rank 0 reports it, and saves a whole state."""
    shared = SharedTuner(tuner(), timeout=4)
    seen = play(shared, rank, 5)
    if rank == 1 and way == "kill":
        os.kill(os.getpid(), 9)
    if rank == 1:
        time.sleep(14)
        os._exit(1)
    if way == "late":
        shared.ranks.meet = lambda *_: []  # rank 1 is lost after rank 0 has asked its tuner
    began = time.monotonic()
    try:
        shared.ask()
    except RankLostError as error:
        bc.save(folder / "state.pt", tuner=shared)
        return {"error": str(error), "seconds": time.monotonic() - began, "seen": seen}


def driver():
    """A driver that has begun."""
    network = torch.nn.Linear(2, 1)
    begun = Driver(tuner(), TrainerOptions(RoundLength(steps=1), timeout=20))
    begun.connect()
    return begun, Trained(network, torch.optim.SGD(network.parameters(), lr=0.1))


def seed(number):
    torch.manual_seed(number)
    random.seed(number)
    np.random.seed(number)  # noqa: NPY002  the global one is what is meant


def draws():
    """Numbers of each global generator."""
    return [torch.rand(()).item(), random.random(), np.random.rand()]  # noqa: NPY002


def generators(rank, folder):
    """Each rank's generators continue as they were, from the state that rank 0 saves."""
    first, trained = driver()
    first.start(trained)
    seed(rank)
    draws()
    random.sample(range(9), rank)
    state = first.gathered_state_dict()
    if rank == 0:
        torch.save(state, folder / "state.pt")
    expected = draws()
    dist.barrier()
    seed(rank + 50)
    resumed, trained = driver()
    resumed.load_state_dict(torch.load(folder / "state.pt", weights_only=True))
    resumed.start(trained)
    return {"expected": expected, "drawn": draws()}


def main():
    folder, case = Path(sys.argv[1]), sys.argv[2]
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    said = decide(rank, folder) if case == "decide" else lose(rank, folder, case)
    (folder / f"{rank}.json").write_text(json.dumps(said))
    if case == "decide":
        dist.destroy_process_group()
    os._exit(0)


if __name__ == "__main__":
    main()
