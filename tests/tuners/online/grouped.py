"""Options of the tuner by short names, so that a test varies one of them without its group."""

import botorch_costly as bc

_GROUPS = {
    "prior": (bc.Prior, {n: n for n in ("forgetting", "kernel", "lengthscale", "noise")}),
    "refit": (
        bc.Refit,
        {"refit_every": "every", "refit_seconds": "seconds", "learn_forgetting": "forgetting"},
    ),
    "design": (
        bc.Design,
        {"initial_rounds": "rounds", "initial_design": "kind", "start_rounds": "start_rounds"},
    ),
    "hold": (bc.Hold, {"hold": "share", "shortest_hold": "shortest"}),
    "search": (bc.Search, {n: n for n in ("num_restarts", "bandwidth")}),
    "limits": (bc.Limits, {n: n for n in ("max_queries", "keep_rounds", "max_rows")}),
}
_PUBLISHED = {"initial_design": "random", "start_rounds": 1, "hold": 0.0}
_FACTORIES = {"ucb": bc.UCB, "ei": bc.LogEI, "pi": bc.PI}


def grouped(options, published=False):
    """Group options, those of the paper filled in."""
    options = {**(_PUBLISHED if published else {}), **options}
    made = {}
    for group, (kind, names) in _GROUPS.items():
        if isinstance(options.get(group), kind):
            continue
        fields = {names[n]: options.pop(n) for n in names if n in options}
        if fields:
            made[group] = kind(**fields)
    if "beta" in options or options.get("acquisition") in _FACTORIES:
        made["acquisition"] = _FACTORIES[options.pop("acquisition", "ucb")](
            options.pop("beta", 1.0)
        )
    return {**options, **made}


def tuner_of(space, **options):
    return bc.OnlineTuner(space, **grouped(options))
