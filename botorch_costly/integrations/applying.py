"""Put a configuration into effect: settings of an optimizer's groups, and dropout.

A name says what is set, and where: ``lr`` is set in all parameter groups, ``head.lr`` in the group of
that name (or index), ``encoder.dropout`` in the part of the network of that name. All names and values
are checked before anything is written.
"""

import warnings
from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, get_args

from torch import nn
from torch.optim import Optimizer

from botorch_costly.errors import InvalidConfigError, check
from botorch_costly.integrations.dropout import (
    DROPOUT,
    DropoutTarget,
    dropout_targets,
    warn_if_compiled,
)
from botorch_costly.integrations.groups import (
    GroupTarget,
    group_targets,
    settings_of,
    shared_targets,
)
from botorch_costly.integrations.multiplier import multiply_no_more, multiply_rate
from botorch_costly.integrations.parts import inner_network
from botorch_costly.integrations.schedulers import check_unscheduled
from botorch_costly.parameters import Choice
from botorch_costly.plain import Plain
from botorch_costly.records import Decision
from botorch_costly.space import SearchSpace

Rates = Literal["values", "multipliers"]
_RATES = {"lr": "lr", "learning_rate": "lr"}
_RATES_LIE_BELOW = 1e-4  # the product of the ends of a range, which is about 1 of multipliers


def apply(
    decision: Decision | Mapping[str, Plain],
    optimizer: Optimizer,
    modules: nn.Module | Iterable[nn.Module] = (),
    *,
    rates: Rates = "values",
    others: Collection[str] = (),
    schedulers: Iterable[Any] = (),
) -> None:
    """Set what a configuration says in an optimizer and in the dropout of a network.

    ======================================  ==========================================================
    ``lr``, ``learning_rate``               the learning rate, or what multiplies it
    ``weight_decay``                        not in groups that were made without weight decay
    ``momentum``, ``betas``, ``beta1``,     as the optimizer's groups have them; any other number that
    ``beta2``, ``eps``, ..                  a group has can be set, too
    ``dropout``                             the probability of all dropout modules, of attentions, and
                                            between the layers of LSTM, GRU and RNN
    ``<group>.lr``, ``<part>.dropout``, ..  in the parameter group of that ``name`` or index, in the part
                                            of the network of that name
    ======================================  ==========================================================

    A scheduler writes learning rates, too: some overwrite what was set (``LambdaLR``, ``OneCycleLR``),
    others go on from it (``StepLR``, ``CosineAnnealingLR``). So values are refused beside a scheduler.
    With ``rates="multipliers"`` the optimizer steps with the scheduler's rate times that of the
    configuration, and the scheduler never sees it, whatever its kind.

    Args:
        decision: What ``ask`` returned, or a configuration.
        optimizer: Of ``torch.optim``, or a wrapper of Lightning's or Accelerate's around one.
        modules: The network, or several, whose dropout is set.
        rates: Whether learning rates are values, or multiply those of a scheduler.
        others: Names in the configuration that the training loop reads itself.
        schedulers: Those of the optimizer. Most are noticed without being named; ``ReduceLROnPlateau``
            is not, nor is the momentum of ``CyclicLR``.

    Raises:
        InvalidArgumentError: If ``rates`` is unknown, there is no optimizer, or a value is set that a
            scheduler writes, too.
        InvalidConfigError: If a name matches nothing, matches groups that differ from each other, or is
            given twice, or a value lies outside its range. Nothing has been changed then.

    Example:
        >>> import torch
        >>> network = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
        >>> optimizer = torch.optim.AdamW(network.parameters(), lr=0.1)
        >>> apply({"lr": 0.01, "beta1": 0.8, "dropout": 0.1}, optimizer, network)
        >>> optimizer.param_groups[0]["lr"], optimizer.param_groups[0]["betas"], network[1].p
        (0.01, (0.8, 0.999), 0.1)
    """
    config = decision.config if isinstance(decision, Decision) else decision
    check(isinstance(config, Mapping), "decision", "a Decision or a configuration", decision)
    check(rates in get_args(Rates), "rates", f"one of {list(get_args(Rates))}", rates)
    _check_others(others)
    inner, given = unwrapped(optimizer), _modules(modules)
    parts = [inner_network(module) for module in given]
    plan: list[GroupTarget | DropoutTarget] = []
    for name, value in config.items():
        if name not in others:
            plan += _targets(name, value, inner, parts, rates)
    _check_distinct(plan)
    written = {target.key for target in plan if isinstance(target, GroupTarget)}
    multiplied = rates == "multipliers"
    check_unscheduled(inner, list(schedulers), written - {"lr"} if multiplied else written)
    if any(isinstance(target, DropoutTarget) for target in plan):
        warn_if_compiled(given)
    for target in plan:
        if isinstance(target, GroupTarget) and target.key == "lr" and multiplied:
            multiply_rate(target.group, float(target.value))
            continue
        target.write()
        if isinstance(target, GroupTarget) and target.key == "lr":
            multiply_no_more(target.group)  # what an earlier run with multipliers left


