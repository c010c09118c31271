"""A run of Transformers' trainer with twins, on one rank or two; it may end early and be resumed."""

import json
import os
import sys
import warnings
from pathlib import Path

import torch
from torch import nn
from transformers import Trainer, TrainerCallback, TrainingArguments

from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.transformers import TunerCallback
from tests.integrations import twins
from tests.integrations.twins import BATCH, HORIZON, STEPS


class Numbers(nn.Module):
    def __init__(self):
        super().__init__()
        self.network, self.journal = twins.network(), twins.Journal()
        self.note = None

    def forward(self, x=None, labels=None):
        if self.training and self.note is not None:
            self.note(x)
        return {"loss": twins.loss(self.network, x, labels), "logits": labels}


class Watch(TrainerCallback):
    """Notes states and batches, and may stop the run at a step in one of several ways."""

    def __init__(self, stop=None, how=None):
        self.stop, self.how = stop, how

    def on_step_begin(self, args, state, control, model=None, optimizer=None, **kwargs):
        inner, scheduler = optimizer.optimizer, kwargs["lr_scheduler"]

        def note(x):
            model.journal.begin(model, inner, [scheduler], x)
            model.note = None

        model.note = note

    def on_step_end(self, args, state, control, model=None, optimizer=None, **kwargs):
        model.journal.end(model, optimizer.optimizer, [kwargs["lr_scheduler"]])
        if state.global_step == self.stop:
            if self.how is not None:
                raise self.how
            control.should_training_stop = True
        return control


def data():
    return [{"x": x, "labels": y} for x, y in twins.data()]


def trainer_of(folder, *callbacks, ranks=1, **options):
    quiet = {"logging_strategy": "no", "report_to": [], "disable_tqdm": True, "use_cpu": True}
    plain = {"max_steps": HORIZON * STEPS, "per_device_train_batch_size": BATCH // ranks}
    plain |= {"save_strategy": "no", "learning_rate": 0.01, "weight_decay": 0.0}
    if ranks > 1:
        quiet |= {"ddp_backend": "gloo", "ddp_find_unused_parameters": False}
    arguments = TrainingArguments(output_dir=str(folder), **{**quiet, **plain, **options})
    rows = data()
    model = Numbers()
    return Trainer(model, arguments, train_dataset=rows, eval_dataset=rows, callbacks=[*callbacks])


def train(folder, tuner, *callbacks, resumed=None, wraps=True, **options):
    """Train with twins; return the callback, what was seen, and the trainer."""
    given = {n: options.pop(n) for n in ("rates", "parts", "changed", "length") if n in options}
    given = {"length": RoundLength(steps=STEPS), "timeout": 30, **given}
    trainer = trainer_of(folder, *(callbacks or [Watch()]), **options)
    callback = TunerCallback(
        tuner, trainer=trainer if wraps else None, resume_from=resumed, **given
    )
    trainer.add_callback(callback)
    try:
        trainer.train(resume_from_checkpoint=None if resumed is None else str(resumed))
    except (ZeroDivisionError, KeyboardInterrupt):
        callback.finish()
    return callback, trainer.model.journal, trainer


def weights_of(trainer):
    return [weight.flatten().tolist() for weight in trainer.model.network.parameters()]


def on_two_ranks(folder, resumed=None):
    saves = {"save_strategy": "steps", "save_steps": 25, "max_steps": 60, "ranks": 2}
    tuner = twins.tuner(20, space=twins.FACTOR)
    callback, journal, trainer = train(folder, tuner, resumed=resumed, **saves)
    decisions = [one.to_dict() for one in callback.driver.tuner.decisions]
    return {
        "decisions": decisions,
        "restores": callback.driver.restores,
        "batches": journal.batches,
        "weights": weights_of(trainer),
    }


if __name__ == "__main__":
    warnings.filterwarnings("ignore")
    torch.set_num_threads(1)
    folder = Path(sys.argv[1])
    said = {"whole": on_two_ranks(folder / "whole")}
    said["resumed"] = on_two_ranks(folder / "again", folder / "whole" / "checkpoint-25")
    (folder / f"{os.environ.get('RANK', 0)}.json").write_text(json.dumps(said))
