"""The README and the docs name what exists, their code runs, and retired words stay retired."""

import ast
import importlib
import inspect
import pkgutil
import re
import warnings
from pathlib import Path

import pytest
import torch

import botorch_costly as bc
from tests.cases import slow
from tests.pages import (
    PAGES,
    README,
    ROOT,
    code_of,
    libraries_of,
    prose_of,
    section,
    skip_without,
    text_of,
)

ROOMS = ("", ".tuners", ".rewards", ".query", ".acquisition", ".models", ".models.fitting")
ROOMS += (".kernels", ".optim", ".problems", ".simulation", ".errors", ".bandits")
ROOMS += (".integrations", ".baselines")
ROOMS += (".likelihoods", ".numerics.ep", ".numerics.knowledge_gradient", ".numerics.lookahead")

every_page = pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))


# -- size and links --------------------------------------------------------------------------------


def test_the_readme_is_short():
    assert len(README.read_bytes()) <= 8192


def headings(page):
    """Anchors of a page, as GitHub and MkDocs make them."""
    titles = re.findall(r"^#+ (.+)$", prose_of(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@every_page
def test_relative_links_lead_somewhere(page):
    links = re.findall(r"\]\(([^)\s]+)\)", prose_of(page))
    lost = []
    for link in links:
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in headings(target)):
            lost.append(link)
    assert lost == []


def pages_in_menu():
    menu = text_of(ROOT / "mkdocs.yml").split("\nnav:\n", 1)[1]
    return set(re.findall(r"[\w/-]+\.md", menu))


def test_every_page_is_in_the_menu_and_the_reverse():
    docs = ROOT / "docs"
    assert pages_in_menu() == {page.relative_to(docs).as_posix() for page in docs.rglob("*.md")}


# -- the method index ------------------------------------------------------------------------------


def index():
    """Rows of the method index, each a list of cells."""
    table = section(text_of(README), "Which method for which question")
    return [line.strip("|").split("|") for line in table.splitlines() if line.startswith("| ")][1:]


def test_each_method_has_a_question_a_start_and_its_mathematics():
    rows = index()
    methods = " ".join(row[1] for row in rows)
    for name in ("CE-GP-UCB", "priced query", "bandits", "BOIL", "Fabolas", "RM-GP-UCB"):
        assert name in methods
    for _, method, start, mathematics in rows:
        assert "](" in start or start.strip() == "planned", method
        assert "](" in mathematics, method


@pytest.mark.parametrize(
    "text",
    [section(text_of(README), "Which method for which question")]
    + [text_of(page) for page in PAGES if page.name in ("pieces.md", "ce-gp-ucb.md")],
    ids=["README", "ce-gp-ucb", "pieces"],
)
def test_names_of_an_index_are_public(text):
    rows = "\n".join(line for line in text.splitlines() if line.startswith("|"))
    names = set(re.findall(r"`([A-Z]\w+|[a-z]+(?:_[a-z]+)+|fit|simulate)(?:\([^`]*\))?`", rows))
    elsewhere = {"optimize_acqf", "fit_gpytorch_mll"}  # BoTorch's
    rooms = [importlib.import_module("botorch_costly" + room) for room in ROOMS]
    assert names
    assert [n for n in names - elsewhere if not any(hasattr(room, n) for room in rooms)] == []


@every_page
def test_names_that_pages_take_from_the_package_exist(page):
    named = set(re.findall(r"\bbc\.([A-Za-z_]\w*)", text_of(page)))
    assert [name for name in named if not hasattr(bc, name)] == []


@every_page
def test_cross_references_lead_to_public_names(page):
    for target in re.findall(r"\]\[(botorch_costly[\w.]*)\]", text_of(page)):
        module, name = target.rsplit(".", 1)
        assert hasattr(importlib.import_module(module), name), target


@every_page
def test_files_that_pages_name_exist(page):
    lines = prose_of(page).splitlines()
    text = "\n".join(line for line in lines if not line.startswith("**1.** "))  # to be made
    named = re.findall(r"`((?:botorch_costly|tests|benchmarks|tutorials)/[\w/.-]+)`", text)
    assert [path for path in named if not (ROOT / path).exists()] == []


# -- the code runs ---------------------------------------------------------------------------------


# These take more than a few seconds.
SLOW = {"curves", "optuna", "pictures", "several", "subsets"}
# Libraries that a page needs and does not import itself.
NEEDS = {"trackers": ["tensorboard"]}
# Or Ray writes a token to the home folder, and reports its use.
RAY = {"RAY_AUTH_MODE": "disabled", "RAY_USAGE_STATS_ENABLED": "0"}
WITH_CODE = [page for page in PAGES if code_of(page) and page.name != "CONTRIBUTING.md"]


def run(page):
    """Run the blocks of a page as one program, as a reader pastes them; return its names."""
    program = {"__name__": "__main__"}
    state = torch.get_rng_state()
    torch.manual_seed(0)
    try:
        for number, block in enumerate(code_of(page), 1):
            exec(compile(block, f"{page.name}, block {number}", "exec"), program)
    finally:
        torch.set_rng_state(state)
    return program


@pytest.mark.parametrize(
    "page",
    [slow(page) if page.stem in SLOW else page for page in WITH_CODE if page != README],
    ids=lambda page: page.stem,
)
def test_code_of_pages_runs(page, tmp_path, monkeypatch, capsys):
    code = "\n".join(code_of(page))
    if skip_without([*libraries_of(code), *NEEDS.get(page.stem, ())]):
        warnings.simplefilter("ignore")  # those of the libraries, until the end of the test
    monkeypatch.chdir(tmp_path)
    for name, value in RAY.items():
        monkeypatch.setenv(name, value)
    run(page)


def test_a_block_that_leaves_a_name_to_the_reader_fails(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nx = 1\n```\n\n```python\nprint(x, bc)\n```\n")
    with pytest.raises(NameError, match="bc"):
        run(page)


def test_the_code_of_the_readme_plays_a_whole_run(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    first = code_of(README)[0]
    assert sum(bool(line.strip()) for line in first.splitlines()) <= 24
    assert any(isinstance(node, ast.For) for node in ast.parse(first).body)
    session = run(README)["session"]
    assert len(session.decisions) == 300
    assert len(session.observations) == session.queries > 10
    assert Path("best.pt").exists()


# -- the glossary ----------------------------------------------------------------------------------


def glossary(title):
    """Rows of a table of the glossary: its second cells by its first cells, without the heading.

    In ``Terms`` a row is a term and its meaning; in ``Retired words`` it is the word to use, and in
    backticks the words that it replaces.
    """
    rows = {}
    lines = section(text_of(ROOT / "docs" / "glossary.md"), title).splitlines()
    for row in [line for line in lines if line.startswith("| ")][1:]:
        first, second = (cell.strip() for cell in row.strip("|").split("|"))
        assert first not in rows, f"{first} has two rows"
        rows[first] = second
    return rows


def retired_words():
    """Pairs of a retired word and the word to use."""
    rows = glossary("Retired words")
    return [(word, say) for say, words in rows.items() for word in re.findall(r"`(\w+)`", words)]


def parts(name):
    """Words of a name, whichever way it is written."""
    return {part.lower() for part in re.findall(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+", name)}


def modules():
    found = pkgutil.walk_packages(bc.__path__, "botorch_costly.")
    return [bc, *(importlib.import_module(module.name) for module in found)]


def parameters_of(function):
    try:
        return list(inspect.signature(function).parameters)
    except (TypeError, ValueError):
        return []


def members_of(cls):
    """Names within a class: methods, their parameters, fields."""
    yield from getattr(cls, "__annotations__", {})
    yield from getattr(cls, "_fields", ())
    for name, member in vars(cls).items():
        if not name.startswith("_") or name in ("__init__", "__call__"):
            yield name
            member = getattr(member, "__func__", getattr(member, "fget", member))
            yield from parameters_of(member) if inspect.isfunction(member) else ()


def public_names():
    """Every public name of the package, with where it is."""
    for module in modules():
        where = module.__name__
        yield where.rsplit(".", 1)[-1], where
        ours = {
            name: member
            for name, member in vars(module).items()
            if not inspect.ismodule(member) and getattr(member, "__module__", where) == where
        }
        for name in {*ours, *getattr(module, "__all__", ())}:
            if name.startswith("_"):
                continue
            yield name, f"{where}.{name}"
            member = ours.get(name)
            within = members_of(member) if inspect.isclass(member) else parameters_of(member)
            yield from ((inner, f"{where}.{name}: {inner}") for inner in within if inner[0] != "_")


def test_the_walk_meets_public_names_of_all_kinds():
    names = {name for name, _ in public_names()}
    assert {"path_following", "OnlineTuner", "local_optima", "num_restarts"} <= names
    assert {"effective_horizon", "rival_mean", "ask", "kappa", "UNSURE"} <= names


def test_no_retired_word_is_in_a_public_name():
    retired = dict(retired_words())
    assert len(retired) > 20
    found = {
        f"{where} (say {retired[word]!r} for {word!r})"
        for name, where in public_names()
        for word in parts(name) & retired.keys()
    }
    assert sorted(found) == []


def test_each_word_is_retired_once_and_is_no_term():
    words = [word for word, _ in retired_words()]
    assert sorted(words) == sorted(set(words))
    terms = {*glossary("Terms"), *glossary("Retired words")}
    assert set().union(*map(parts, terms)) & set(words) == set()


def test_the_glossary_has_few_terms_and_each_is_used():
    glossary_page = ROOT / "docs" / "glossary.md"
    files = [*(ROOT / "botorch_costly").rglob("*.py"), *PAGES]
    text = " ".join(text_of(file) for file in files if file != glossary_page)
    text = re.sub(r"[\s_]+", " ", text).lower()
    terms = glossary("Terms")
    assert 20 < len(terms) < 40
    assert [term for term in terms if term not in text] == []


def test_parts_of_a_name():
    assert parts("TimeVaryingUCB") == {"time", "varying", "ucb"}
    assert parts("max_looks") == {"max", "looks"}
    assert parts("DOES_NOT_PAY") == {"does", "not", "pay"}
