"""Tune a run of Transformers' trainer with a callback.

A small GPT-2 learns to count twice, with as many steps, from a learning rate that is too small: without a
tuner, and with twins, which go back from the settings that were worse.
"""

import tempfile

import torch
from transformers import GPT2Config, GPT2LMHeadModel, PrinterCallback, Trainer, TrainingArguments

import botorch_costly as bc
from botorch_costly.integrations import RoundLength
from botorch_costly.integrations.transformers import TunerCallback

ROUNDS, STEPS = 130, 4
QUIET = {"save_strategy": "no", "logging_strategy": "no", "report_to": [], "disable_tqdm": True}


def count(start, step):
    numbers = [(start + step * place) % 32 for place in range(16)]
    return {"input_ids": numbers, "labels": numbers}


def train(tuner=None):
    """Return the validation loss at the end of a run."""
    torch.manual_seed(0)
    rows = [count(start, step) for step in range(1, 8) for start in range(32)]
    rows = [rows[i] for i in torch.randperm(len(rows))]
    sizes = {"vocab_size": 32, "n_positions": 16, "n_embd": 32, "n_layer": 1, "n_head": 2}
    config = GPT2Config(**sizes, bos_token_id=None, eos_token_id=None)
    options = {"learning_rate": 1e-4, "use_cpu": True, **QUIET}
    with tempfile.TemporaryDirectory() as folder:
        trainer = Trainer(
            GPT2LMHeadModel(config),
            TrainingArguments(folder, max_steps=ROUNDS * STEPS, **options),
            train_dataset=rows[:180],
            eval_dataset=rows[180:],
        )
        trainer.remove_callback(PrinterCallback)
        if tuner is not None:
            length = RoundLength(steps=STEPS)
            trainer.add_callback(TunerCallback(tuner, length=length, trainer=trainer))
        trainer.train()
        return trainer.evaluate()["eval_loss"]


def main():
    print(f"validation loss without a tuner: {train():.3f}")
    # The rate multiplies that of the trainer's schedule, which goes on as it is.
    space = bc.SearchSpace({"lr": bc.Scheduled(0.01, 100.0, base="constant")})
    tuner = bc.TwinTuner(space, ROUNDS, start={"lr": 1.0})
    print(f"with one, and as many steps:     {train(tuner):.3f}")
    print(tuner.diagnose())


if __name__ == "__main__":
    main()
