"""The kind: a batch that comes twice, or never, in a run that goes back, ends an epoch or is resumed."""

import copy
import logging

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

import botorch_costly as bc
from botorch_costly.errors import InvalidArgumentError, StateMismatchError
from botorch_costly.integrations import Rewindable
from tests.integrations.digits import EpochSampler

ROWS = 20  # five batches of four an epoch


class Unsized:
    """Batches of an order of their own in each epoch, without a length."""

    def __init__(self):
        self.epoch = 0

    def __iter__(self):
        epoch, self.epoch = self.epoch, self.epoch + 1
        yield from (100 * epoch + number for number in range(5))


class Stateful(Unsized):
    def state_dict(self):
        return {"epoch": self.epoch}

    def load_state_dict(self, state):
        self.epoch = state["epoch"]


def rows():
    return TensorDataset(torch.arange(ROWS))


LOADERS = {
    "in order": lambda: DataLoader(rows(), batch_size=4),
    "shuffled": lambda: DataLoader(rows(), batch_size=4, shuffle=True),
    "shuffled by itself": lambda: DataLoader(
        rows(), batch_size=4, shuffle=True, generator=torch.Generator().manual_seed(3)
    ),
    "by epoch": lambda: DataLoader(rows(), batch_size=4, sampler=EpochSampler(ROWS)),
    "with a state": Stateful,
}
each_loader = pytest.mark.parametrize("kind", LOADERS)


@pytest.fixture(autouse=True)
def global_generator():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        yield


def batches_of(kind):
    return Rewindable(LOADERS[kind]())


def plain(batch):
    return batch[0].tolist() if isinstance(batch, list) else batch


def taken(batches, count):
    return [plain(next(batches)) for _ in range(count)]


@each_loader
def test_batches_are_those_of_the_loader(kind):
    plain_loader, batches = LOADERS[kind](), batches_of(kind)
    torch.manual_seed(1)
    expected = []
    for epoch in range(3):
        if kind == "by epoch":
            plain_loader.sampler.set_epoch(epoch)
        expected += [plain(batch) for batch in plain_loader]
    torch.manual_seed(1)
    assert [plain(batch) for _ in range(3) for batch in batches] == expected
    torch.manual_seed(1)
    assert taken(batches_of(kind), 15) == expected


@each_loader
@pytest.mark.parametrize("begin", [0, 3, 5, 7])
@pytest.mark.parametrize("count", [1, 4, 9])
def test_the_same_batches_come_again_across_the_ends_of_epochs(kind, begin, count):
    batches = batches_of(kind)
    taken(batches, begin)
    state = copy.deepcopy(batches.state_dict())
    first = taken(batches, count)
    for _ in range(2):
        batches.load_state_dict(state)
        assert taken(batches, count) == first


def test_a_run_that_went_back_reads_each_example_as_often_as_one_that_did_not():
    batches = batches_of("shuffled")
    state = batches.state_dict()
    taken(batches, 3)
    batches.load_state_dict(state)
    seen = [row for batch in taken(batches, 10) for row in batch]
    assert sorted(seen) == sorted([*range(ROWS), *range(ROWS)])


def test_a_pass_is_as_long_as_ever_and_the_rest_of_an_epoch_comes_next():
    batches, passes = batches_of("in order"), []
    state = None
    for epoch in range(3):
        passes.append([])
        for batch in batches:
            passes[-1].append(plain(batch)[0])
            if epoch == 0 and len(passes[0]) == 1:
                state = batches.state_dict()
            if epoch == 0 and len(passes[0]) == 3:
                batches.load_state_dict(state)
    assert passes == [[0, 4, 8, 4, 8], [12, 16, 0, 4, 8], [12, 16, 0, 4, 8]]


def test_a_pass_that_is_broken_off_ends_the_epoch_as_in_the_loader():
    batches = batches_of("in order")
    for _ in range(3):
        seen = [plain(batch)[0] for batch, _ in zip(batches, range(2), strict=False)]
        assert seen == [0, 4]
    batches.end_pass()
    assert [plain(batch)[0] for batch in batches] == [0, 4, 8, 12, 16]


def test_without_a_length_a_pass_ends_with_the_epoch_also_in_batches_that_come_again():
    batches = Rewindable(Unsized())
    state, seen = batches.state_dict(), []
    for number in range(4):
        if number == 2:
            batches.load_state_dict(state)
        seen.append(list(batches))
    epochs = [[100 * epoch + number for number in range(5)] for epoch in range(2)]
    assert seen == [*epochs, *epochs]


