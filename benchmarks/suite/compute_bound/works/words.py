"""What networks learn of words: the next letter of a word, the next word of a text."""

import re
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Generator, Tensor, nn
from torch.nn import functional as F  # noqa: N812

from benchmarks.suite.compute_bound.networks import draw_layers
from benchmarks.suite.compute_bound.training import Batch, Settings, Work
from benchmarks.suite.compute_bound.works.pictures import smoothed
from benchmarks.suite.compute_bound.works.text import read_help_pages, read_sources
from benchmarks.suite.networks import Dropout

_LETTERS = 27  # 0 begins and ends a word
_BEFORE = 3  # letters that the next one is told from
VOCABULARY = 2000  # words of a text, 0 among them


@cache
def words() -> list[str]:
    """Return the distinct words of Python's library and its help pages, in order of the alphabet."""
    text = read_sources(0, None) + read_help_pages()
    return sorted(set(re.findall(r"[a-z]{2,}", text.lower())))


@cache
def word_codes() -> Tensor:
    """Return Python's library and help pages as words and signs; 0 stands for all but the commonest."""
    text = re.findall(r"\w+|[^\w\s]", read_help_pages() + read_sources(0, 60))
    common = [word for word, _ in Counter(text).most_common(VOCABULARY - 1)]
    codes = {word: code for code, word in enumerate(common, 1)}
    return torch.tensor([codes.get(word, 0) for word in text])


class WordNetwork(nn.Module):
    """Two layers of long short-term memory: ``n x length -> n x length x words``.

    References:
        W. Zaremba, I. Sutskever, O. Vinyals. Recurrent neural network regularization. 2014.
    """

    def __init__(self, generator: Generator, words: int, length: int, width: int = 96) -> None:
        super().__init__()
        self.embedding = nn.Embedding(words, width)
        self.recurrences = nn.ModuleList(
            [nn.LSTM(width, width, batch_first=True) for _ in range(2)]
        )
        self.dropout, self.head = Dropout(generator), nn.Linear(width, words)
        draw_layers(self, generator)
        for table in (self.embedding.weight, self.head.weight):
            nn.init.uniform_(table, -0.1, 0.1, generator=generator)

    def forward(self, text: Tensor) -> Tensor:
        """Return the logits of what follows each word."""
        hidden = self.dropout(self.embedding(text))
        for recurrence in self.recurrences:
            hidden = self.dropout(recurrence(hidden)[0])
        return self.head(hidden)


class LetterPerceptron(nn.Module):
    """Vectors of a few letters, one hidden layer of hyperbolic tangents: ``n x before -> n x letters``.

    References:
        Y. Bengio, R. Ducharme, P. Vincent, C. Janvin. A neural probabilistic language model. JMLR 2003.
    """

    def __init__(self, generator: Generator, vector: int = 10, width: int = 200) -> None:
        super().__init__()
        self.embedding = nn.Embedding(_LETTERS, vector)
        self.hidden = nn.Linear(_BEFORE * vector, width)
        self.dropout, self.head = Dropout(generator), nn.Linear(width, _LETTERS)
        draw_layers(self, generator)

    def forward(self, letters: Tensor) -> Tensor:
        """Return the logits of the next letter."""
        hidden = self.hidden(self.embedding(letters).flatten(1)).tanh()
        return self.head(self.dropout(hidden))


@dataclass(frozen=True)
class NextLetter(Work):
    """Predict each next letter of words, and their ends; whole words are held out."""

    words: Callable[[], list[str]]
    held_out: float = 0.1  # share of the words of validation, and of test
    width: int = 200  # hidden units

    def parts(self, generator: Generator) -> dict[str, Batch]:
        inputs, targets, word = _contexts(self.words)
        many = len(self.words())
        place = torch.randperm(many, generator=generator)[word] / many
        parts = {
            "validation": place < self.held_out,
            "test": (place >= self.held_out) & (place < 2 * self.held_out),
            "train": place >= 2 * self.held_out,
        }
        return {name: Batch(inputs[rows], targets[rows]) for name, rows in parts.items()}

    def network(self, generator: Generator) -> nn.Module:
        return LetterPerceptron(generator, width=self.width)

    def losses(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return the cross-entropy of each letter, in nats; of soft targets where they are."""
        return F.cross_entropy(outputs, targets, reduction="none")

    def hits(self, outputs: Tensor, targets: Tensor) -> Tensor:
        """Return which letters are the likeliest."""
        return (outputs.argmax(-1) == targets).float()

    def altered(self, batch: Batch, settings: Settings, generator: Generator) -> Batch:
        """Smooth the labels."""
        return Batch(batch.inputs, smoothed(batch.targets, _LETTERS, settings))


@cache
def _contexts(words: Callable[[], list[str]]) -> tuple[Tensor, Tensor, Tensor]:
    """Return the letters before each letter or end of a word, that letter, and which word it is of."""
    inputs, targets, owners = [], [], []
    for owner, word in enumerate(words()):
        codes = [0] * _BEFORE + [ord(letter) - 96 for letter in word] + [0]
        for end in range(_BEFORE, len(codes)):
            inputs.append(codes[end - _BEFORE : end])
            targets.append(codes[end])
            owners.append(owner)
    return torch.tensor(inputs), torch.tensor(targets), torch.tensor(owners)
