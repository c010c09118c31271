"""Apply a configuration: settings of an optimizer's parameter groups, and dropout.

A name holds the setting and its place: ``lr`` is set in all parameter groups, ``head.lr`` in the group
with that name or index, ``encoder.dropout`` in the submodule with that name. All names and values are
checked before any is written.
"""

from collections.abc import Collection, Iterable, Mapping
from typing import Any, Literal, get_args

from torch import nn
from torch.optim import Optimizer

from botorch_costly.calls import advised
from botorch_costly.errors import InvalidArgumentError, InvalidConfigError, check, warn_caller
from botorch_costly.integrations.dropout import (
    DROPOUT,
    DropoutTarget,
    dropout_target,
    warn_if_compiled,
)
from botorch_costly.integrations.groups import (
    BETAS,
    GroupTarget,
    group_target,
    settings_of,
    shared_target,
)
from botorch_costly.integrations.multiplier import (
    MULTIPLIER,
    multiply_no_more,
    multiply_rates,
    seem_absolute,
)
from botorch_costly.integrations.parts import inner_network
from botorch_costly.parameters import Choice
from botorch_costly.plain import Plain
from botorch_costly.records import Decision
from botorch_costly.space import SearchSpace

Rates = Literal["values", "multipliers"]
_RATES = {"lr": "lr", "learning_rate": "lr"}
_RATES_LIE_BELOW = 1e-4  # product of the bounds of a range of rates; about 1 for multipliers
_FAR_BELOW = (
    "{0}: all multipliers so far are at most 0.1, and look like learning rates, which rates='values' "
    "sets. With rates='multipliers' search a range around 1, such as Real(0.1, 10, log=True)."
)
_CYCLED = {"momentum", "betas"}  # settings that schedulers with cycle_momentum write


