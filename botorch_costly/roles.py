"""The role of a hyperparameter in training, declared or derived from its name.

Tuners treat some hyperparameters specially: far too large learning rates do lasting damage, and small
ones look better at first, even where a larger one ends better. A parameter may declare its role,
``Real(.., role="learning_rate")``. Otherwise its name decides: ``lr``, ``peak_lr``, ``lr_head``,
``optimizer.lr``, ``learningRate`` and ``eta`` are learning rates, ``lr_decay`` is not.
"""

import re
from functools import cache
from itertools import pairwise
from typing import Literal, get_args

from botorch_costly.errors import InvalidSpaceError, check

Role = Literal["learning_rate", "momentum", "weight_decay", "other"]

# Words of snake_case, camelCase, dotted and numbered names.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_RATES = {"lr", "lrs", "eta", "learningrate", "stepsize"}
_RATE_PAIRS = {("learning", "rate"), ("learning", "rates"), ("step", "size")}
_MOMENTA = {"momentum", "momenta"}
_DECAYS = {"wd", "weightdecay"}
_DECAY_PAIRS = {("weight", "decay"), ("l", "2")}
_MOMENTUM_PAIRS = {("beta", "1"), ("beta", "2"), ("betas", "1"), ("betas", "2")}
# With one of these words the name of a rate means another quantity, such as when it changes.
_ABOUT_RATES = """cooldown decay decays end epochs final gamma iterations min minimum patience power ratio
schedule scheduler steps warmup"""
_OTHERS = """batch beta clip depth drop dropout eps epsilon gamma lambda noise norm penalty reg
regularization sigma size smoothing tau temperature weight width"""
_OTHER_PAIRS = {("l", "1")}


def check_role(name: str, role: object) -> None:
    """Check that ``role`` is a ``Role`` or None.

    Raises:
        InvalidSpaceError: If it is not.
    """
    is_role = role is None or role in get_args(Role)
    check(is_role, f"{name} role", f"one of {list(get_args(Role))}", role, InvalidSpaceError)


@cache  # every round needs the roles of its parameters
def role_by_name(name: str) -> Role | None:
    """Return the role that the name of a parameter implies; None if it implies none.

    Example:
        >>> role_by_name("optimizer.peak_lr"), role_by_name("adam_beta1"), role_by_name("weight_decay")
        ('learning_rate', 'momentum', 'weight_decay')
        >>> role_by_name("x") is None
        True
    """
    sequence = [word.lower() for word in _WORD.findall(name)]
    words, pairs = set(sequence), set(pairwise(sequence))
    names_rate = bool(_RATES & words or _RATE_PAIRS & pairs)
    is_about_rate = bool(words & set(_ABOUT_RATES.split()))
    if names_rate and not is_about_rate:
        return "learning_rate"
    if _MOMENTA & words or _MOMENTUM_PAIRS & pairs:
        return "momentum"
    if not names_rate and (_DECAYS & words or _DECAY_PAIRS & pairs):
        return "weight_decay"
    is_other = names_rate or is_about_rate or words & set(_OTHERS.split()) or _OTHER_PAIRS & pairs
    return "other" if is_other else None
