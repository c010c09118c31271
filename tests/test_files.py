"""Files that are replaced as a whole."""

import os
import stat

import pytest

from botorch_costly.files import replacing


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
