"""Stochastic gradient descent whose steps are as long as the weights they change allow."""

from collections.abc import Iterable
from typing import Any

import torch
from torch import Tensor, nn

from botorch_costly.errors import check, check_nonnegative, check_positive

TRUST = 0.001


class LARS(torch.optim.Optimizer):
    r"""Layer-wise adaptive rate scaling.

    .. math::

        g \leftarrow g + \lambda w, \qquad
        v \leftarrow m v + \eta\, \frac{c \lVert w \rVert}{\lVert g \rVert}\, g, \qquad
        w \leftarrow w - v,

    for each tensor :math:`w` of a group with ``adapted``; biases and batch norm have neither the ratio
    nor the decay. The ratio is 1 where a norm is 0. Norms stay on the device: nothing waits for it.

    References:
        Y. You, I. Gitman, B. Ginsburg. Large batch training of convolutional networks. 2017.
        T. Chen, S. Kornblith, M. Norouzi, G. Hinton. SimCLR. ICML 2020, for what is left out of it.

    Args:
        groups: Parameters, or groups of them as from ``groups_of``.
        lr: The rate :math:`\eta`.
        momentum: The share :math:`m` of the former step.
        weight_decay: The factor :math:`\lambda`.
        trust: The factor :math:`c`.

    Raises:
        InvalidArgumentError: If the rate or the trust is not positive, or another one is negative.

    Example:
        >>> weights = nn.Parameter(torch.tensor([3.0, 4.0]))
        >>> optimizer = LARS([weights], lr=1.0, momentum=0.0, trust=0.1)
        >>> weights.grad = torch.tensor([0.0, 8.0])
        >>> optimizer.step()
        >>> weights.tolist()  # the step is 0.1 times |w| = 5, whatever the size of the gradient
        [3.0, 3.5]
    """

    def __init__(
        self,
        groups: Iterable[Any],
        lr: float,
        *,
        momentum: float = 0.9,
        weight_decay: float = 0.0,
        trust: float = TRUST,
    ) -> None:
        check_positive("lr", lr)
        check_positive("trust", trust)
        check(0 <= momentum < 1, "momentum", "a number in [0, 1)", momentum)
        check_nonnegative("weight_decay", weight_decay)
        options: dict[str, Any] = {"lr": lr, "momentum": momentum, "weight_decay": weight_decay}
        super().__init__(groups, {**options, "trust": trust, "adapted": True})

    @torch.no_grad()
    def step(self, closure: Any = None) -> Any:
        """Change all weights that have a gradient."""
        check(closure is None, "closure", "None: the loss is computed once a step", closure)
        for group in self.param_groups:
            weights = [w for w in group["params"] if w.grad is not None]
            if weights:
                self._step(weights, [w.grad for w in weights], group)

    def _step(self, weights: list[Tensor], gradients: list[Tensor], group: dict[str, Any]) -> None:
        speeds = [self._speed(w) for w in weights]
        if group["adapted"]:
            gradients = list(
                torch._foreach_add(gradients, weights, alpha=group["weight_decay"])  # g + lambda w
            )
            sizes = torch.stack(torch._foreach_norm(weights))
            slopes = torch.stack(torch._foreach_norm(gradients))
            ratios = torch.where((sizes > 0) & (slopes > 0), group["trust"] * sizes / slopes, 1.0)
            gradients = list(torch._foreach_mul(gradients, list(ratios.unbind())))
        torch._foreach_mul_(speeds, group["momentum"])
        torch._foreach_add_(speeds, gradients, alpha=group["lr"])
        torch._foreach_sub_(weights, speeds)

    def _speed(self, weights: Tensor) -> Tensor:
        state = self.state[weights]
        if "speed" not in state:
            state["speed"] = torch.zeros_like(weights)
        return state["speed"]


def groups_of(network: nn.Module, weight_decay: float) -> list[dict[str, Any]]:
    """Return the weights, which are adapted and decay, apart from biases and batch norm."""
    adapted = [p for p in network.parameters() if p.dim() > 1]
    plain = [p for p in network.parameters() if p.dim() <= 1]
    decays = {"params": adapted, "weight_decay": weight_decay, "adapted": True}
    return [decays, {"params": plain, "weight_decay": 0.0, "adapted": False}]
