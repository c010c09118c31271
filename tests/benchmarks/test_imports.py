"""What an import takes is measured in interpreters of their own and told beside BoTorch's."""

from benchmarks.speed import imports
from benchmarks.speed.imports import BASE, measure, seconds_of, text

PACKAGE = "import botorch, botorch_costly"


def rows(package):
    times = {"import torch": 1.5, BASE: 1.8, PACKAGE: package}
    return [
        {"statement": name, "least": s, "median": s + 0.1, "repeats": 3}
        for name, s in times.items()
    ]


def test_times_are_beside_those_of_botorch():
    lines = text(rows(2.0)).splitlines()
    assert lines[3].split()[-3:] == ["2.00", "2.10", "0.20"]
    assert "holds" in lines[-1]
    assert "MISSED" in text(rows(2.2))


def test_the_time_is_that_of_another_interpreter():
    busy = "import time\nwhile time.process_time() < 0.3: pass"
    assert 0.25 <= seconds_of(busy) < 1.0


def test_statements_are_measured_by_turns(monkeypatch):
    order = []
    monkeypatch.setattr(imports, "seconds_of", lambda each: order.append(each) or len(order))
    first, second = measure(("a", "b"), 2)
    assert order == ["a", "b"] * 3
    assert (first["statement"], first["least"], first["median"]) == ("a", 3, 4)
    assert second["repeats"] == 2


def test_what_is_measured_has_the_statement_that_is_judged():
    assert {BASE, PACKAGE} <= set(imports.STATEMENTS)
