"""Hooks of the docs: the pictures of ``benchmarks/results`` and the notebooks belong to the site, too.

Pages name them by their place in the repository, where they can be read without a build. In the
site pictures lie in ``images``, and each notebook is a page of ``notebooks``; other files of the
repository are not in it, and are named there.
"""

import base64
import json
import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

DOCS = Path(__file__).parent
ROOT = DOCS.parent
RESULTS = ROOT / "benchmarks" / "results"
NOTEBOOKS = sorted((ROOT / "tutorials").glob("*.ipynb"))
_PICTURE = re.compile(r"\((?:\.\./)+benchmarks/results/([\w-]+\.png)\)")
_NOTEBOOK = re.compile(r"\((?:\.\./)+tutorials/([\w-]+)\.ipynb\)")
_DOCS = re.compile(r"\]\(\.\./docs/")  # a link of a notebook to a page
_SIBLING = re.compile(r"\]\(([\w-]+)\.ipynb\)")  # a link of a notebook to another one
_LINK = re.compile(r"(?<!!)\[([^\]]+)\]\((\.\./[^)#]*)(?:#[^)]*)?\)")


def on_config(config: Any, **_: Any) -> Any:
    """Add the notebooks to the menu, before the numbers."""
    pages = [{_title(path): f"notebooks/{path.stem}.md"} for path in NOTEBOOKS]
    at = next(i for i, entry in enumerate(config.nav) if "Numbers" in entry)
    config.nav.insert(at, {"Notebooks": pages})
    return config


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the pictures and the notebooks to the files of the site."""
    for picture in sorted(RESULTS.glob("*.png")):
        files.append(File.generated(config, f"images/{picture.name}", abs_src_path=str(picture)))
    for notebook in NOTEBOOKS:
        for name, content in _parts(notebook):
            files.append(File.generated(config, f"notebooks/{name}", content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point a page to the pictures and the notebooks in the site."""
    up = "../" * page.file.src_uri.count("/")
    markdown = _PICTURE.sub(rf"({up}images/\1)", markdown)
    markdown = _NOTEBOOK.sub(rf"({up}notebooks/\1.md)", markdown)
    return _without_links_out(markdown, (DOCS / page.file.src_uri).parent)


def _without_links_out(markdown: str, folder: Path) -> str:
    """Name the files that only the repository has, instead of linking to them."""

    def named(found: re.Match[str]) -> str:
        text, link = found.groups()
        target = Path(os.path.normpath(folder / link))
        if target.is_relative_to(DOCS):
            return found.group()
        path = f"`{target.relative_to(ROOT).as_posix()}`"
        return text if path in text else f"{text} ({path})"

    return _LINK.sub(named, markdown)


def _cells(notebook: Path) -> list[dict[str, Any]]:
    return json.loads(notebook.read_text(encoding="utf-8"))["cells"]


def _title(notebook: Path) -> str:
    return "".join(_cells(notebook)[0]["source"]).splitlines()[0].lstrip("# ")


def _parts(notebook: Path) -> Iterator[tuple[str, str | bytes]]:
    """Yield the pictures of a notebook, and then its page, each with its name."""
    blocks: list[str] = []
    for i, cell in enumerate(_cells(notebook)):
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            linked = _SIBLING.sub(r"](\1.md)", _without_links_out(source, notebook.parent))
            blocks.append(_DOCS.sub("](../", linked))
            continue
        blocks.append(f"```python\n{source}\n```")
        for k, output in enumerate(cell["outputs"]):
            data = output.get("data", {})
            if "image/png" in data:
                name = f"{notebook.stem}-{i}-{k}.png"
                yield name, base64.b64decode(data["image/png"])
                blocks.append(f"![What this cell draws]({name})")
            else:
                text = "".join(output.get("text", data.get("text/plain", ""))).rstrip("\n")
                blocks.append(f"```text\n{text}\n```")
    blocks.append(f"*This page is the notebook `tutorials/{notebook.name}` as it was executed.*")
    yield f"{notebook.stem}.md", "\n\n".join(blocks) + "\n"
