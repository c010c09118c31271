"""Experiments of Ax; as a program, it loads one from a file and goes on."""

import json
import math
import random
import sys
import warnings
from pathlib import Path

from ax import Client, RangeParameterConfig
from ax.adapter.registry import Cont_X_trans, Generators, Y_trans
from ax.generation_strategy.generation_node import GenerationNode
from ax.generation_strategy.generation_strategy import GenerationStrategy
from ax.generation_strategy.generator_spec import GeneratorSpec
from ax.generators.torch.botorch_modular.surrogate import ModelConfig, SurrogateSpec
from ax.utils.common.logger import ROOT_STREAM_HANDLER
from botorch.models.transforms.input import Normalize

import botorch_costly as bc
from botorch_costly import task_from_ax
from botorch_costly.acquisition import TimeVaryingUCB
from botorch_costly.integrations.ax import (
    AnalyticAcquisition,
    SubsetNode,
    TransferNode,
    register,
)
from botorch_costly.models import SubsetGP, TimeVaryingGP

RATE = RangeParameterConfig(name="lr", parameter_type="float", bounds=(1e-4, 1e-1), scaling="log")
LAYERS = RangeParameterConfig(name="layers", parameter_type="int", bounds=(1, 5))
ROUND = RangeParameterConfig(name="round", parameter_type="float", bounds=(0.0, 50.0))
ROWS = RangeParameterConfig(name="rows", parameter_type="int", bounds=(100, 10_000), scaling="log")
SHARE = RangeParameterConfig(name="share", parameter_type="float", bounds=(0.1, 1.0))


def quiet():
    ROOT_STREAM_HANDLER.setLevel("ERROR")


def client(parameters=(RATE, LAYERS), nodes=None, objective="-loss"):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        made = Client()
        made.configure_experiment(list(parameters))
        made.configure_optimization(objective)
        if nodes is not None:
            made.set_generation_strategy(GenerationStrategy(nodes=nodes))
    return made


def loss(params, away=0.0):
    return abs(math.log10(params["lr"]) + 2 + away) + 0.1 * abs(params["layers"] - 3)


def earlier(away=0.2, trials=15):
    """A study whose optimum lies beside that of the coming one."""
    draws, made = random.Random(0), client()
    for _ in range(trials):
        params = {"lr": 10 ** draws.uniform(-4, -1), "layers": draws.randint(1, 5)}
        made.complete_trial(made.attach_trial(params), {"loss": loss(params, away)})
    return made


def transfer_node(**options):
    return TransferNode([task_from_ax(earlier(), "loss")], **options)


def subset_node(**options):
    rough = bc.Sampling(draws=2, first_steps=8, steps=8, points=5, candidates=20, first=6)
    return SubsetNode("rows", sampling=rough, **options)


def of_parts(node, objective="-loss"):
    """A client whose arms say on how many rows they train, and what they cost."""
    made = client((RATE, LAYERS, ROWS), [node], objective)
    made.configure_tracking_metrics(["seconds"])
    return made


def on_parts(client, trials, *, at_once=1):
    """Complete some trials; return parameters, losses and seconds."""
    asked = []
    for _ in range(trials):
        for trial, params in client.get_next_trials(at_once).items():
            value, seconds = loss(params) + (100 / params["rows"]) ** 0.3, 0.01 * params["rows"]
            client.complete_trial(trial, {"loss": value, "seconds": seconds})
            asked.append((params, value, seconds))
    return asked


def spec(model, function, options=None, **kwargs):
    """The modular generator with a model and an acquisition function of ours."""
    return GeneratorSpec(
        Generators.BOTORCH_MODULAR,
        generator_kwargs={
            "surrogate_spec": SurrogateSpec(model_configs=[model]),
            "acquisition_class": AnalyticAcquisition,
            "botorch_acqf_class": function,
            "botorch_acqf_options": options or {},
            **kwargs,
        },
    )


def drifting_node(function=TimeVaryingUCB, options=None):
    """A node of a drifting function: all columns but the last, the round, are normalized."""
    model = ModelConfig(
        botorch_model_class=TimeVaryingGP,
        input_transform_classes=[Normalize],
        input_transform_options={"Normalize": {"indices": [0, 1]}},
    )
    return GenerationNode(name="drift", generator_specs=[spec(model, function, options)])


def drifting(node, rounds=10):
    """A client after some rounds in which the best rate rises."""
    draws, made = random.Random(1), client((RATE, LAYERS, ROUND), node and [node])
    for now in range(rounds):
        params = {"lr": 10 ** draws.uniform(-4, -1), "layers": draws.randint(1, 5)}
        trial = made.attach_trial({**params, "round": float(now)})
        made.complete_trial(trial, {"loss": loss(params, 0.02 * now)})
    return made


def costly_node(function, options):
    """A node that chooses the share of the data, too, by what it costs."""
    model = ModelConfig(botorch_model_class=SubsetGP, input_transform_classes=None)
    ours = spec(model, function, options, transforms=[*Cont_X_trans, *Y_trans])
    return GenerationNode(name="costly", generator_specs=[ours])


def costly(node):
    """A client after some evaluations on parts of the data, on which the loss is larger."""
    draws, made = random.Random(2), client((RATE, LAYERS, SHARE), [node])
    for _ in range(16):
        params = {"lr": 10 ** draws.uniform(-4, -1), "layers": draws.randint(1, 5)}
        share = draws.uniform(0.1, 1.0)
        trial = made.attach_trial({**params, "share": share})
        made.complete_trial(trial, {"loss": loss(params) + (1 - share) ** 2})
    return made


def main():
    """Load an experiment in a fresh process; write what is next."""
    quiet()
    register()
    loaded = Client.load_from_json_file(sys.argv[1])
    fixed = json.loads(sys.argv[3]) if len(sys.argv) > 3 else None
    found = loaded.get_next_trials(1, fixed_parameters=fixed)
    Path(sys.argv[2]).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
