"""A run with fixed numbers, and its saved state."""

import botorch_costly as bc

SPACE = bc.SearchSpace(
    {
        "lr": bc.Real(1e-4, 1e-1, log=True),
        "depth": bc.Integer(1, 4),
        "policy": bc.Choice(["none", r"<b>$\frac$", (1, 2)]),
    }
)
START = {"lr": 0.01, "depth": 2, "policy": r"<b>$\frac$"}
FAILED, UNTOLD = 5, 7  # the second and the third query


def played(rounds=16, **options):
    """A tuner that held each configuration for two rounds, and queried the ends of the intervals."""
    tuner = bc.OnlineTuner(SPACE, horizon=40, start=START, seed=1, **options)
    for _ in range(rounds):
        decision = tuner.ask()
        if decision.query and decision.round != UNTOLD:
            reward = float("nan") if decision.round == FAILED else decision.config["lr"]
            tuner.tell(decision, reward, seconds=1.5)
    return tuner


def played_twins(metric="loss"):
    """Twins with the metric of four rounds."""
    tuner, metrics = bc.TwinTuner(SPACE, 40, metric=metric), [0.4, 0.2, 0.6, 0.5]
    while metrics:
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, metrics.pop(0))
    return tuner


def subset_run(seed, cost=lambda fidelities: {}):
    """Twelve evaluations of candidates, at fidelities that have other names than by default."""
    epochs = bc.SearchSpace({"epochs": bc.Real(1.0, 9.0, log=True)})
    settings = [
        ({**START, "depth": d}, {"epochs": e}) for d in (1, 2, 3, 4) for e in (1.0, 3.0, 9.0)
    ]
    rough = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20)
    optimizer = bc.SubsetOptimizer(
        SPACE, epochs, candidates=settings, sampling=rough, maximize=False, seed=seed
    )
    for config, fidelities in settings:
        loss = (config["depth"] - 2.3) ** 2 + 1 / fidelities["epochs"]
        optimizer.tell(optimizer.enqueue(config, fidelities), loss, **cost(fidelities))
    return optimizer


def saved(folder, tuner=None):
    path = folder / "run.pt"
    bc.save(path, tuner=tuner or played())
    return path
