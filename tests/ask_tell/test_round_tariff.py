"""How the seconds between calls are split, and how many queries they afford."""

import copy
import math
import pickle

import pytest

from botorch_costly.ask_tell.round_tariff import RoundTariff
from botorch_costly.ask_tell.tariff import Spans, Stock
from tests.tuners.online.states import same
from tests.validation.clock import Clock


class Rounds:
    """Calls of ``ask`` and ``tell`` at the times of a clock."""

    def __init__(self, share=0.1):
        self.clock = Clock()
        self.tariff = RoundTariff(share, self.clock)

    def ask(self, seconds=0.0):
        """Ask after some seconds."""
        self.clock.seconds += seconds
        self.tariff.snapshot()
        self.tariff.begin_round()
        self.tariff.decided()

    def tell(self, seconds, *, queries=1, said=None):
        """Tell after some seconds."""
        self.clock.seconds += seconds
        self.tariff.snapshot()
        self.tariff.tell(queries, said)
        self.tariff.decided()


@pytest.fixture
def rounds():
    """Three rounds of two seconds of training."""
    begun = Rounds()
    for _ in range(4):
        begun.ask(2.0)
    return begun


def test_a_round_without_a_query_is_training_from_ask_to_ask(rounds):
    assert (rounds.tariff.training.total, rounds.tariff.training.units) == (6.0, 3)
    assert rounds.tariff.validation.units == 0


def test_of_a_round_with_a_query_it_is_what_exceeds_training(rounds):
    rounds.tell(5.0)
    rounds.ask()
    assert rounds.tariff.training.total == 8.0
    assert rounds.tariff.validation.total == 3.0


def test_seconds_that_are_said_are_taken(rounds):
    rounds.tell(5.0, said=1.0)
    rounds.ask()
    assert rounds.tariff.training.total == 10.0
    assert rounds.tariff.validation.total == 1.0


def test_a_query_faster_than_the_noise_of_rounds_takes_nothing(rounds):
    rounds.tell(1.5)
    rounds.ask()
    assert (rounds.tariff.training.total, rounds.tariff.validation.total) == (7.5, 0.0)
    assert rounds.tariff.stock() == Stock(math.inf)


def test_queries_told_in_one_round_share_its_seconds(rounds):
    rounds.tell(4.0, queries=2)
    rounds.tell(3.0)
    rounds.ask()
    assert (rounds.tariff.validation.total, rounds.tariff.validation.units) == (5.0, 3)


def test_seconds_of_another_machine_are_no_part_of_the_round(rounds):
    rounds.tell(2.0, said=50.0)
    rounds.ask()
    assert (rounds.tariff.training.total, rounds.tariff.validation.total) == (8.0, 50.0)


def test_a_query_before_any_round_without_one_has_no_price():
    rounds = Rounds()
    rounds.ask()
    rounds.tell(5.0)
    rounds.ask()
    assert rounds.tariff.training.total == 5.0
    assert math.isnan(rounds.tariff.validation.unit)


def test_a_query_that_is_never_told_is_training(rounds):
    rounds.ask(9.0)
    assert (rounds.tariff.training.total, rounds.tariff.validation.total) == (15.0, 0.0)


def test_the_tuners_own_seconds_are_apart_and_count_for_the_share(rounds):
    rounds.tariff.snapshot()
    rounds.clock.seconds += 1.0
    rounds.tariff.decided()
    rounds.ask(2.0)
    assert rounds.tariff.training.total == 8.0
    assert rounds.tariff.deciding.total == 1.0
    assert rounds.tariff.used == pytest.approx(1 / 9)


def test_the_price_of_a_first_query_is_unknown_and_it_is_due_or_not():
    rounds = Rounds(share=0.1)
    assert rounds.tariff.stock_in(0, None) == Stock(0.0)
    due = []
    for number in range(12):
        rounds.ask(1.0)
        due.append(rounds.tariff.stock_in(number, None).now > 0)
    assert due == [False] * 8 + [True] * 4  # nine rounds afford one like them, this one included
    assert rounds.tariff.stock_in(5, 120) == Stock()  # a twentieth of the run is over
    rounds.tell(3.0)
    rounds.ask()
    stock = rounds.tariff.stock_in(12, None)
    assert stock.after(0) == pytest.approx((12 / 9 - 2) / 2)
    assert stock.per_step == pytest.approx(1 / 9 / 2)


@pytest.mark.parametrize(
    ("stock", "steps", "count", "left", "affords"),
    [
        (Stock(), 1, 10**9, 5, True),
        (Stock(1.0), 1, 1, None, True),
        (Stock(1.0), 1, 1, 9, False),  # the last one is put aside
        (Stock(1.0), 9, 1, 9, True),  # this is the last one
        (Stock(0.0, 0.5), 2, 1, None, True),
        (Stock(-1.0, 0.5), 2, 1, None, False),
        (Stock(-1.0, 0.5), 12, 4, None, False),  # the first of the four is not, after three steps
        (Stock(-0.5, 0.5), 12, 4, None, True),
        (Stock(3.0, 0.0), 12, 4, None, False),
        (Stock(1.0, 0.1), 5, 1, 30, True),
        (Stock(0.9, 0.0), 5, 1, 30, False),
    ],
)
def test_a_stock_affords_what_it_grows_to(stock, steps, count, left, affords):
    assert stock.affords(steps, count, left=left) == affords


@pytest.mark.parametrize(
    "copied", [copy.deepcopy, copy.copy, lambda x: pickle.loads(pickle.dumps(x))]
)
def test_a_copy_keeps_the_seconds_of_the_present_round(rounds, copied):
    rounds.tell(5.0)
    rounds.clock.seconds += 1.0
    other = copied(rounds.tariff)
    assert same(other.state_dict(), rounds.tariff.state_dict())
    other.begin_round()
    assert other.validation.total == 4.0
    assert rounds.tariff.validation.total == 0.0
    rounds.ask()
    assert rounds.tariff.validation.total == 4.0


def test_spans_after_the_first_have_their_median():
    spans = Spans()
    for seconds in (90.0, 1.0, 7.0, 2.0):
        spans.add(seconds, 1)
    assert (spans.unit, spans.total) == (2.0, 100.0)
