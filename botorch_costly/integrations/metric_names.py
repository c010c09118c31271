"""A check of declared directions: names such as accuracy where less is better, loss where more is."""

import re
from typing import Any

from botorch_costly.ask_tell.protocol import AskTell
from botorch_costly.errors import warn_caller
from botorch_costly.rewards.metric_gain import Kind

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_PART = re.compile(r"[A-Za-z0-9]+")
_RISES = """acc accuracies accuracy auc auprc auroc bleu dice f1 iou miou mrr ndcg precision psnr recall
rouge ssim"""
_FALLS = "cer err error errors loss losses mae mse nll perplexity ppl rmse wer"
# With one of these words a name means the negative of the quantity, or another one.
_TURNED = "drop fall gain gap improvement inverse minus neg negative rank reduction regret reward"


def warn_of_name(metric: str, *, maximizes: bool, advice: str) -> bool:
    """Warn if a metric has the name of one that is better in the other direction.

    Args:
        metric: Name of the metric.
        maximizes: Whether larger values are taken to be better.
        advice: What to write if the name is right, which ends the message.

    Returns:
        Whether it has.

    Example:
        >>> warn_of_name("val_loss", maximizes=False, advice="")
        False
    """
    words = {word.lower() for word in [*_WORD.findall(metric), *_PART.findall(metric)]}
    rises, falls = (bool(words & set(names.split())) for names in (_RISES, _FALLS))
    if rises in (falls, maximizes) or words & set(_TURNED.split()):
        return False
    better, taken = ("larger", "smaller") if rises else ("smaller", "larger")
    warn_caller(
        f"A metric named {metric!r} is usually better if it is {better}, and {taken} values are taken "
        f"to be better: {advice}."
    )
    return True


def warn_of_kind(metric: str, kind: Kind, tuner: AskTell[Any] | None = None) -> None:
    """Warn if a metric has the name of one of the other kind, ``"loss"`` or ``"accuracy"``.

    Args:
        metric: Name of the metric.
        kind: Its kind as it is declared; that of a tuner that is told metrics counts instead.
        tuner: The tuner of the run, if there is one.
    """
    if tuner is not None and tuner.tells == "metric":
        kind = "accuracy" if tuner.maximize else "loss"
    other = "loss" if kind == "accuracy" else "accuracy"
    warn_of_name(metric, maximizes=kind == "accuracy", advice=f"if so, declare metric={other!r}")
