"""The ratings that users give to items, told from who rates what."""

from dataclasses import dataclass

import torch
from torch import Generator, Tensor, nn

from benchmarks.suite.compute_bound.networks import draw_layers
from benchmarks.suite.compute_bound.training import Batch, Work
from benchmarks.suite.networks import Dropout

_NEAR = 0.5  # a rating that is told within so much is right
_GENRES = 5


class FactorNetwork(nn.Module):
    """Products of factors, a perceptron of both, and an offset for each: ``n x 2 -> n``.

    References:
        X. He et al. Neural collaborative filtering. WWW 2017.
    """

    def __init__(self, generator: Generator, users: int, items: int, width: int = 32) -> None:
        super().__init__()
        self.users, self.items = nn.Embedding(users, width), nn.Embedding(items, width)
        self.offsets = nn.ModuleList([nn.Embedding(users, 1), nn.Embedding(items, 1)])
        self.perceptron = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), Dropout(generator))
        self.dropout, self.head = Dropout(generator), nn.Linear(2 * width, 1)
        draw_layers(self, generator)
        with torch.no_grad():
            for table in (self.users, self.items, *self.offsets):
                table.weight *= 0.3

    def forward(self, pairs: Tensor) -> Tensor:
        """Return the rating of each pair, users in the first column and items in the second."""
        user, item = self.users(pairs[:, 0]), self.items(pairs[:, 1])
        both = self.dropout(user * item), self.perceptron(torch.cat([user, item], -1))
        offsets = self.offsets[0](pairs[:, 0]) + self.offsets[1](pairs[:, 1])
        return (3.5 + offsets + self.head(torch.cat(both, -1))).squeeze(-1)


@dataclass(frozen=True)
class Ratings(Work):
    """Predict ratings from 1 to 5 of a world of several factors; the loss is that of squares.

    Users like some genres more than others, and items belong to one more than to others. Some users rate
    much more than others, some items are rated much more; ratings are rounded.
    """

    users: int = 1500
    items: int = 800
    ratings: int = 1_000_000
    held_out: int = 20_000  # ratings of validation, and of test
    width: int = 32  # factors of a user and of an item
    in_nats = False

    def parts(self, generator: Generator) -> dict[str, Batch]:
        pairs = torch.stack(
            [self._chosen(many, generator) for many in (self.users, self.items)], dim=-1
        )
        likes = torch.randn(self.users, _GENRES, generator=generator)
        genres = (2 * torch.randn(self.items, _GENRES, generator=generator)).softmax(-1)
        levels = [0.4 * torch.randn(many, generator=generator) for many in (self.users, self.items)]
        liked = 1.2 * (likes[pairs[:, 0]] * genres[pairs[:, 1]]).sum(-1)
        noise = 0.6 * torch.randn(self.ratings, generator=generator)
        opinion = 3.5 + levels[0][pairs[:, 0]] + levels[1][pairs[:, 1]] + liked + noise
        targets = opinion.round().clamp(1.0, 5.0)
        sizes = [self.held_out, self.held_out, self.ratings - 2 * self.held_out]
        names = ("validation", "test", "train")
        parts = zip(names, pairs.split(sizes), targets.split(sizes), strict=True)
        return {name: Batch(inputs, rated) for name, inputs, rated in parts}

    def _chosen(self, many: int, generator: Generator) -> Tensor:
        """Draw who rates, or what is rated: the chances fall with the rank."""
        chances = 1 / (torch.arange(many) + 0.1 * many)
        return torch.multinomial(chances, self.ratings, replacement=True, generator=generator)

    def network(self, generator: Generator) -> nn.Module:
        return FactorNetwork(generator, self.users, self.items, self.width)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        return (outputs - targets).square()

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return which ratings are told within a half."""
        return ((outputs - targets).abs() < _NEAR).float()
