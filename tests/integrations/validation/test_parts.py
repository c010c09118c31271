"""Partial readings of a loader: those of a loop of one's own, whatever the batches and stored order."""

import math

import pytest
import torch
from torch.utils.data import (
    BatchSampler,
    DataLoader,
    IterableDataset,
    SequentialSampler,
    SubsetRandomSampler,
)

from botorch_costly.errors import InvalidArgumentError, InvalidShapeError
from botorch_costly.integrations.validation import SharedValidation
from botorch_costly.integrations.validation.parts import PartReader, _ranked
from tests.integrations.validation.readings import readings, validation

COUNT, STEPS = 300, 12
BASE = torch.randn(COUNT, generator=torch.Generator().manual_seed(3)).double().exp()


def losses_at(step):
    """Losses of all examples, which fall until step 7."""
    own = torch.randn(COUNT, generator=torch.Generator().manual_seed(step)).double()
    return BASE * (0.5 + abs(step - 7)) + 0.05 * own


class Read:
    """Readings of a loader at some steps."""

    def __init__(self, loader, examples, **options):
        self.shared = SharedValidation(validation(1.0, examples=examples, **options))
        self.reader, self.loader = PartReader(self.shared), loader
        self.seen, self.results = [], []

    def step(self, step):
        assert self.shared.due(step, last=True)
        self.reader.begin()
        losses, seen = losses_at(step), []
        for batch in self.loader:
            seen += batch.tolist()
            of_examples = self.shared.validation.options.examples == COUNT
            self.reader.add(losses[batch] if of_examples else losses[batch].mean())
        self.seen.append(seen)
        self.results.append((self.reader.result(), self.reader.end())[0])

    def play(self):
        self.reader.use(self.loader)
        for step in range(1, STEPS):
            self.step(step)
        self.reader.release()
        return self


def _loop(examples=COUNT, values=losses_at):
    """A loop of one's own."""
    asked = validation(1.0, examples=examples)
    for step in range(1, STEPS):
        asked.due(step, last=True)
        while asked.examples:
            asked.tell(values(step)[asked.examples])
    return asked


@pytest.mark.parametrize("size", [1, 7, 64, 300, 500])
@pytest.mark.parametrize("shuffle", [False, True])
def test_readings_of_a_loader_are_those_of_a_loop(size, shuffle):
    loader = DataLoader(torch.arange(COUNT), batch_size=size, shuffle=shuffle)
    read, asked = Read(loader, COUNT).play(), _loop()
    assert readings(read.shared.validation) == readings(asked)
    assert read.shared.validation.counts == pytest.approx(asked.counts)
    if size < COUNT:
        assert any(len(seen) < COUNT for seen in read.seen)
    needed = asked.counts["examples"]
    assert needed <= sum(map(len, read.seen)) < needed + (STEPS - 1) * size


def test_all_readings_have_one_order_which_is_random():
    loader = DataLoader(torch.arange(COUNT), batch_size=10)
    read, other = Read(loader, COUNT).play(), Read(loader, COUNT, seed=1).play()
    longest = max(read.seen, key=len)
    assert all(seen == longest[: len(seen)] for seen in read.seen)
    assert longest != sorted(longest)
    assert longest[:10] != other.seen[0][:10]


@pytest.mark.parametrize("size", [2, 4, 7])
def test_means_of_batches_are_drawn_if_examples_is_their_number(size):
    loader = DataLoader(torch.arange(COUNT), batch_size=size)
    read = Read(loader, len(loader)).play()
    order = max(read.seen, key=len)
    batches = [torch.tensor(order[k : k + size]) for k in range(0, len(order), size)]
    position = {number: k for k, number in enumerate(validation(examples=len(loader))._order)}

    def values(step):  # the loop names batches in its own order: the k-th to be read is batch k
        means = [losses_at(step)[batch].mean() for batch in batches]
        named = torch.full((len(loader),), math.nan, dtype=torch.float64)
        for number, k in position.items():
            if k < len(means):
                named[number] = means[k]
        return named

    assert readings(read.shared.validation) == readings(_loop(len(loader), values))


def test_without_a_reading_the_loader_is_whole_and_afterwards_in_its_own_order():
    loader = DataLoader(torch.arange(COUNT), batch_size=30)
    read = Read(loader, COUNT)
    read.reader.use(loader)
    read.step(1)
    assert torch.cat(list(loader)).sort().values.tolist() == list(range(COUNT))
    read.reader.add("nothing is due")
    read.reader.release()
    read.reader.release()
    assert torch.cat(list(loader)).tolist() == list(range(COUNT))