def _check_others(others: Collection[str]) -> None:
    listed = isinstance(others, Collection) and not isinstance(others, str)
    check(listed, "others", "a collection of names", others)


def check_rates(space: SearchSpace, rates: Rates, others: Collection[str] = ()) -> None:
    """Check that the learning rates of a space are what they are taken for: values, or multipliers.

    Raises:
        InvalidArgumentError: If multipliers cannot be 1, which leaves a schedule as it is. Ranges that
            may be meant otherwise earn a warning.
    """
    _check_others(others)
    for name, parameter in space.parameters:
        if name in others or name.rpartition(".")[2] not in _RATES:
            continue
        options = parameter.options if isinstance(parameter, Choice) else parameter.edges
        numbers = [v for v in options if isinstance(v, int | float) and not isinstance(v, bool)]
        low, high = float(min(numbers, default=1)), float(max(numbers, default=1))
        doubt = ""
        if rates == "multipliers":
            expected = (
                "a range with 1 in it, such as Real(0.1, 10, log=True): with rates='multipliers' it "
                "multiplies the scheduler's rate (rates='values' sets rates, without a scheduler)"
            )
            check(low <= 1 <= high, name, expected, parameter)
            if low * high < _RATES_LIE_BELOW:
                doubt = (
                    "multiplies the rate of the scheduler, and looks like a range of learning rates"
                )
        elif low < 1 < high and 0.5 < low * high < 2:
            doubt = "is set as a learning rate, and looks like a range of multipliers"
        if doubt:
            advice = "see rates='values' and rates='multipliers'"
            warnings.warn(f"{name}: {parameter} {doubt}: {advice}.", stacklevel=4)


def unwrapped(optimizer: Any) -> Optimizer:
    """Return the optimizer of ``torch.optim`` within wrappers.

    Raises:
        InvalidArgumentError: If there is none.
    """
    inner = optimizer
    while hasattr(inner, "optimizer"):
        inner = inner.optimizer
    check(isinstance(inner, Optimizer), "optimizer", "a torch.optim.Optimizer", optimizer)
    return inner


def _modules(modules: nn.Module | Iterable[nn.Module]) -> list[nn.Module]:
    parts = [modules] if isinstance(modules, nn.Module) else list(modules)
    for part in parts:
        check(isinstance(part, nn.Module), "modules", "torch.nn.Module objects", part)
    return parts


def _targets(
    name: str, value: Any, optimizer: Optimizer, modules: list[nn.Module], rates: Rates
) -> list[GroupTarget] | list[DropoutTarget]:
    """Return what a name stands for, at least one target."""
    where, _, what = name.rpartition(".")
    if what == DROPOUT:
        found = dropout_targets(name, where, value, modules)
        expected = "a network with dropout there, given as modules=, or the name among others="
        check(len(found) > 0, name, expected, "none", InvalidConfigError)
        return found
    groups = group_targets(name, where, _RATES.get(what, what), value, optimizer, modules)
    if not groups:
        known = f"a setting of the optimizer ({', '.join(settings_of(optimizer))}), dropout"
        expected = f"{known}, or the name among others= if training reads it itself"
        raise InvalidConfigError(name, expected, value)
    if where or (rates == "multipliers" and groups[0].key == "lr"):
        return groups  # multipliers keep the ratios of the groups
    return shared_targets(groups, optimizer)


def _check_distinct(plan: list[GroupTarget | DropoutTarget]) -> None:
    """Refuse two entries that set one thing: which of them counted would depend on their order."""
    seen: dict[tuple[int, str], str] = {}
    for target in plan:
        for place in target.places:
            if place in seen:
                expected = f"one entry that sets it, not {seen[place]} as well"
                raise InvalidConfigError(target.name, expected, target.name)
            seen[place] = target.name
