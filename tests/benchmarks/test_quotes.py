"""Every number that a page quotes is the stored rows', and numbers without a quote only become fewer."""

from collections import Counter

import pytest

from benchmarks.harness.statistics import Estimate
from benchmarks.quotes import table
from benchmarks.quotes.quote import (
    PAGES,
    Number,
    Quote,
    baseline,
    numbers_of,
    place_of,
    plain,
    rewritten,
    text_of,
    unit_of,
    unquoted,
    written,
)
from benchmarks.quotes.table import QUOTES


def name_of(quote):
    return f"{quote.page}: {quote.sentence[:60]}"


@pytest.mark.parametrize("quote", QUOTES, ids=name_of)
def test_a_quote_is_what_the_stored_rows_say(quote):
    numbers = numbers_of(quote, text_of(quote.page))
    stale = [number for number in numbers if not number.holds]
    assert not stale, f"{quote.page}: {quote.sentence}"


@pytest.mark.parametrize("page", PAGES)
def test_numbers_without_a_quote_only_become_fewer(page):
    """New numbers need a quote in ``benchmarks/quotes``; ``--baseline`` drops those that are gone."""
    left, before = unquoted(QUOTES, page, text_of(page)), baseline().get(page, Counter())
    assert left - before == Counter(), "numbers without a quote that are new"
    assert before - left == Counter(), "run python -m benchmarks quotes --baseline"


def test_all_numbers_of_the_readme_are_quoted_but_versions():
    assert unquoted(QUOTES, "README.md", text_of("README.md")) == Counter(["3.11", "2.11"])
    assert sum(len(quote.values()) for quote in QUOTES if quote.page == "README.md") >= 30


# -- the mechanism ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("printed", "value", "holds"),
    [
        ("94.5", 94.549, True),
        ("94.5", 94.551, False),
        ("94.5", 94.449, False),
        ("+39", 38.53, True),
        ("-0.2", -0.16, True),
        ("-0.2", 0.16, False),
        (".0049", 0.00494, True),
        (".0049", 0.0048, False),
        ("1,091", 1091, True),
        ("1,091", 1092, False),
        ("eleven", 11, True),
        ("Eleven", 10, False),
        ("none", 0, True),
        ("2e-5", 2.2e-5, True),
        ("2e-5", 3e-5, False),
        ("0.38", Estimate(0.381, 0.2, 0.9), True),
    ],
)
def test_numbers_are_compared_at_the_digits_that_are_printed(printed, value, holds):
    assert Number(printed, value).holds is holds


def test_the_unit_of_a_number_is_that_of_its_last_digit():
    assert [unit_of(text) for text in ("12", "0.05", ".0049", "seven")] == [1, 0.01, 0.0001, 1]


PAGE = plain("""Losses fall by **7 %** ([rows](a/b/1.md)), from −0.54
to 0.06, on CIFAR-10 in 2021; `Hold(share=0.05)` is set.

```python
space = 3
```
""")


def quote(sentence, *values):
    return Quote("page.md", sentence, lambda: values)


def test_sentences_are_found_across_lines_marks_and_addresses():
    numbers = numbers_of(quote("Losses fall by # % (rows), from # to #,", 7.2, -0.54, 0.1), PAGE)
    assert [number.printed for number in numbers] == ["7", "-0.54", "0.06"]
    assert [number.holds for number in numbers] == [True, True, False]


def test_a_sentence_that_is_not_there_or_has_other_numbers_is_an_error():
    with pytest.raises(LookupError, match="0 times"):
        place_of(quote("Losses rise by # %", 7.2), PAGE)
    with pytest.raises(LookupError, match="2 times"):
        place_of(quote("#", 1.0), plain("1 and 2"))
    with pytest.raises(LookupError, match="2 values for 1"):
        numbers_of(quote("fall by # %", 7.2, 1.0), PAGE)


def test_numbers_of_prose_are_counted_without_code_names_and_years():
    assert unquoted([], "page.md", PAGE) == Counter(["7", "-0.54", "0.06"])
    assert unquoted([quote("fall by # %", 7.2)], "page.md", PAGE) == Counter(["-0.54", "0.06"])
    assert unquoted([], "page.md", plain("3-4 of 1,000, .5 (12).")) == Counter(
        ["3", "4", "1,000", ".5", "12"]
    )


RAW = """Losses fall by **7 %** ([rows](a/b/1.md)), from −0.54
to 0.06, on three of 1,200 runs, .0049 and +3."""


def test_stale_numbers_are_rewritten_in_the_way_they_are_printed():
    quotes = [
        quote("Losses fall by # %", 12.4),
        quote("from # to #, on # of # runs, # and #", -0.549, 0.06, 11, 3456, 0.00123, -2),
    ]
    assert rewritten(RAW, quotes) == (
        """Losses fall by **12 %** ([rows](a/b/1.md)), from −0.55
to 0.06, on eleven of 3,456 runs, .0012 and -2."""
    )
    assert rewritten(RAW, [quote("Losses fall by # %", 7.2)]) == RAW


def test_rewritten_numbers_hold():
    for printed, value in (("2e-5", 3.4e-5), ("twenty", 31), ("0.5", -0.26), (".9", 1.04)):
        stale = Number(printed, value)
        assert not stale.holds
        assert Number(written(stale), value).holds


def test_the_command_prints_intervals_and_fails_if_a_number_is_stale(monkeypatch, capsys):
    stale = Quote("README.md", "Accuracy rises from # %", lambda: [Estimate(1.0, 0.5, 1.5)])
    monkeypatch.setattr(table, "QUOTES", (stale,))
    with pytest.raises(SystemExit, match="1 printed"):
        table.main([])
    printed = capsys.readouterr().out
    assert "1 (0.5 to 1.5)  STALE" in printed
    assert "Accuracy rises from 59 %" in printed
