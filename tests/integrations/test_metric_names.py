"""A metric whose name says another direction than the declared one earns a warning."""

import warnings

import pytest

import botorch_costly as bc
from botorch_costly.integrations.metric_names import warn_of_kind, warn_of_name
from botorch_costly.integrations.validation.in_trainer import TrainerValidation

SPACE = bc.SearchSpace({"lr": bc.Real(1e-4, 1e-1, log=True)})
RISING = ["val_acc", "accuracy", "valAccuracy", "test/f1_macro", "eval_f1", "AUROC", "mean_iou"]
FALLING = ["val_loss", "eval_loss", "error", "valRMSE", "word_error_rate", "perplexity", "wer"]
UNCLEAR = [
    "score",
    "metric",
    "acc_loss",
    "neg_mean_squared_error",
    "loss_gain",
    "map",
    "accelerate",
    "",
]


def said(name, *, maximizes):
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        has_warned = warn_of_name(name, maximizes=maximizes, advice="do so")
    assert len(caught) == has_warned
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("name", RISING)
def test_scores_are_not_minimized(name):
    (message,) = said(name, maximizes=False)
    assert f"named {name!r} is usually better if it is larger" in message
    assert not said(name, maximizes=True)


@pytest.mark.parametrize("name", FALLING)
def test_losses_are_not_maximized(name):
    (message,) = said(name, maximizes=True)
    assert "smaller" in message
    assert not said(name, maximizes=False)


@pytest.mark.parametrize("name", UNCLEAR)
@pytest.mark.parametrize("maximizes", [True, False])
def test_other_names_say_nothing(name, maximizes):
    assert not said(name, maximizes=maximizes)


def test_the_kind_of_a_tuner_that_is_told_metrics_counts():
    accuracy, gains = bc.TwinTuner(SPACE, 9, metric="accuracy"), bc.OnlineTuner(SPACE, 9)
    warn_of_kind("val_acc", "loss", accuracy)
    warn_of_kind("val_loss", "loss", gains)
    with pytest.warns(UserWarning, match="metric='loss'"):
        warn_of_kind("val_loss", "loss", accuracy)
    with pytest.warns(UserWarning, match="metric='accuracy'"):
        warn_of_kind("val_acc", "loss", gains)


def test_a_validation_within_a_trainer_says_it():
    options = {"guard": False, "margin": None, "timeout": 1.0, "changed": ()}
    with pytest.warns(UserWarning, match="metric='accuracy'"):
        TrainerValidation(bc.Validation(0.5), "val_acc", **options)
    TrainerValidation(bc.Validation(0.5, "accuracy"), "val_acc", **options)
