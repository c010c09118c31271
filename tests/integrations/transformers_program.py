"""A run of Transformers' trainer, a small GPT-2 on characters; it may be killed and resumed."""

import argparse
import inspect
import json
import os
import sys
from pathlib import Path

import torch
from transformers import GPT2Config, GPT2LMHeadModel, Trainer, TrainerCallback, TrainingArguments

import botorch_costly as bc
from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.transformers import TunerCallback

SPACE = bc.SearchSpace(
    {
        "lr": bc.Real(0.1, 10, log=True),
        "weight_decay": bc.Real(0.0, 0.5),
        "dropout": bc.Real(0.0, 0.5),
    }
)
START = {"lr": 1.0, "weight_decay": 0.1, "dropout": 0.1}
LENGTH, STEPS = 24, 36


def data(part):
    text = inspect.getsource(argparse)[:6000]
    codes = [min(ord(letter), 127) for letter in text]
    rows = [codes[i : i + LENGTH] for i in range(0, len(codes) - LENGTH, LENGTH)]
    chosen = rows[:200] if part == "train" else rows[200:240]
    return [{"input_ids": row, "labels": row} for row in chosen]


def network():
    torch.manual_seed(0)
    return GPT2LMHeadModel(
        GPT2Config(vocab_size=128, n_positions=LENGTH, n_embd=16, n_layer=1, n_head=2)
    )


def tuner(horizon=11, seed=0):
    return bc.OnlineTuner(SPACE, horizon, start=START, design=bc.Design(rounds=3), seed=seed)


class Watch(TrainerCallback):
    """Notes the rates that the optimizer steps with, and may end the process."""

    def __init__(self, kill=None):
        self.kill, self.rates, self.scheduled = kill, [], []

    def on_step_begin(self, args, state, control, optimizer=None, **kwargs):
        if not self.scheduled:  # after the tuner, whose hook then comes first
            optimizer.optimizer.register_step_pre_hook(
                lambda o, *_: self.rates.append(o.param_groups[0]["lr"])
            )

    def on_step_end(self, args, state, control, optimizer=None, **kwargs):
        self.scheduled.append(optimizer.param_groups[0]["lr"])
        if state.global_step == self.kill:
            os.kill(os.getpid(), 9)


def run(folder, *, kill=None, save=False, ranks=1, **options):
    """Train; return what happened, in plain values."""
    given = {"length": RoundLength(steps=3), "timeout": 30, **options}
    callback, watch = TunerCallback(given.pop("tuner", tuner()), **given), Watch(kill)
    model = network()
    arguments = TrainingArguments(
        output_dir=str(folder / "checkpoints"),
        max_steps=STEPS,
        per_device_train_batch_size=16 // ranks,
        learning_rate=3e-3,
        weight_decay=0.1,
        save_strategy="steps" if save else "no",
        save_steps=5,
        logging_strategy="no",
        report_to=[],
        use_cpu=True,
        disable_tqdm=True,
        ddp_backend="gloo" if ranks > 1 else None,
        ddp_find_unused_parameters=False if ranks > 1 else None,
    )
    trainer = Trainer(
        model,
        arguments,
        train_dataset=data("train"),
        eval_dataset=data("val"),
        callbacks=[callback, watch],
    )
    resumed = save and any((folder / "checkpoints").glob("checkpoint-*"))
    trainer.train(resume_from_checkpoint=True if resumed else None)
    logs = [log for log in trainer.state.log_history if "eval_loss" in log]
    decided = callback.driver.tuner
    return {
        "decisions": [one.to_dict() for one in decided.decisions],
        "told": [[one.round, one.reward] for one in decided.observations],
        "evaluations": [[log["step"], log["eval_loss"]] for log in logs],
        "weights": torch.cat([p.detach().flatten() for p in model.parameters()]).tolist(),
        "rates": watch.rates,
        "scheduled": watch.scheduled,
        "config": dict(callback.config),
        "dropout": model.transformer.drop.p,
        "decays": [group["weight_decay"] for group in trainer.optimizer.param_groups],
    }


if __name__ == "__main__":
    torch.set_num_threads(1)
    folder, case = Path(sys.argv[1]), sys.argv[2]
    rank = int(os.environ.get("RANK", 0))
    kill = int(sys.argv[3]) if len(sys.argv) > 3 else None
    said = run(folder, kill=kill, save=case == "run", ranks=2 if case == "ranks" else 1)
    (folder / f"{rank}.json").write_text(json.dumps(said))
