"""The kind: a rank that is in another state than the others, because one of them could not follow.

Two ranks are two threads, whose messages go over a board.
"""

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest
import torch

from botorch_costly.errors import RestoreError
from botorch_costly.integrations.ranks import Ranks
from tests.cases import quick
from tests.integrations.twin_fits import Average, Fit
from tests.integrations.twins import HORIZON, STEPS


class Board:
    """Where two ranks leave their messages for each other."""

    def __init__(self):
        self.slots, self.barrier = [None, None], threading.Barrier(2, timeout=20)

    def exchange(self, rank, value):
        self.slots[rank] = value
        self.barrier.wait()
        seen = list(self.slots)
        self.barrier.wait()
        return seen


class Thread(Ranks):
    """A rank that is a thread."""

    def __init__(self, rank, board):
        self.timeout, self.rank, self.count, self.board = 20.0, rank, 2, board

    def _gathered(self, ours, place, number):
        return self.board.exchange(self.rank, ours.clone())

    def _broadcast(self, message):
        return self.board.exchange(self.rank, message)[0]


def on_two_ranks(play, **options):
    """What two ranks return, each of which plays with a fit and a part of its own."""
    board = Board()

    def one(rank):
        part = Average()
        fit = Fit(parts=[part], ranks=Thread(rank, board), **options)
        try:
            return play(rank, fit, part), fit
        except BaseException:
            board.barrier.abort()  # so that the other one does not wait
            raise

    with ThreadPoolExecutor(2) as pool:
        return [done.result() for done in [pool.submit(one, rank) for rank in (0, 1)]]


@pytest.fixture(autouse=True)
def global_generator():
    with torch.random.fork_rng(devices=[]):
        yield


def test_each_rank_restores_its_own_states(warned):
    (_, first), (_, second) = on_two_ranks(lambda rank, fit, part: fit.train())
    decisions = first.tuner.decisions
    assert len(decisions) == HORIZON
    assert second.tuner.decisions == ()
    assert first.journal.check(decisions) == second.journal.check(decisions) >= 3
    assert len(second.driver._run._obeying.held) <= 3
    assert warned() == []


@pytest.mark.parametrize("failing", quick([0, 1], 1))
def test_if_one_rank_cannot_copy_its_state_all_play_the_incumbent(failing, warned):
    def play(rank, fit, part):
        fit.train(20 * STEPS)
        part.fails_to_save = rank == failing
        fit.train(20 * STEPS)

    (_, first), (_, second) = on_two_ranks(play)
    assert first.tuner.is_settled
    decisions = first.tuner.decisions
    assert all(one.restore is None for one in decisions[-15:])
    assert first.driver.restores == second.driver.restores
    (line,) = [one for one in warned() if "no way back" in one]
    assert "could not be copied" in line
    assert ("rank 1" in line) == (failing == 1)


@pytest.mark.parametrize("failing", quick([0, 1], 1))
def test_if_one_rank_cannot_restore_its_state_no_rank_has_changed(failing):
    def play(rank, fit, part):
        fit.train(2 * STEPS)
        weights = fit.weights
        part.fails_to_load = rank == failing
        with pytest.raises(RestoreError):
            fit.train(1)
        assert fit.weights == weights
        part.fails_to_load = False
        fit.train(30 * STEPS)
        return fit.journal

    (ours, first), (theirs, _) = on_two_ranks(play)
    decisions = first.tuner.decisions
    assert decisions[2].restore == 0
    assert ours.check(decisions) == theirs.check(decisions) >= 3


def test_a_fit_that_ends_early_hands_over_the_incumbent_on_all_ranks():
    def play(rank, fit, part):
        fit.train(2 * STEPS)
        weights = fit.weights
        fit.train(STEPS + 1)
        fit.driver.finish()
        assert fit.weights == weights
        return dict(fit.driver.config)

    (ours, first), (theirs, _) = on_two_ranks(play)
    assert ours == theirs == first.tuner.incumbent
