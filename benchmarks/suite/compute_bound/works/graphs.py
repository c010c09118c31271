"""The classes of the nodes of graphs, told from noisy features and from neighbours of other classes."""

from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.suite.compute_bound.networks import draw_layers
from benchmarks.suite.compute_bound.training import Batch, Work
from benchmarks.suite.networks import Dropout

_FEATURES, _CLASSES, _PROTOTYPES = 16, 8, 16
_LINKED, _SELDOM = 0.35, 0.06  # chances of an edge to a preferred class and to another one


class GraphNetwork(nn.Module):
    """Each node hears itself and the mean of its neighbours, layer by layer.

    Inputs are the features and the row of the adjacency matrix of each node, ``n x nodes x (features +
    nodes)``; outputs are logits, ``n x nodes x classes``.

    References:
        T. N. Kipf, M. Welling. Semi-supervised classification with graph convolutional networks. ICLR
        2017.
        W. Hamilton, R. Ying, J. Leskovec. Inductive representation learning on large graphs. NeurIPS
        2017: a node's own features have weights of their own.
    """

    def __init__(self, generator: Generator, width: int = 96, layers: int = 3) -> None:
        super().__init__()
        sizes = [_FEATURES] + [width] * layers
        self.own = nn.ModuleList([nn.Linear(a, b) for a, b in pairwise(sizes)])
        self.heard = nn.ModuleList([nn.Linear(a, b, bias=False) for a, b in pairwise(sizes)])
        self.dropout, self.head = Dropout(generator), nn.Linear(width, _CLASSES)
        draw_layers(self, generator)

    def forward(self, inputs: Tensor) -> Tensor:
        """Return the logits of each node."""
        hidden, edges = inputs[..., :_FEATURES], inputs[..., _FEATURES:]
        mean = edges / edges.sum(-1, keepdim=True).clamp_min(1.0)
        for own, heard in zip(self.own, self.heard, strict=True):
            hidden = self.dropout(F.relu(own(hidden) + heard(mean @ hidden)))
        return self.head(hidden)


class _World(NamedTuple):
    """What all graphs of a run have in common."""

    prototypes: Tensor  # classes x prototypes x features
    links: Tensor  # classes x classes, chances of an edge

    @classmethod
    def drawn(cls, generator: Generator) -> "_World":
        """Draw what the features of a class look like, and which two classes each is linked to."""
        prototypes = torch.randn(_CLASSES, _PROTOTYPES, _FEATURES, generator=generator)
        order = torch.randperm(_CLASSES, generator=generator)
        links = torch.full((_CLASSES, _CLASSES), _SELDOM)
        links[order, order.roll(1)] = links[order.roll(1), order] = _LINKED
        return cls(prototypes, links)


@dataclass(frozen=True)
class GraphNodes(Work):
    """Tell the classes of the nodes of stochastic block graphs; a row is a graph.

    Each class looks like one of several prototypes, behind noise as large as they are, and is linked to
    two other classes, seldom to itself.
    """

    graphs: int = 6000  # to train on
    held_out: int = 200  # graphs of validation, and of test
    nodes: int = 60  # of a graph
    noise: float = 1.0  # standard deviation of the noise of features
    width: int = 96  # units of a hidden layer

    def parts(self, generator: Generator) -> dict[str, Batch]:
        world = _World.drawn(generator)
        several = {"train": self.graphs, "validation": self.held_out, "test": self.held_out}
        return {name: self._drawn(world, many, generator) for name, many in several.items()}

    def _drawn(self, world: _World, many: int, generator: Generator) -> Batch:
        """Draw so many graphs."""
        shape = (many, self.nodes)
        classes = torch.randint(_CLASSES, shape, generator=generator)
        looks = torch.randint(_PROTOTYPES, shape, generator=generator)
        features = world.prototypes[classes, looks]
        features = features + self.noise * torch.randn(features.shape, generator=generator)
        chances = world.links[classes[:, :, None], classes[:, None, :]]
        upper = (torch.rand(chances.shape, generator=generator) < chances).float().triu(1)
        return Batch(torch.cat([features, upper + upper.mT], -1), classes)

    def network(self, generator: Generator) -> nn.Module:
        return GraphNetwork(generator, self.width)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the mean cross-entropy of each graph, in nats a node."""
        return F.cross_entropy(outputs.mT, targets, reduction="none").mean(-1)

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the share of the nodes of each graph that are told right."""
        return (outputs.argmax(-1) == targets).float().mean(-1)
