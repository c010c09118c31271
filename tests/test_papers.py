"""Each page of a paper begins with a table of its tables and figures, whose commands and rows exist."""

import re

import pytest

from benchmarks.__main__ import REGISTRY
from benchmarks.harness.record import RESULTS, read
from tests.pages import ROOT, text_of

PAPERS = sorted((ROOT / "docs" / "papers").glob("*.md"))
HEAD = ["in the paper", "here", "printed", "ours", "seeds, size"]


def cells_of(line):
    return [cell.strip() for cell in line.strip().strip("|").split("|")]


def table_of(text):
    """The lines of the first table whose head is ``HEAD``, without it."""
    lines = text.splitlines()
    heads = [number for number, line in enumerate(lines) if cells_of(line) == HEAD]
    if not heads:
        return []
    rows = []
    for line in lines[heads[0] + 2 :]:
        if not line.startswith("|"):
            break
        rows.append(cells_of(line))
    return rows


def faults_of(row, page):
    """What is wrong with a row of a table, in words."""
    if len(row) != len(HEAD) or not all(row):
        return ["a cell is missing or empty"]
    place, here, _, ours, size = row
    faults = []
    commands = [words.split()[0] for words in re.findall(r"`([^`]+)`", here)]
    unknown = [name for name in commands if re.fullmatch(r"[a-z0-9-]+", name) and "-" in name]
    faults += [f"{name} is no benchmark" for name in unknown if name not in REGISTRY]
    links = re.findall(r"\]\(([^)#]*results/([\w-]+)\.md)\)", here)
    for link, name in links:
        if not (page.parent / link).exists():
            faults.append(f"{link} does not exist")
        if not read(name, RESULTS):
            faults.append(f"{name} has no stored rows")
    if ours.startswith("not run: ") or size == "-":
        return faults
    if not any(name in REGISTRY for name in commands):
        faults.append("no command")
    if not links:
        faults.append("no page of results")
    if "as in the paper" not in size and not size.startswith("in small: "):
        faults.append("neither of the paper's size nor in small")
    if size.startswith("in small: ") and "reproduce" in ours:
        faults.append("called reproduced in small")
    return [f"{place}: {fault}" for fault in faults]


@pytest.mark.parametrize("page", PAPERS, ids=lambda page: page.stem)
def test_the_table_of_a_paper_names_commands_and_stored_rows(page):
    rows = table_of(text_of(page))
    assert len(rows) >= 8
    assert not [fault for row in rows for fault in faults_of(row, page)]
    # It is the first of the page: what stands and what does not comes before all numbers.
    assert text_of(page).index("|") == text_of(page).index("| in the paper")


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        (["Table 1", "`tabel-a1`", ".1", ".2", "as in the paper"], "tabel-a1 is no benchmark"),
        (["Table 1", "`table-a1`", ".1", ".2", "as in the paper"], "no page of results"),
        (["Table 1", "[rows](../../benchmarks/results/demo.md)", ".1", ".2", "-"], None),
        (
            ["Table 1", "`demo` ([rows](../../benchmarks/results/lost.md))", ".1", ".2", "-"],
            "lost.md does not exist",
        ),
        (
            ["Table 1", "`demo` ([rows](../../benchmarks/results/demo.md))", ".1", ".2", "a tenth"],
            "neither of the paper's size",
        ),
        (
            [
                *("Table 1", "`demo` ([rows](../../benchmarks/results/demo.md))", ".1"),
                *("reproduced", "in small: a tenth"),
            ],
            "called reproduced in small",
        ),
        (["Table 1", "-", ".1", "not run: no data", "-"], None),
        (["Table 1", "-", ".1", ""], "missing or empty"),
    ],
)
def test_faults_of_a_row_are_found(row, fault):
    found = faults_of(row, PAPERS[0])
    assert (fault is None) == (found == [])
    assert fault is None or any(fault in text for text in found)
