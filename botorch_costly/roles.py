"""The role of a hyperparameter in training, which is declared or read from its name.

Tuners treat some hyperparameters in a special way: a learning rate that is far too large does damage
that lasts, and a small one looks better at once, even where a larger one ends better. A parameter may
declare its role, ``Real(.., role="learning_rate")``. Otherwise its name decides: ``lr``, ``peak_lr``,
``lr_head``, ``optimizer.lr``, ``learningRate`` and ``eta`` are learning rates, ``lr_decay`` is not.
"""

import re
from functools import cache
from itertools import pairwise
from typing import Literal, get_args

from botorch_costly.errors import InvalidSpaceError, check

Role = Literal["learning_rate", "momentum", "other"]

# Words of snake_case, camelCase, dotted and numbered names.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+")
_RATES = {"lr", "lrs", "eta", "learningrate", "stepsize"}
_RATE_PAIRS = {("learning", "rate"), ("learning", "rates"), ("step", "size")}
_MOMENTA = {"momentum", "momenta"}
_MOMENTUM_PAIRS = {("beta", "1"), ("beta", "2"), ("betas", "1"), ("betas", "2")}
# Beside the name of a rate these words name something else: when it changes, or where it ends.
_ABOUT_RATES = """cooldown decay decays end epochs final gamma iterations min minimum patience power ratio
schedule scheduler steps warmup"""
_OTHERS = """batch beta clip depth drop dropout eps epsilon gamma lambda noise norm penalty reg
regularization sigma size smoothing tau temperature wd weight width"""
_OTHER_PAIRS = {("l", "1"), ("l", "2")}


def check_role(name: str, role: object) -> None:
    """Raise unless ``role`` is a ``Role`` or None.

    Raises:
        InvalidSpaceError: If it is something else.
    """
    known = role is None or role in get_args(Role)
    check(known, f"{name} role", f"one of {list(get_args(Role))}", role, InvalidSpaceError)


@cache  # a round asks for the roles of its parameters
def role_by_name(name: str) -> Role | None:
    """Return the role that a parameter of this name has; None if the name does not say.

    Example:
        >>> role_by_name("optimizer.peak_lr"), role_by_name("adam_beta1"), role_by_name("weight_decay")
        ('learning_rate', 'momentum', 'other')
        >>> role_by_name("x") is None
        True
    """
    named = [word.lower() for word in _WORD.findall(name)]
    words, pairs = set(named), set(pairwise(named))
    of_rates = bool(_RATES & words or _RATE_PAIRS & pairs)
    about_rates = bool(words & set(_ABOUT_RATES.split()))
    if of_rates and not about_rates:
        return "learning_rate"
    if _MOMENTA & words or _MOMENTUM_PAIRS & pairs:
        return "momentum"
    others = of_rates or about_rates or words & set(_OTHERS.split()) or _OTHER_PAIRS & pairs
    return "other" if others else None
