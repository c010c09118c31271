"""The table of all quotes, printed with the numbers that the stored rows give today."""

import sys

from benchmarks.harness.command_line import parser_for
from benchmarks.harness.provenance import ROOT
from benchmarks.harness.statistics import Estimate
from benchmarks.quotes import (
    contrastive,
    papers,
    populations,
    priced,
    searches,
    self_tuning,
    short,
    speed,
    suite,
    validation,
)
from benchmarks.quotes.quote import (
    PAGES,
    Number,
    Value,
    baseline,
    numbers_of,
    rewritten,
    text_of,
    unquoted,
    write_baseline,
)

MODULES = (
    short,
    suite,
    populations,
    priced,
    contrastive,
    self_tuning,
    validation,
    searches,
    speed,
    papers,
)
QUOTES = tuple(quote for module in MODULES for quote in module.QUOTES)


def shown(value: Value) -> str:
    """Return a number of the rows with its 95 % interval, if it has one."""
    if isinstance(value, Estimate):
        return f"{value.value:.6g} ({value.low:.6g} to {value.high:.6g})"
    return f"{value:.6g}"


def lines_of(sentence: str, numbers: list[Number]) -> list[str]:
    """Return a sentence with its printed numbers, and a line for each number."""
    parts = sentence.split("#")
    filled = "".join(a + n.printed for a, n in zip(parts, numbers, strict=False)) + parts[-1]
    marks = (f"  {n.printed:>8}  {shown(n.value)}{'' if n.holds else '  STALE'}" for n in numbers)
    return [filled, *marks]


def main(arguments: list[str]) -> None:
    """Compute the numbers of pages from the stored rows; exit with 1 if a printed one is stale."""
    parser = parser_for("quotes", "the numbers of pages from the stored rows, with their intervals")
    parser.add_argument(
        "--pages",
        nargs="+",
        choices=sorted({quote.page for quote in QUOTES}),
        default=["README.md"],
    )
    parser.add_argument(
        "--baseline",
        action="store_true",
        help="take the numbers out of unquoted.json that are quoted now, or gone",
    )
    parser.add_argument(
        "--write",
        action="store_true",
        help="write the rows' numbers into the pages; read the words",
    )
    options = parser.parse_args(arguments)
    if options.write:
        for page in options.pages:
            path, mine = ROOT / page, [quote for quote in QUOTES if quote.page == page]
            path.write_text(rewritten(path.read_text("utf-8"), mine), "utf-8")
        return
    if options.baseline:
        left = {page: unquoted(QUOTES, page, text_of(page)) for page in PAGES}
        stored = baseline()
        write_baseline({page: left[page] & stored.get(page, left[page]) for page in PAGES})
        return
    stale = 0
    for page in options.pages:
        quotes = [quote for quote in QUOTES if quote.page == page]
        print(f"== {page}: {len(quotes)} quotes ==\n")
        for quote in quotes:
            numbers = numbers_of(quote, text_of(page))
            stale += sum(not number.holds for number in numbers)
            print("\n".join(lines_of(quote.sentence, numbers)) + "\n")
    if stale:
        sys.exit(f"{stale} printed numbers are not those of the rows.")