@advised
def apply(
    decision: Decision | Mapping[str, Plain],
    optimizer: Optimizer,
    modules: nn.Module | Iterable[nn.Module] = (),
    *,
    rates: Rates = "values",
    others: Collection[str] = (),
    schedulers: Iterable[Any] = (),
) -> None:
    """Apply a configuration to an optimizer and to the dropout of a network.

    ======================================  ==========================================================
    ``lr``, ``learning_rate``               the learning rate, or its multiplier
    ``weight_decay``                        not in groups that were made without weight decay
    ``momentum``, ``betas``, ``beta1``,     settings of the optimizer's groups; any other number in a
    ``beta2``, ``eps``, ..                  group can be set, too
    ``dropout``                             the probability of all dropout modules, of attentions, and
                                            between the layers of LSTM, GRU and RNN
    ``<group>.lr``, ``<part>.dropout``, ..  in the parameter group with that ``name`` or index, in the
                                            submodule with that name
    ======================================  ==========================================================

    A scheduler writes learning rates, too: some overwrite a rate (``LambdaLR``, ``OneCycleLR``), others
    continue from it (``StepLR``, ``CosineAnnealingLR``). So values are refused beside a scheduler. With
    ``rates="multipliers"`` the optimizer steps with the scheduler's rate times that of the configuration,
    and no kind of scheduler sees the product.

    Args:
        decision: A decision of ``ask``, or a configuration.
        optimizer: An optimizer of ``torch.optim``, or a wrapper of Lightning or Accelerate around one.
        modules: The network or networks whose dropout is set.
        rates: ``"values"`` to set learning rates, ``"multipliers"`` to multiply those of a scheduler.
        others: Names in the configuration that the training loop reads itself.
        schedulers: Schedulers of the optimizer. Most are noticed without being named, but not
            ``ReduceLROnPlateau`` and the momentum of ``CyclicLR``.

    Raises:
        InvalidArgumentError: If ``rates`` is unknown, there is no optimizer, or a scheduler writes one of
            the values, too.
        InvalidConfigError: If a name matches nothing, matches groups that differ from each other, or is
            given twice, or a value lies outside its range. Nothing has changed then.

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
    inner, outermost = unwrapped(optimizer), _modules(modules)
    networks = [inner_network(module) for module in outermost]
    plan: list[GroupTarget | DropoutTarget] = []
    for name, value in config.items():
        if name not in others:
            plan.append(_target(name, value, inner, networks, rates))
    _check_distinct(plan)
    written = {target.key for target in plan if isinstance(target, GroupTarget)}
    multiplied = rates == "multipliers"
    _check_unscheduled(inner, list(schedulers), written - {"lr"} if multiplied else written)
    if any(isinstance(target, DropoutTarget) for target in plan):
        warn_if_compiled(outermost)
    for target in plan:
        if isinstance(target, DropoutTarget) or target.key != "lr":
            target.write()
        elif multiplied:
            multiply_rates(target.groups, float(target.value))
            if seem_absolute(inner, float(target.value)):
                warn_caller(_FAR_BELOW.format(target.name))
        else:
            target.write()
            multiply_no_more(target.groups)  # left by an earlier run with multipliers


def setting_of(name: str, rates: Rates) -> str:
    """Return the key of a parameter group that a name of a configuration is written to.

    Example:
        >>> setting_of("head.learning_rate", "values"), setting_of("lr", "multipliers")
        ('lr', 'lr_multiplier')
    """
    setting = name.rpartition(".")[2]
    key = "betas" if setting in BETAS else _RATES.get(setting, setting)
    return MULTIPLIER if key == "lr" and rates == "multipliers" else key


def _check_others(others: Collection[str]) -> None:
    is_list = isinstance(others, Collection) and not isinstance(others, str)
    check(is_list, "others", "a collection of names", others)


def check_rates(space: SearchSpace, rates: Rates, others: Collection[str] = ()) -> None:
    """Check that the ranges of learning rates fit ``rates``; warn if they look like the other kind.

    Raises:
        InvalidArgumentError: If the range of a multiplier does not contain 1, the unchanged schedule.
    """
    _check_others(others)
    for name, parameter in space.parameters:
        if name in others or name.rpartition(".")[2] not in _RATES:
            continue
        options = (
            parameter.options if isinstance(parameter, Choice) else (parameter.low, parameter.high)
        )
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
            warn_caller(f"{name}: {parameter} {doubt}: {advice}.")


def unwrapped(optimizer: Any) -> Optimizer:
    """Return the optimizer of ``torch.optim`` inside of wrappers.

    Raises:
        InvalidArgumentError: If there is no such optimizer.
    """
    inner = optimizer
    while hasattr(inner, "optimizer"):
        inner = inner.optimizer
    check(isinstance(inner, Optimizer), "optimizer", "a torch.optim.Optimizer", optimizer)
    return inner


def _modules(modules: nn.Module | Iterable[nn.Module]) -> list[nn.Module]:
    expected = "a network, or a list of them (omitted, no dropout is set)"
    given = isinstance(modules, nn.Module | Iterable) and not isinstance(modules, Optimizer)
    check(given, "modules", expected, modules)
    networks = [modules] if isinstance(modules, nn.Module) else list(modules)
    for network in networks:
        check(isinstance(network, nn.Module), "modules", "torch.nn.Module objects", network)
    return networks


def _target(
    name: str, value: Any, optimizer: Optimizer, modules: list[nn.Module], rates: Rates
) -> GroupTarget | DropoutTarget:
    """Return the target of a name, with at least one place."""
    where, _, setting = name.rpartition(".")
    if setting == DROPOUT:
        dropout = dropout_target(name, where, value, modules)
        expected = "a network with dropout there, given as modules=, or the name among others="
        check(len(dropout.held) > 0, name, expected, "none", InvalidConfigError)
        return dropout
    target = group_target(name, where, _RATES.get(setting, setting), value, optimizer, modules)
    if target is None:
        settings = ", ".join(settings_of(optimizer))
        expected = (
            f"a setting of the optimizer ({settings}), dropout, or the name among others= if training "
            "reads it itself"
        )
        raise InvalidConfigError(name, expected, value)
    if where or (rates == "multipliers" and target.key == "lr"):
        return target  # multipliers keep the ratios of the groups
    return shared_target(target, optimizer)


def _check_unscheduled(
    optimizer: Optimizer, schedulers: list[Any], written: Collection[str]
) -> None:
    """Refuse settings that a scheduler writes, too.

    Args:
        optimizer: Optimizer whose groups are set.
        schedulers: Known schedulers; others are noticed by entries that they add to the optimizer.
        written: Settings of the groups that are to be set.

    Raises:
        InvalidArgumentError: If a scheduler writes one of the settings.
    """
    names = ", ".join(type(scheduler).__name__ for scheduler in schedulers)
    received = names or "an optimizer with one"
    noticed = any("initial_lr" in group for group in optimizer.param_groups)
    if "lr" in written and (names or noticed):
        expected = (
            "a learning rate that no scheduler writes as well: tune a multiplier of it "
            "(such as Real(0.1, 10, log=True)) with rates='multipliers', or train without the scheduler"
        )
        raise InvalidArgumentError("lr", expected, received)
    cycled = any(getattr(scheduler, "cycle_momentum", False) for scheduler in schedulers)
    cycled = cycled or any("max_momentum" in group for group in optimizer.param_groups)
    both = sorted(_CYCLED & set(written))
    if both and cycled:
        expected = "no scheduler with cycle_momentum=True beside it"
        raise InvalidArgumentError(both[0], expected, received)


def _check_distinct(plan: list[GroupTarget | DropoutTarget]) -> None:
    """Refuse two entries for one setting, whose result would depend on their order."""
    seen: dict[tuple[int, str], str] = {}
    keys = [target.key for target in plan]
    for target in plan:
        # The places of one entry differ, and so do those of two settings.
        for place in target.places if keys.count(target.key) > 1 else ():
            if place in seen:
                expected = f"one entry that sets it, not {seen[place]} as well"
                raise InvalidConfigError(target.name, expected, target.name)
            seen[place] = target.name
