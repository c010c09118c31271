"""A clock that counts its readings, and the readings of a validation, for tests of trainers."""

import botorch_costly as bc


class Clock:
    """Every span of work takes a second."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        self.now += 1.0
        return self.now


def validation(overhead=0.3, **options):
    return bc.Validation(overhead, clock=Clock(), **options)


def readings(validated):
    """Steps and values of the readings of a validation."""
    return [reading[:2] for reading in validated.state_dict()["history"]["all"]]
