"""Cases of parametrized tests: a few run by default, all of them in ``make test-all``."""

import pytest


def quick(cases, *by_default):
    """Return the cases, with all but those named marked as slow.

    Args:
        cases: Values of one parameter, or tuples of several.
        by_default: Those of the cases that the default run has, at least one.
    """
    cases = list(cases)
    assert by_default, "no case is left to the default run"
    assert all(case in cases for case in by_default), "a case by default is none of the cases"
    return [case if case in by_default else slow(case) for case in cases]


def slow(case):
    """Mark one case as slow."""
    values = case if isinstance(case, tuple) else (case,)
    return pytest.param(*values, marks=pytest.mark.slow)
