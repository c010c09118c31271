"""The package is in plain English: no relative "what", no bare "Of", no names that say nothing."""

import ast
from pathlib import Path

import botorch_costly
from tests.prose import VAGUE, names_in, read

PACKAGE = Path(botorch_costly.__file__).parent


def test_the_package_is_in_plain_english():
    prose = read([PACKAGE])
    assert prose.words > 50_000
    assert prose.arguments > 1_000
    assert prose.locals > 5_000
    what, bare, vague = prose.rates
    places = "\n".join(prose.places)
    assert what < 1.0, places
    assert bare == 0.0, places
    assert vague < 0.01, places


def test_each_kind_of_dialect_is_found(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        '''"""Say what is told."""


def told(known, plain):
    """Return what was found.

    Args:
        known: Of the run.
        plain: The horizon.
    """
    for one in known:
        part = one
    return part
''',
        encoding="utf-8",
    )
    prose = read([tmp_path])
    assert (prose.what, prose.bare, prose.arguments) == (2, 1, 2)
    assert set(prose.names) == {"known", "one", "part"} <= VAGUE
    assert prose.locals == 4
    assert list(names_in(ast.parse("x = 1"))) == [("x", 1)]
