"""A sentence of a page whose numbers come from stored rows, and which numbers of a page have no quote."""

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import NamedTuple

from benchmarks.harness.provenance import ROOT
from benchmarks.harness.statistics import Estimate

Value = float | Estimate

PAGES = (
    "README.md",
    "docs/numbers.md",
    *(f"docs/guide/{p.name}" for p in sorted((ROOT / "docs/guide").glob("*.md"))),
)
BASELINE = ROOT / "benchmarks" / "quotes" / "unquoted.json"

_WORDS = (
    *("none", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"),
    *("eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen"),
    *("nineteen", "twenty"),
)
_DIGITS = r"(?:\d{1,3}(?:,\d{3})+|\d+)(?:\.\d+)?(?:e-?\d+)?|\.\d+"
# A sign follows no letter or digit: the ten of CIFAR-10 is no number, and 3-4 are two of them.
_NUMBER = re.compile(rf"(?<![\w.])(?<![A-Za-z]-)[-+]?(?:{_DIGITS})(?!\w|-[A-Za-z]|\.\d)")
# What is left out of a page, and the group of it that stays.
_LEFT_OUT = (
    (re.compile(r"^```.*?^```$", re.M | re.S), 0),
    (re.compile(r"<!--.*?-->", re.S), 0),
    (re.compile(r"^ *\d+\. ", re.M), 0),  # numbers of list items
    (re.compile(r"!?\[((?:[^\[\]]|\[[^\]]*\])*)\](?:\([^)\s]*\)|\[[\w.]*\])"), 1),  # addresses
    (re.compile(r"\*\*"), 0),
    (re.compile(r"(\s)\s*"), 1),
)
_YEAR = re.compile(r"(?:19|20)\d\d")
_GAP = rf"([-+]?(?:{_DIGITS})|\b(?:{'|'.join(_WORDS)})\b)"


@dataclass(frozen=True)
class Quote:
    """A sentence, or a piece of it that occurs once in its page, and its numbers in the stored rows.

    Args:
        page: The path of the page from the root of the repository.
        sentence: The piece of the page, with ``#`` for each number.
        values: Returns the numbers in their order, each as it is or with its interval.
    """

    page: str
    sentence: str
    values: Callable[[], Sequence[Value]]


class Number(NamedTuple):
    """A number as it is printed, and the stored rows' value."""

    printed: str
    value: Value

    @property
    def holds(self) -> bool:
        """Whether the value, rounded to the digits that are printed, is the printed number."""
        value = self.value.value if isinstance(self.value, Estimate) else self.value
        return abs(number_of(self.printed) - value) <= 0.5 * unit_of(self.printed) * (1 + 1e-6)


def number_of(printed: str) -> float:
    """Return the value of a printed number, which may be a word."""
    word = printed.lower()
    return float(_WORDS.index(word)) if word in _WORDS else float(printed.replace(",", ""))


def unit_of(printed: str) -> float:
    """Return the worth of the last digit of a printed number."""
    mantissa, _, exponent = printed.partition("e") if printed[-1].isdigit() else (printed, "", "")
    decimals = len(mantissa.partition(".")[2])
    return 10.0 ** (int(exponent or 0) - decimals)


def plain(text: str) -> str:
    """Return the text of a page: without code blocks, comments, marks and addresses, on one line."""
    return _plain(text)[0]


def _plain(text: str) -> tuple[str, list[int]]:
    """Return the plain text, and the place of each of its characters in the text."""
    places = list(range(len(text)))
    for pattern, kept in _LEFT_OUT:
        pieces: list[str] = []
        where: list[int] = []
        last = 0
        for match in pattern.finditer(text):
            low, high = match.span(kept) if kept else (match.start(), match.start())
            pieces += [text[last : match.start()], text[low:high]]
            where += places[last : match.start()] + places[low:high]
            last = match.end()
        text, places = "".join([*pieces, text[last:]]), where + places[last:]
    for line_end in "\n\t":
        text = text.replace(line_end, " ")
    return text.replace("\N{MINUS SIGN}", "-"), places


@cache
def text_of(page: str, root: Path = ROOT) -> str:
    """Return the plain text of a page."""
    return plain((root / page).read_text(encoding="utf-8"))


def place_of(quote: Quote, text: str) -> re.Match[str]:
    """Return the place of a sentence in a page.

    Raises:
        LookupError: If the page has the sentence not at all, or more than once.
    """
    pattern = _GAP.join(map(re.escape, plain(quote.sentence).strip().split("#")))
    places = list(re.finditer(pattern, text, flags=re.I))
    if len(places) != 1:
        raise LookupError(f"{quote.page} has {len(places)} times: {quote.sentence}")
    return places[0]


def numbers_of(quote: Quote, text: str) -> list[Number]:
    """Return the numbers of a quote, printed and computed.

    Raises:
        LookupError: If the sentence is not in the page, or has more or fewer numbers than the rows give.
    """
    printed, values = place_of(quote, text).groups(), quote.values()
    if len(printed) != len(values):
        raise LookupError(f"{len(values)} values for {len(printed)} numbers of {quote.sentence}")
    return [Number(text, value) for text, value in zip(printed, values, strict=True)]


def rewritten(text: str, quotes: Sequence[Quote]) -> str:
    """Return a page with the numbers of its stored rows in place of stale ones, to as many digits.

    The words around them are not changed, and may no longer be true.
    """
    short, places = _plain(text)
    changes = []
    for quote in quotes:
        place = place_of(quote, short)
        for group, number in enumerate(numbers_of(quote, short), 1):
            if not number.holds:
                low, high = place.span(group)
                changes.append((places[low], places[high - 1] + 1, written(number)))
    for low, high, new in sorted(changes, reverse=True):
        sign = "\N{MINUS SIGN}" if "\N{MINUS SIGN}" in text[low:high] else "-"
        text = text[:low] + new.replace("-", sign) + text[high:]
    return text


def written(number: Number) -> str:
    """Return the value of a number in the way in which the number is printed."""
    printed, value = number
    value = value.value if isinstance(value, Estimate) else value
    if printed.lower() in _WORDS:
        count = round(value)
        return _WORDS[count] if 0 <= count < len(_WORDS) else f"{count}"
    mantissa, exponent, _ = printed.partition("e")
    decimals = len(mantissa.partition(".")[2])
    text = f"{value:+,.{decimals}{'e' if exponent else 'f'}}"
    text = re.sub(r"e([-+])0*", r"e\1", text).replace("e+", "e")
    if mantissa.lstrip("+-").startswith("."):
        text = re.sub(r"^([-+])0\.", r"\1.", text)
    return text if printed.startswith("+") else text.removeprefix("+")


def unquoted(quotes: Sequence[Quote], page: str, text: str) -> Counter[str]:
    """Return the numbers of a page that are in none of its quotes, and not in code and no year."""
    covered = [span for quote in quotes if quote.page == page for span in _spans(quote, text)]
    covered += [match.span() for match in re.finditer("`[^`]*`", text)]
    return Counter(
        match.group()
        for match in _NUMBER.finditer(text)
        if not _YEAR.fullmatch(match.group())
        and not any(low <= match.start() < high for low, high in covered)
    )


def baseline() -> dict[str, Counter[str]]:
    """Return by page the numbers that have no quote yet."""
    stored = json.loads(BASELINE.read_text(encoding="utf-8")) if BASELINE.exists() else {}
    return {page: Counter(numbers.split()) for page, numbers in stored.items()}


def write_baseline(left: dict[str, Counter[str]]) -> None:
    """Store by page the numbers that have no quote."""
    lines = {page: " ".join(sorted(numbers.elements())) for page, numbers in left.items()}
    text = json.dumps({page: line for page, line in lines.items() if line}, indent=1)
    BASELINE.write_text(text + "\n", encoding="utf-8")


def _spans(quote: Quote, text: str) -> Iterator[tuple[int, int]]:
    place = place_of(quote, text)
    return (place.span(group + 1) for group in range(len(place.groups())))
