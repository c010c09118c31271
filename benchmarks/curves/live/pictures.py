"""A convolutional network on CIFAR-10 with the six hyperparameters of the paper's Table 4."""

from collections.abc import Mapping
from functools import cache, partial

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.curves.live.program import Length, Program
from benchmarks.harness.clock import accelerator
from benchmarks.suite.data import Part, cifar10, whole_cifar10
from benchmarks.suite.networks import initialized
from botorch_costly import Integer, Real, SearchSpace
from botorch_costly.parameters import Plain
from botorch_costly.plain import as_number

_PARAMETERS: dict[str, Real | Integer] = {
    "filter_size": Integer(1, 8),
    "pool_size": Integer(1, 5),
    "batch_size": Integer(16, 1000, log=True),
    "lr": Real(1e-6, 1e-2, log=True),
    "momentum": Real(0.8, 0.999),
    "decay": Real(0.9, 0.999),
}
SPACE = SearchSpace(_PARAMETERS)

_CHANNELS, _WIDTHS, _CLASSES = 3, (8, 16), 10
_TRAINING, _VALIDATION = 2_000, 1_000  # pictures; of the whole data, a fifth is for validation
_SIDE = 32


class Pictures:
    """A training; a round is an epoch, its reward the accuracy in validation.

    ``config`` is that of the network, the batches and RMSprop, whose averages ``decay``; ``whole`` trains
    with all of CIFAR-10, on a GPU where there is one.
    """

    def __init__(self, config: Mapping[str, Plain], seed: int, whole: bool = False) -> None:
        value = {name: as_number(name, config[name]) for name in SPACE.names}
        self._generator = torch.Generator().manual_seed(seed)
        self._batch = int(value["batch_size"])
        filters, pools = int(value["filter_size"]), int(value["pool_size"])
        self._device = accelerator() if whole else "cpu"
        self._network = _network(filters, pools, self._generator).to(self._device)
        self._optimizer = torch.optim.RMSprop(
            self._network.parameters(),
            lr=value["lr"],
            momentum=value["momentum"],
            alpha=value["decay"],
            foreach=True,
        )
        self._training, self._validation = _parts(whole, self._device)

    def play(self) -> float:
        """Train for an epoch; NaN once the loss has diverged."""
        pictures, targets = self._training
        self._network.train()
        order = torch.randperm(len(targets), generator=self._generator)
        for rows in order.to(self._device).split(self._batch):
            loss = cross_entropy(self._network(pictures[rows]), targets[rows])
            if not bool(loss.isfinite()):
                return float("nan")
            self._optimizer.zero_grad()
            loss.backward()
            self._optimizer.step()
        return self._accuracy()

    @torch.inference_mode()
    def _accuracy(self) -> float:
        pictures, targets = self._validation
        self._network.eval()
        return float((self._network(pictures).argmax(-1) == targets).float().mean())


def _network(size: int, pool: int, generator: torch.Generator) -> nn.Sequential:
    """Return two convolutions, each followed by pooling, and a linear head."""
    layers: list[nn.Module] = []
    into, side = _CHANNELS, _SIDE
    for out in _WIDTHS:
        before = (size - 1) // 2  # an even filter has no middle: the other side gets one more
        layers += [nn.ZeroPad2d((before, size // 2, before, size // 2))]
        layers += [nn.utils.skip_init(nn.Conv2d, into, out, size), nn.ReLU()]
        layers += [nn.MaxPool2d(pool, ceil_mode=True)]
        into, side = out, -(-side // pool)
    head = nn.utils.skip_init(nn.Linear, into * side**2, _CLASSES)
    return initialized(nn.Sequential(*layers, nn.Flatten(), head), generator)


@cache
def _parts(whole: bool, device: str) -> tuple[Part, Part]:
    """Return the pictures of training and validation, with values around 0."""
    data = whole_cifar10() if whole else cifar10()
    first = len(data.targets) * 4 // 5 if whole else _TRAINING
    last = len(data.targets) if whole else first + _VALIDATION

    def part(start: int, end: int) -> Part:
        pictures: Tensor = data.inputs[start:end].to(device)
        return Part((pictures - 0.5) / 0.25, data.targets[start:end].to(device))

    return part(0, first), part(first, last)


PICTURES = Program(SPACE, Pictures, Length(30))  # which ends in minutes
LONG_PICTURES = Program(SPACE, Pictures, Length(150))  # as long as in the paper, on few pictures
PUBLISHED_PICTURES = Program(SPACE, partial(Pictures, whole=True), Length(150))
