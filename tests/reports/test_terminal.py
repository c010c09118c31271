"""A report is tables on a terminal that Rich can write to, and the same plain text everywhere else."""

import os
import re
import sys
import threading

import pytest

import botorch_costly as bc
from botorch_costly.command_line import main
from botorch_costly.reports import saved_runs, text_of
from tests.reports.running import played, saved

pty = pytest.importorskip("pty", reason="needs pseudo-terminals")
CODES = r"\x1b\[([\d;]*)m"  # of bold text and of colours


class Terminal:
    """A pseudo-terminal of a hundred columns that takes the place of the standard output."""

    def __init__(self, monkeypatch):
        self._patch = monkeypatch
        for name in ("NO_COLOR", "FORCE_COLOR"):
            monkeypatch.delenv(name, raising=False)
        self.set(TERM="xterm-256color", COLUMNS="100")

    def set(self, **variables):
        for name, value in variables.items():
            self._patch.setenv(name, value)

    def lose_rich(self):
        for name in ("rich", "rich.console"):
            self._patch.setitem(sys.modules, name, None)

    def shown(self, path, encoding="utf-8"):
        """The output of a report."""
        ours, theirs = pty.openpty()
        written = []
        reader = threading.Thread(target=self._read, args=(ours, written))
        reader.start()
        try:
            with os.fdopen(theirs, "w", encoding=encoding) as stream, self._patch.context() as now:
                now.setattr("sys.stdout", stream)
                code = main(["report", str(path)])
        finally:
            reader.join(60)
            os.close(ours)
        assert code == 0
        return b"".join(written).decode(encoding).replace("\r\n", "\n")

    @staticmethod
    def _read(ours, written):
        try:
            while chunk := os.read(ours, 65536):
                written.append(chunk)
        except OSError:  # as Linux ends a pseudo-terminal
            pass


@pytest.fixture
def terminal(monkeypatch):
    return Terminal(monkeypatch)


def plain(path):
    return "\n\n".join(map(text_of, saved_runs(path))) + "\n"


@pytest.fixture
def path(tmp_path):
    return saved(tmp_path)


def words(text):
    """Words of an output, without escape sequences and the lines of tables."""
    return re.sub(rf"{CODES}|[^\w.<>$\\/]", " ", text).split()


def test_a_terminal_has_tables_and_they_say_what_the_text_says(path, terminal):
    pytest.importorskip("rich", reason="needs the extra botorch_costly[rich]")
    shown = terminal.shown(path)
    assert "\x1b[1m" in shown
    assert "─" * 20 in shown
    assert max(len(line) for line in re.sub(CODES, "", shown).splitlines()) <= 100
    printed = words(shown)
    assert [word for word in words(plain(path)) if word not in printed] == ["run"]  # it is a title
    assert "failed" in printed


def test_no_color_is_respected(path, terminal):
    pytest.importorskip("rich", reason="needs the extra botorch_costly[rich]")
    terminal.set(NO_COLOR="1")
    assert set(re.findall(CODES, terminal.shown(path))) <= {"0", "1"}  # bold is no colour


def test_a_pipe_has_plain_text_whatever_is_installed(path, terminal, capsys):
    terminal.set(FORCE_COLOR="1", TTY_COMPATIBLE="1")
    assert main(["report", str(path)]) == 0
    assert capsys.readouterr().out == plain(path)


def test_a_terminal_without_rich_has_plain_text(path, terminal):
    terminal.lose_rich()
    assert terminal.shown(path) == plain(path)


def test_a_schedule_is_plain_on_a_terminal(tmp_path, terminal):
    played().export_schedule(tmp_path / "schedule.json")
    shown = terminal.shown(tmp_path / "schedule.json")
    assert shown.startswith("schedule: rounds 0 to 15, ")
    assert "\x1b" not in shown


def test_names_in_tables_cannot_command_the_terminal_nor_style_it(tmp_path, terminal):
    pytest.importorskip("rich", reason="needs the extra botorch_costly[rich]")
    space = bc.SearchSpace({"[red]lr\x1b[2J": bc.Real(0.0, 1.0), "größe": bc.Real(0.0, 1.0)})
    tuner = bc.FixedTuner(space, {"[red]lr\x1b[2J": 0.1, "größe": 0.5}, horizon=3)
    tuner.ask()
    path = saved(tmp_path, tuner)
    shown = terminal.shown(path)
    assert r"[red]lr\x1b[2J=0.1, größe=0.5" in shown
    assert "\x1b[2J" not in shown
    assert r"gr\xf6\xdfe=0.5" in terminal.shown(path, encoding="ascii")
