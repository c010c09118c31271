"""Files that are replaced as a whole."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

import botorch_costly
from botorch_costly.files import replacing

PACKAGE = str(Path(botorch_costly.__file__).parent)


def write(path, content):
    with replacing(path) as file:
        file.write(content)


def test_a_file_is_made_and_replaced(tmp_path):
    path = tmp_path / "state"
    for content in (b"first", b"second"):
        write(str(path), content)
        assert path.read_bytes() == content
    assert os.listdir(tmp_path) == ["state"]


def test_the_old_file_is_there_until_all_is_written(tmp_path):
    path = tmp_path / "state"
    write(path, b"old")
    with replacing(path) as file:
        file.write(b"new")
        file.flush()
        assert path.read_bytes() == b"old"
    assert path.read_bytes() == b"new"


@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_after_an_error_the_old_file_is_as_it_was(tmp_path, error):
    path = tmp_path / "state"
    write(path, b"old")

    def write_half():
        with replacing(path) as file:
            file.write(b"half of")
            raise error

    with pytest.raises(error):
        write_half()
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["state"]


def test_a_folder_must_exist(tmp_path):
    with pytest.raises(FileNotFoundError):
        write(tmp_path / "absent" / "state", b"")


@pytest.mark.skipif(os.name != "posix", reason="permissions and links of POSIX")
def test_permissions_and_links_are_kept(tmp_path):
    path, link = tmp_path / "state", tmp_path / "link"
    write(path, b"old")
    plain = tmp_path / "plain"
    plain.write_bytes(b"")
    assert stat.S_IMODE(path.stat().st_mode) == stat.S_IMODE(plain.stat().st_mode)
    path.chmod(0o640)
    link.symlink_to(path)
    write(link, b"new")
    assert link.is_symlink()
    assert path.read_bytes() == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == 0o640


# --- kind: what a killed process leaves is taken for ever, or taken from one that is still writing -----


# The package without its first module, which imports for seconds.
KILLED = """
import os, sys, types
sys.modules["botorch_costly"] = types.ModuleType("botorch_costly")
sys.modules["botorch_costly"].__path__ = [sys.argv[3]]
from botorch_costly.files import replacing
with replacing(sys.argv[1]) as file, replacing(sys.argv[2]):
    file.write(b"half of")
    file.flush()
    os._exit(9)
"""


def test_what_a_killed_process_left_is_removed_by_the_next_save(tmp_path):
    path = tmp_path / "state"
    write(path, b"old")
    paths = [str(tmp_path / name) for name in ("state", "state.pt")]
    subprocess.run([sys.executable, "-c", KILLED, *paths, PACKAGE], check=False)
    left = set(os.listdir(tmp_path)) - {"state"}
    assert len(left) == 2
    (tmp_path / ".state.mine.part").write_bytes(b"")  # of no save
    write(path, b"new")
    assert path.read_bytes() == b"new"
    remains = set(os.listdir(tmp_path)) - {"state", ".state.mine.part"}
    assert [name for name in remains if name.startswith(".state.pt.")] == list(remains)


def test_what_is_being_written_stays(tmp_path):
    path = tmp_path / "state"
    with replacing(path) as file:
        file.write(b"first")
        write(path, b"second, meanwhile")
        assert path.read_bytes() == b"second, meanwhile"
    assert path.read_bytes() == b"first"
    assert os.listdir(tmp_path) == ["state"]


def test_a_long_name_can_be_saved(tmp_path):
    path = tmp_path / ("n" * 250)
    write(path, b"all")
    write(path, b"all of it")
    assert os.listdir(tmp_path) == [path.name]