@each_loader
@pytest.mark.parametrize("back", [False, True], ids=["ahead", "in batches that come again"])
@pytest.mark.parametrize("count", [2, 5, 8])
def test_a_state_that_is_loaded_elsewhere_goes_on_identically(kind, count, back, tmp_path):
    batches = batches_of(kind)
    taken(batches, 3)
    held = copy.deepcopy(batches.state_dict())
    first = taken(batches, count)
    if back:
        batches.load_state_dict(held)
        taken(batches, 1)
    saved = copy.deepcopy(batches.state_dict())
    bc.save(tmp_path / "data.pt", data=batches)
    generator = torch.get_rng_state()
    expected = taken(batches, 9)
    torch.manual_seed(7)
    again = batches_of(kind)
    bc.load(tmp_path / "data.pt", data=again)
    torch.set_rng_state(generator)  # which a program restores itself
    assert again.state_dict().keys() == saved.keys()
    assert taken(again, 9) == expected
    again.load_state_dict(held)  # also to a state of before
    assert taken(again, count) == first


def test_a_pass_is_continued_where_it_was_saved():
    batches, again = batches_of("in order"), batches_of("in order")
    for number, _ in enumerate(batches):
        if number == 2:
            again.load_state_dict(batches.state_dict())
            break
    assert [plain(batch)[0] for batch in again] == [12, 16]
    assert [plain(batch)[0] for batch in again] == [0, 4, 8, 12, 16]


def test_batches_are_the_same_objects_and_are_forgotten_when_no_state_needs_them():
    objects = [torch.zeros(2) for _ in range(5)]
    batches = Rewindable(objects)
    assert next(batches) is objects[0]
    first = batches.state_dict()
    taken_once = [next(batches), next(batches)]
    second = batches.state_dict()
    next(batches)
    batches.load_state_dict(first)
    assert next(batches) is taken_once[0]
    batches.load_state_dict(second)
    batches.drop_all_but([second])
    batches.load_state_dict(first)  # forgotten: new batches come
    assert next(batches) is objects[4]


def test_a_step_may_take_entries_out_of_a_batch():
    batches = Rewindable([{"x": 1, "labels": 2}])
    state = batches.state_dict()
    next(batches).pop("labels")
    batches.load_state_dict(state)
    assert next(batches) == {"x": 1, "labels": 2}


def test_beyond_the_bound_the_oldest_are_forgotten_with_one_warning(caplog):
    pairs = [(torch.zeros(2**7),) for _ in range(64)]  # half a KiB each
    batches = Rewindable(pairs, gigabytes=4 / 2**20)
    first = batches.state_dict()
    with caplog.at_level(logging.WARNING):
        for _ in range(40):
            next(batches)
        late = batches.state_dict()
        seen = [next(batches) for _ in range(6)]
    assert [one.getMessage()[:9] for one in caplog.records] == ["More than"]
    batches.load_state_dict(late)
    assert all(next(batches) is one for one in seen)
    batches.load_state_dict(first)
    assert next(batches) is pairs[46]


def test_attributes_are_those_of_the_loader():
    batches = batches_of("by epoch")
    assert (len(batches), batches.batch_size) == (5, 4)
    assert isinstance(batches.sampler, EpochSampler)
    batches.worker_init_fn = print
    assert batches.loader.worker_init_fn is print
    with pytest.raises(AttributeError):
        _ = batches.flavour


def test_a_session_names_it_as_a_part():
    """A plain loop: twins see the same batches, and only those of states that are held are remembered."""
    space = bc.SearchSpace({"lr": bc.Real(1e-5, 1.0, log=True)})
    network = torch.nn.Linear(1, 1)
    batches = batches_of("shuffled")
    session = bc.Session.of(bc.TwinTuner(space, 40, start={"lr": 1e-3}), network, batches)
    seen = {}
    for decision in session:
        batch = plain(next(batches))
        assert seen.setdefault(decision.trained, batch) == batch
        if decision.query:
            session.tell(decision, 1 / (1 + decision.trained))
    assert session.tuner.given_back > 0
    assert batches.state_dict()["frontier"] - batches.state_dict()["since"] < 20


@pytest.mark.parametrize("wrong", [5, iter([1, 2])])
def test_a_loader_that_cannot_be_iterated_again_is_refused(wrong):
    with pytest.raises(InvalidArgumentError, match="loader"):
        Rewindable(wrong)


def test_a_state_of_other_data_is_refused():
    batches = Rewindable(range(5))
    taken(batches, 4)
    for state in (batches.state_dict(), {}, {"position": 3}):
        with pytest.raises(StateMismatchError):
            Rewindable(range(3)).load_state_dict(state)
    with pytest.raises(InvalidArgumentError, match="gigabytes"):
        Rewindable(range(3), gigabytes=0)


def test_a_loader_without_a_batch_ends():
    assert list(Rewindable([])) == []
    with pytest.raises(StopIteration):
        next(Rewindable([]))
