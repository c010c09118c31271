"""The site builds without a warning, and every link within it leads somewhere, anchors included."""

from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

mkdocs = pytest.importorskip("mkdocs", reason="needs the extra botorch_costly[docs]")
pytest.importorskip("material", reason="needs the extra botorch_costly[docs]")
pytest.importorskip("mkdocstrings", reason="needs the extra botorch_costly[docs]")

ROOT = Path(__file__).parents[1]
pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]  # those of the theme


class Page(HTMLParser):
    """Anchors of a page, and what it links to or shows."""

    def __init__(self, text):
        super().__init__()
        self.anchors, self.links = set(), set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        self.anchors |= {attrs[key] for key in ("id", "name") if attrs.get(key)}
        self.links |= {attrs[key] for key in ("href", "src") if attrs.get(key)}


def lost_links(site):
    """Links of a built site that lead nowhere, each with its page."""
    pages = {path: Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html")}
    lost = []
    for path, page in pages.items():
        for link in page.links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc or path.name == "404.html":
                continue
            target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
            target = target / "index.html" if target.is_dir() else target
            known = not parts.fragment or target not in pages
            known = known or unquote(parts.fragment) in pages[target].anchors
            if not target.exists() or not target.is_relative_to(site) or not known:
                lost.append(f"{path.relative_to(site)}: {link}")
    return sorted(lost)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site as ``make docs`` builds it."""
    from mkdocs.commands.build import build
    from mkdocs.config import load_config

    folder = tmp_path_factory.mktemp("site").resolve()
    config = load_config(str(ROOT / "mkdocs.yml"), site_dir=str(folder), strict=True)
    config.plugins.on_startup(command="build", dirty=False)
    build(config)
    config.plugins.on_shutdown()
    return folder


def test_every_link_leads_somewhere(site):
    assert len(list(site.rglob("*.html"))) > 50
    assert lost_links(site) == []


def test_every_notebook_is_a_page_with_its_outputs(site):
    for notebook in (ROOT / "tutorials").glob("*.ipynb"):
        page = (site / "notebooks" / f"{notebook.stem}.html").read_text(encoding="utf-8")
        assert f"tutorials/{notebook.name}" in page
        assert f"{notebook.stem}-" in page  # a picture
        assert page.count("<code") > 10


def test_a_link_that_is_lost_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<h1 id="here"><a href="b.html#there">b</a><a href="#here">a</a><img src="c.png">'
    )
    (tmp_path / "b.html").write_text('<a href="a.html#gone">a</a><a href="../a.html">a</a>')
    assert lost_links(tmp_path.resolve()) == [
        "a.html: b.html#there",
        "a.html: c.png",
        "b.html: ../a.html",
        "b.html: a.html#gone",
    ]
