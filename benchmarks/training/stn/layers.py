"""Layers whose weights respond to hyperparameters.

With the unconstrained hyperparameters ``h`` of an example, and ``o`` an elementwise product,

    y = W x + b + (H_w h) o (W' x) + (H_b h) o b'    (MacKay et al., 2019, eq. 15)

so that the weights of the example are ``W + diag(H_w h) W'``. The same ``y`` is computed in one of three
ways, whichever costs least:

    one          a single ``h`` for the whole batch, as where a network is validated: one set of weights.
    each         a convolution on the CPU with few weights: each example has weights of its own, in a
                 grouped convolution. It costs 1.2 to 1.9 times a plain layer.
    two          two layers, ``W`` and ``W'``, and their outputs are combined: twice a plain layer.

A layer of no hyperparameters is the plain layer.
"""

import math

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from botorch_costly.errors import check, check_count


def drop(
    hidden: Tensor,  # shape: (n, ...)
    rates: Tensor,  # shape: (n,), in [0, 1)
    generator: Generator,
) -> Tensor:  # shape: (n, ...)
    """Set units to 0 at the rate of their example, and scale up the others to keep the expectation.

    References:
        N. Srivastava, G. Hinton, A. Krizhevsky, I. Sutskever, R. Salakhutdinov. Dropout. JMLR 15, 2014.

    Example:
        >>> drop(torch.ones(2, 3), torch.zeros(2), torch.Generator()).tolist()
        [[1.0, 1.0, 1.0], [1.0, 1.0, 1.0]]
    """
    kept = 1 - rates.to(hidden.dtype).reshape(-1, *[1] * (hidden.dim() - 1))
    drawn = torch.rand(hidden.shape, generator=generator, dtype=torch.float32, device=hidden.device)
    return hidden * ((drawn < kept) / kept)


_FIRST_RESPONSE = 0.01  # standard deviation of the first H_w and H_b
_FEW = 2.0  # weights of a layer by its activations: up to here each example may have its own


class _Responding(nn.Module):
    """The parameters of a layer: ``W, b`` and, of the response, ``W', b', H_w, H_b``."""

    def __init__(
        self, shape: tuple[int, ...], hyperparameters: int, generator: Generator, *, bias: bool
    ) -> None:
        super().__init__()
        self.hyperparameters = check_count("hyperparameters", hyperparameters)
        fan_in = math.prod(shape[1:])
        check(fan_in > 0 and shape[0] > 0, "shape", "at least one input and one output", shape)
        bound = fan_in**-0.5

        def uniform(*size: int) -> nn.Parameter:
            return nn.Parameter((2 * torch.rand(size, generator=generator) - 1) * bound)

        def response() -> nn.Parameter:
            size = (shape[0], hyperparameters)
            return nn.Parameter(_FIRST_RESPONSE * torch.randn(size, generator=generator))

        responds = hyperparameters > 0
        self.weight = uniform(*shape)
        self.bias = uniform(shape[0]) if bias else None
        self.weight_direction = uniform(*shape) if responds else None  # W'
        self.bias_direction = uniform(shape[0]) if bias and responds else None  # b'
        self.weight_response = response() if responds else None  # H_w
        self.bias_response = response() if bias and responds else None  # H_b

    def _bias_of(self, h: Tensor) -> Tensor | None:  # shape: (n, out) or (out,)
        if self.bias is None or self.bias_response is None or self.bias_direction is None:
            return self.bias
        return self.bias + (h @ self.bias_response.mT) * self.bias_direction


class STNLinear(_Responding):
    """A linear layer that responds to hyperparameters.

    References:
        M. MacKay, P. Vicol, J. Lorraine, D. Duvenaud, R. Grosse. Self-tuning networks. ICLR 2019,
        section 3.1.

    Raises:
        InvalidArgumentError: If a size is no count.

    Example:
        >>> layer = STNLinear(3, 2, hyperparameters=1, generator=torch.Generator().manual_seed(0))
        >>> layer(torch.ones(4, 3), torch.zeros(4, 1)).shape
        torch.Size([4, 2])
    """

    def __init__(self, into: int, out: int, *, hyperparameters: int, generator: Generator) -> None:
        super().__init__((out, into), hyperparameters, generator, bias=True)

    def forward(
        self,
        x: Tensor,  # shape: (n, into)
        h: Tensor,  # shape: (n, k), or (1, k) for all
    ) -> Tensor:  # shape: (n, out)
        """Return the outputs under the hyperparameters of each example."""
        if self.weight_direction is None or self.weight_response is None:
            return F.linear(x, self.weight, self.bias)
        scales, bias = h @ self.weight_response.mT, self._bias_of(h)
        if len(h) == 1:
            return F.linear(x, self.weight + scales.mT * self.weight_direction, bias)
        plain = F.linear(x, self.weight) if bias is None else F.linear(x, self.weight) + bias
        return torch.addcmul(plain, scales, F.linear(x, self.weight_direction))


