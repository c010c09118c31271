"""Train one network from its first round to its last while its hyperparameters are tuned, in one call."""

import contextlib
import logging
from collections.abc import Callable
from typing import Any

from botorch_costly.calls import advised, check_takes
from botorch_costly.space import SearchSpace
from botorch_costly.tuners.twins.parts import Component
from botorch_costly.tuners.twins.session import Session

_logger = logging.getLogger(__name__)


@advised
def tune(
    train_round: Callable[..., object],
    validate: Callable[[], float],
    space: SearchSpace,
    horizon: int | None,
    *parts: Component,
    **options: Any,
) -> Session:
    """Train all rounds of a ``Session``, and return it.

    If ``train_round`` or ``validate`` raises, the parts are brought into the state of the incumbent, and
    the error is raised. An interrupt from the keyboard ends the run early instead: a warning is logged,
    and the session is returned.

    Args:
        train_round: Function that trains one round; it takes the hyperparameters by name.
        validate: Function that returns the metric.
        space: Search space.
        horizon: Rounds of compute, including those given back; None if ``seconds=`` alone ends the run.
        parts: All objects that training changes, such as network and optimizer.
        options: Further arguments of ``Session``.

    Raises:
        InvalidArgumentError: If one of the two is no such function, an argument of ``Session`` is
            outside its range, or a part has no state.
        InvalidConfigError: If ``start`` does not belong to the space.
        InvalidSpaceError: If the space holds a single configuration.

    Example::

        session = tune(train_round, validation_loss, space, 300, network, optimizer, start=default)
        print(session.best(), session.diagnose())
    """
    if isinstance(space, SearchSpace):  # which Session checks
        check_takes("train_round", train_round, **dict.fromkeys(space.names))
    check_takes("validate", validate)
    session = Session(space, horizon, *parts, **options)
    try:
        for decision in session:
            train_round(**decision.config)
            if decision.query:
                session.tell(decision, validate())
    except KeyboardInterrupt:
        session.finish()
        _logger.warning(
            "Interrupted in round %d of %s: the parts are in the state of the incumbent.",
            len(session.tuner.decisions),
            "a run without a horizon" if horizon is None else horizon,
        )
    except BaseException:
        with contextlib.suppress(Exception):  # the error itself says more
            session.finish()
        raise
    return session
