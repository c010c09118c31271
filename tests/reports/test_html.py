"""The page of a run: its content, that names in it do nothing, that it loads nothing."""

import base64
import re
from html.parser import HTMLParser
from xml.etree import ElementTree

import pytest

import botorch_costly as bc
from botorch_costly.command_line import main
from botorch_costly.reports import SavedRun, html_of, picture
from tests.reports.browser import needs_browser, shown
from tests.reports.running import START, played, played_twins, saved

pytest.importorskip("matplotlib")

HOSTILE = "<script>document.title='taken'</script>\"><img src=x onerror=alert(1)>-->\x1b]]>$x$"


class Page(HTMLParser):
    """The tags of a page with their attributes, and the cells of its tables."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.open, self.tables, self.titles = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in ("meta", "img"):
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] in ("td", "th"):
            self.tables[-1][-1][-1] += data
        if self.open and self.open[-1] in ("title", "h1"):
            self.titles.append(data)


@pytest.fixture(scope="module")
def tuner():
    return played()


@pytest.fixture(scope="module")
def text(tuner):
    return html_of([SavedRun.from_state(tuner.state_dict(), "mine")])


@pytest.fixture(scope="module")
def hostile():
    space = bc.SearchSpace({HOSTILE: bc.Choice([HOSTILE, "b"])})
    tuner = bc.FixedTuner(space, {HOSTILE: HOSTILE}, horizon=3)
    tuner.tell(tuner.ask(), 0.5)
    run = SavedRun.from_state(tuner.state_dict(), HOSTILE)
    return html_of([run, run.schedule()])


def test_each_query_has_a_row_with_its_reason(tuner, text):
    facts, reasons, queries, options = Page(text).tables
    assert ["queries", "8 (50% of the rounds), 1 failed, 1 not told"] in facts
    assert queries[0] == ["round", *START, "reward", "reason"]  # no rule computed a confidence
    decided = [d for d in tuner.decisions if d.query]
    assert [(int(row[0]), row[-1]) for row in queries[1:]] == [(d.round, d.reason) for d in decided]
    assert [row[-2] for row in queries[1:5]].count("failed") == 1
    assert [row[-2] for row in queries[1:5]].count("not told") == 1
    assert sum(int(row[2]) for row in reasons[1:]) == len(tuner.decisions)
    assert ["horizon", "40"] in options


def test_confidence_has_a_column_where_a_rule_computes_it(drafts):
    space = bc.SearchSpace({"arm": bc.Choice(["left", "right"])})
    tuner = bc.OnlineTuner(space, 20, query=bc.ConfidenceQuery(0.9), seed=0)
    page = Page(html_of([SavedRun.from_state(tuner.state_dict())]))
    assert ["round", "reward", "reason", "confidence"] in page.tables[2]  # no query yet
    for _ in range(8):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, 0.5)
    page = Page(html_of([SavedRun.from_state(tuner.state_dict())]))
    assert page.tables[2][0][-1] == "confidence"


@pytest.mark.parametrize("metric", ["loss", "accuracy"])
def test_a_metric_that_was_told_has_its_name(metric, monkeypatch):
    """Kind: a page calls every metric a reward, a loss too."""
    drawn = []
    monkeypatch.setattr(picture, "_file_of", lambda draw, _: drawn.append(draw()) or b"<svg/>")
    page = Page(html_of([SavedRun.from_state(played_twins(metric).state_dict())]))
    headers = [row for table in page.tables for row in table if metric in row]
    assert len(headers) == 1
    assert "reward" not in headers[0]
    assert metric in [ax.get_ylabel() for ax in drawn[0].axes]


def test_names_are_text_and_nothing_is_loaded(text, hostile):
    for page in (Page(text), Page(hostile)):
        allowed = {"html", "head", "meta", "title", "style", "body", "h1", "h2", "p", "img"}
        allowed |= {"strong", "br"}
        assert {tag for tag, _ in page.tags} <= allowed | {"table", "tr", "td", "th"}
        assert {name for _, attributes in page.tags for name in attributes} <= {
            *("lang", "charset", "http-equiv", "content", "alt", "src")
        }
        sources = [attributes["src"] for tag, attributes in page.tags if tag == "img"]
        assert len(sources) >= 1
        assert all(re.match(r"data:image/svg\+xml;base64,[\w+/=]+$", source) for source in sources)
        for source in sources:
            picture = ElementTree.fromstring(base64.b64decode(source.partition(",")[2]))
            assert picture.tag.endswith("}svg")
    cells = [cell for table in Page(hostile).tables for row in table for cell in row]
    assert cells.count(HOSTILE) >= 3
    assert f"{HOSTILE} (FixedTuner)" in Page(hostile).titles


@pytest.mark.slow
def test_of_several_runs_their_queries_are_shown_first(tuner):
    runs = [SavedRun.from_state(tuner.state_dict(), name) for name in ("first $x$", "second")]
    begun = Page(html_of(runs))
    assert begun.titles[1] == "Queries of all runs"
    texts = [attributes["alt"] for tag, attributes in begun.tags if tag == "img"]
    assert texts == ["The queries of the runs"] + 2 * ["The hyperparameters over the rounds"]
    alone = Page(html_of([runs[0], SavedRun.from_state(played(rounds=0).state_dict())]))
    assert len([tag for tag, _ in alone.tags if tag == "img"]) == 1


def test_a_run_that_has_not_begun_has_a_page():
    page = Page(html_of([SavedRun.from_state(played(rounds=0).state_dict())]))
    assert not [tag for tag, _ in page.tags if tag == "img"]


def test_the_command_writes_the_page(tmp_path, capsys, tuner):
    target = tmp_path / "run.html"
    arguments = ["report", str(saved(tmp_path, tuner)), "--html", str(target)]
    target.write_text("mine")
    assert main(arguments) == 2
    assert target.read_text() == "mine"
    assert main([*arguments, "--force"]) == 0
    assert Page(target.read_text(encoding="utf-8")).titles[0] == "tuner (OnlineTuner)"
    assert "--force" in capsys.readouterr().err


@needs_browser
def test_a_browser_shows_it_and_runs_nothing(tmp_path, hostile):
    page = tmp_path / "run.html"
    page.write_text(hostile, encoding="utf-8")
    seen = Page(shown(page, tmp_path, "--timeout=5000"))
    assert f"{HOSTILE} (FixedTuner)" in seen.titles
    assert not [tag for tag, _ in seen.tags if tag == "script"]
    assert len([tag for tag, _ in seen.tags if tag == "img"]) == 2