class STNConv2d(_Responding):
    """A convolution of 3 x 3 pixels, padded by one, that responds to hyperparameters, or to none if 0.

    Before a batch norm a bias would have no effect.

    Raises:
        InvalidArgumentError: If a size is no count.

    Example:
        >>> generator = torch.Generator().manual_seed(0)
        >>> layer = STNConv2d(3, 8, hyperparameters=2, generator=generator, stride=2)
        >>> layer(torch.ones(5, 3, 8, 8), torch.zeros(5, 2)).shape
        torch.Size([5, 8, 4, 4])
    """

    def __init__(
        self,
        into: int,
        out: int,
        *,
        hyperparameters: int,
        generator: Generator,
        stride: int = 1,
        bias: bool = False,
    ) -> None:
        super().__init__((out, into, 3, 3), hyperparameters, generator, bias=bias)
        self.stride = check_count("stride", stride, minimum=1)

    def forward(
        self,
        x: Tensor,  # shape: (n, into, height, width)
        h: Tensor,  # shape: (n, k), or (1, k) for all
    ) -> Tensor:  # shape: (n, out, height / stride, width / stride)
        """Return the outputs under the hyperparameters of each example."""
        if self.weight_direction is None or self.weight_response is None:
            return self._convolve(x, self.weight, self.bias)
        scales, bias = (h @ self.weight_response.mT)[..., None, None], self._bias_of(h)
        if len(h) == 1:
            weight = torch.addcmul(self.weight, scales[0, ..., None], self.weight_direction)
            return self._convolve(x, weight, None if bias is None else bias.reshape(-1))
        if x.device.type == "cpu" and self._weights_are_few(x):
            y = self._each(x, scales[..., 0, 0], self.weight_direction)
        else:
            y, along = self._convolve(x, self.weight), self._convolve(x, self.weight_direction)
            y = torch.addcmul(y, scales, along)
        return y if bias is None else y + bias[..., None, None]

    def _convolve(self, x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
        return F.conv2d(x, weight, bias, stride=self.stride, padding=1)

    def _weights_are_few(self, x: Tensor) -> bool:
        """Return whether the weights of an example cost less than a second convolution of it."""
        pixels = x.shape[-1] * x.shape[-2]
        activations = self.weight.shape[1] * pixels + len(self.weight) * pixels / self.stride**2
        return self.weight.numel() <= _FEW * activations

    def _each(self, x: Tensor, scales: Tensor, direction: Tensor) -> Tensor:
        """Convolve each example with weights of its own; ``scales`` have the shape ``(n, out)``."""
        n, (out, into) = len(x), self.weight.shape[:2]
        # W + diag(scales) W' as products of small matrices, whose gradients are such products as well.
        factors = torch.stack([torch.ones_like(scales), scales], -1)
        parts = torch.stack([self.weight, direction], 1).flatten(2)
        weights = torch.einsum("nop,opk->nok", factors, parts)
        weights = weights.reshape(n * out, *self.weight.shape[1:])
        x = x.reshape(1, n * into, *x.shape[-2:])
        y = F.conv2d(x, weights, stride=self.stride, padding=1, groups=n)
        return y.view(n, out, *y.shape[-2:])


class STNBatchNorm2d(nn.Module):
    """Batch norm whose gain and bias respond to hyperparameters: ``(g + H_g h) o z + b + H_b h``.

    In training mode ``z`` is normalized by the moments of the batch, which move the running moments. In
    evaluation mode it is normalized by the running moments, and these stay as they are: a tuning step
    runs in evaluation mode, since the loss that it descends is that of validation.

    References:
        S. Ioffe, C. Szegedy. Batch normalization. ICML 2015.

    Example:
        >>> norm = STNBatchNorm2d(4, hyperparameters=2, generator=torch.Generator().manual_seed(0))
        >>> norm(torch.ones(3, 4, 2, 2), torch.zeros(3, 2)).abs().max().item()
        0.0
    """

    running_mean: Tensor  # shape: (channels,)
    running_var: Tensor  # shape: (channels,)

    def __init__(self, channels: int, *, hyperparameters: int, generator: Generator) -> None:
        super().__init__()
        check_count("channels", channels, minimum=1)
        self.hyperparameters = check_count("hyperparameters", hyperparameters)
        self.weight = nn.Parameter(torch.ones(channels))
        self.bias = nn.Parameter(torch.zeros(channels))
        self.response = None  # H_g above H_b, shape: (2 channels, k)
        if hyperparameters > 0:
            first = torch.randn(2 * channels, hyperparameters, generator=generator)
            self.response = nn.Parameter(_FIRST_RESPONSE * first)
        self.register_buffer("running_mean", torch.zeros(channels))
        self.register_buffer("running_var", torch.ones(channels))

    def forward(
        self,
        x: Tensor,  # shape: (n, channels, height, width)
        h: Tensor,  # shape: (n, k), or (1, k) for all
    ) -> Tensor:  # shape: (n, channels, height, width)
        """Return the normalized input under the hyperparameters of each example."""
        if self.response is None:
            return self._normalized(x, self.weight, self.bias)
        gain, bias = (h @ self.response.mT).chunk(2, -1)
        if len(h) == 1:
            return self._normalized(x, self.weight + gain[0], self.bias + bias[0])
        z = self._normalized(x, None, None)
        gain, bias = self.weight + gain, self.bias + bias
        return torch.addcmul(bias[..., None, None], gain[..., None, None], z)

    def _normalized(self, x: Tensor, weight: Tensor | None, bias: Tensor | None) -> Tensor:
        moments = self.running_mean, self.running_var
        return F.batch_norm(x, *moments, weight, bias, training=self.training)