def test_a_loss_that_is_not_finite_ends_the_reading():
    loader = DataLoader(torch.arange(COUNT), batch_size=30)
    read = Read(loader, COUNT)
    read.reader.use(loader)
    read.step(1)
    read.shared.due(2, last=True)
    read.reader.begin()
    count = 0
    for batch in loader:
        count += 1
        read.reader.add(torch.full((len(batch),), math.nan))
    assert count < len(loader)
    assert math.isnan(read.reader.result())
    assert read.shared.has_diverged
    assert not read.shared.is_due


@pytest.mark.parametrize("kind", ["loss", "accuracy"])
def test_the_shown_value_is_the_best_one_exactly_for_the_best_checkpoint(kind):
    generator = torch.Generator().manual_seed(0)
    shared = SharedValidation(validation(1.0, examples=COUNT, metric=kind, seed=4))
    reader, best, count = PartReader(shared), None, 0
    loader = DataLoader(torch.arange(COUNT), batch_size=20)
    reader.use(loader)
    for step in range(40):
        shared.due(step, last=True)
        reader.begin()
        values = 0.3 * torch.randn(COUNT, generator=generator) + BASE.float() * (1 - step / 4000)
        for batch in loader:
            reader.add(values[batch])
        shown = torch.tensor(reader.result())  # in single precision, as trainers log it
        is_above = best is None or (shown < best if kind == "loss" else shown > best)
        assert bool(is_above) == shared.is_best
        best = shown if is_above else best
        count += shared.is_best
        reader.end()
    assert 2 <= count < 40


def test_ranks_of_values():
    assert _ranked(3.0, None, is_best=True) == 3.0
    assert _ranked(3.0, 2.0, is_best=False) == 3.0
    assert _ranked(1.0, 2.0, is_best=False) == 2.0
    assert _ranked(1.0, 2.0, is_best=True) == 1.0
    assert 1.999 < _ranked(2.5, 2.0, is_best=True) < 2.0


def test_the_order_of_a_killed_run_is_forgotten():
    loader = DataLoader(torch.arange(COUNT), batch_size=30)
    killed = Read(loader, COUNT)
    killed.reader.use(loader)
    killed.shared.due(1, last=True)
    killed.reader.begin()
    for batch in loader:
        killed.reader.add(torch.full((len(batch),), math.nan))
    assert list(loader) == []  # its reading is complete
    assert len(Read(loader, COUNT).play().seen[0]) > 0
    assert torch.cat(list(loader)).tolist() == list(range(COUNT))


# -- refusals --------------------------------------------------------------------------------------


class Stream(IterableDataset):
    def __iter__(self):
        return iter(range(COUNT))


class OwnBatches(BatchSampler):
    pass


NUMBERS = torch.arange(COUNT)


@pytest.mark.parametrize(
    ("loader", "expected"),
    [
        ([1, 2], "one DataLoader"),
        (DataLoader(Stream()), "indices"),
        (DataLoader(NUMBERS, sampler=SubsetRandomSampler(range(COUNT))), "SubsetRandomSampler"),
        (
            DataLoader(NUMBERS, batch_sampler=OwnBatches(SequentialSampler(NUMBERS), 5, False)),
            "stored or shuffled",
        ),
        (DataLoader(NUMBERS, batch_size=None), "stored or shuffled"),
        (DataLoader(NUMBERS, batch_size=80, drop_last=True), "3, the number of batches"),
        (DataLoader(NUMBERS[:-1], batch_size=10), "299, the number of examples, or 30"),
    ],
)
def test_data_without_a_fixed_order_are_refused(loader, expected):
    read = Read(loader, COUNT)
    with pytest.raises(InvalidArgumentError, match=expected):
        read.reader.use(loader)


def test_losses_of_another_shape_are_refused_and_nothing_is_told():
    loader = DataLoader(NUMBERS, batch_size=10)
    read = Read(loader, COUNT)
    read.reader.use(loader)
    read.shared.due(1, last=True)
    read.reader.begin()
    for wrong in (torch.ones(9), torch.tensor(1.0), None, 0.5, torch.ones(2, 5)):
        with pytest.raises(InvalidShapeError, match="the losses of 10 examples"):
            read.reader.add(wrong)
    means = Read(loader, 30)
    means.reader.use(loader)
    means.shared.due(1, last=True)
    means.reader.begin()
    with pytest.raises(InvalidShapeError, match="the mean loss of the batch"):
        means.reader.add(torch.ones(10))
    assert readings(read.shared.validation) == readings(means.shared.validation) == []


def test_means_alone_are_counted_in_batches():
    loader = DataLoader(NUMBERS, batch_size=10)
    read = Read(loader, COUNT)
    with pytest.raises(InvalidArgumentError, match=r"Expected 30, the number of batches"):
        read.reader.use(loader, has_means=True)
