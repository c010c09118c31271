"""Small networks for text and pictures; weights and dropout masks come from a generator."""

import math
from itertools import pairwise

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.suite.networks import Dropout


class _Attention(nn.Module):
    """A layer of a transformer: causal attention, then a perceptron, each behind a norm."""

    def __init__(self, width: int, heads: int, generator: Generator) -> None:
        super().__init__()
        self._heads = heads
        self.norms = nn.ModuleList([nn.LayerNorm(width) for _ in range(2)])
        self.mixing, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.perceptron = nn.Sequential(
            nn.Linear(width, 4 * width), nn.GELU(), nn.Linear(4 * width, width)
        )
        self.dropout = Dropout(generator)

    def forward(self, hidden: Tensor) -> Tensor:
        rows, length, width = hidden.shape
        shape = (rows, length, 3, self._heads, width // self._heads)
        query, key, value = self.mixing(self.norms[0](hidden)).view(shape).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(query, key, value, is_causal=True)
        mixed = self.out(mixed.transpose(1, 2).reshape(rows, length, width))
        hidden = hidden + self.dropout(mixed)
        return hidden + self.dropout(self.perceptron(self.norms[1](hidden)))


class Transformer(nn.Module):
    """Predicts the next of each of the characters, ``n x length -> n x length x characters``."""

    def __init__(
        self, generator: Generator, characters: int, length: int, width: int = 64, layers: int = 2
    ) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.place = nn.Parameter(torch.zeros(length, width))
        self.dropout = Dropout(generator)
        self.layers = nn.Sequential(*(_Attention(width, 4, generator) for _ in range(layers)))
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, characters)
        _initialize(self, generator)

    def forward(self, text: Tensor) -> Tensor:
        """Return the logits of what follows each character."""
        hidden = self.dropout(self.embedding(text) + self.place[: text.shape[-1]])
        return self.head(self.norm(self.layers(hidden)))


class GPT(Transformer):
    """A ``Transformer`` whose head is its embedding, with the first weights of GPT-2.

    References:
        A. Radford et al. Language models are unsupervised multitask learners. 2019, section 2.3.
    """

    def __init__(
        self, generator: Generator, characters: int, length: int, width: int = 64, layers: int = 3
    ) -> None:
        super().__init__(generator, characters, length, width, layers)
        self.head.weight = self.embedding.weight
        for name, parameter in self.named_parameters():
            if parameter.dim() > 1:
                # What residual layers add up to shall not grow with their number.
                adds = name.endswith(("out.weight", "perceptron.2.weight"))
                std = 0.02 / math.sqrt(2 * layers) if adds else 0.02
                nn.init.normal_(parameter, std=std, generator=generator)


class Recurrent(nn.Module):
    """A gated recurrent network that predicts what ``Transformer`` does."""

    def __init__(self, generator: Generator, characters: int, width: int) -> None:
        super().__init__()
        self.embedding = nn.Embedding(characters, width)
        self.recurrence = nn.GRU(width, width, batch_first=True)
        self.dropout, self.head = Dropout(generator), nn.Linear(width, characters)
        _initialize(self, generator)

    def forward(self, text: Tensor) -> Tensor:
        """Return the logits of what follows each character."""
        hidden, _ = self.recurrence(self.dropout(self.embedding(text)))
        return self.head(self.dropout(hidden))


class Autoencoder(nn.Module):
    """Squeezes pictures, ``n x 1 x side x side``, through a few numbers and back."""

    def __init__(self, generator: Generator, side: int = 28, width: int = 256) -> None:
        super().__init__()
        sizes = (side * side, width, 32, width, side * side)
        layers: list[nn.Module] = []
        for size, following in pairwise(sizes):
            layers += [nn.Linear(size, following), nn.GELU(), Dropout(generator)]
        self.layers = nn.Sequential(nn.Flatten(), *layers[:-2])
        _initialize(self, generator)

    def forward(self, pictures: Tensor) -> Tensor:
        """Return the pictures as they come back."""
        return self.layers(pictures).view(pictures.shape)


def _initialize(network: nn.Module, generator: Generator) -> None:
    """Draw all matrices from ``generator``; norms stay at one, biases and places at zero."""
    for name, parameter in network.named_parameters():
        if parameter.dim() > 1 and name != "place":
            nn.init.normal_(parameter, std=1 / math.sqrt(parameter.shape[-1]), generator=generator)
        elif "norm" not in name:
            nn.init.zeros_(parameter)


def draw_layers(network: nn.Module, generator: Generator) -> None:
    """Draw the layers of a network as PyTorch does, but from ``generator``.

    Linear, convolutional and recurrent layers are even within the inverse root of their inputs, those
    that are recurrent of their units; embeddings are standard normal. Norms stay as they are.
    """
    for module in network.modules():
        if isinstance(module, nn.Embedding):
            nn.init.normal_(module.weight, generator=generator)
        elif isinstance(module, nn.RNNBase):
            _draw_evenly(module, module.hidden_size, generator)
        elif isinstance(module, nn.Linear | nn.Conv1d | nn.Conv2d):
            _draw_evenly(module, module.weight[0].numel(), generator)


def _draw_evenly(layer: nn.Module, inputs: int, generator: Generator) -> None:
    bound = 1 / math.sqrt(inputs)
    for parameter in layer.parameters():
        nn.init.uniform_(parameter, -bound, bound, generator=generator)
