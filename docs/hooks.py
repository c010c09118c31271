"""Hooks of the docs: the pictures of ``benchmarks/results`` belong to the site, too.

Pages name them by their place in the repository, where they can be read without a build. In the
site they lie in ``images``.
"""

import re
from pathlib import Path
from typing import Any

from mkdocs.structure.files import File

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
_PICTURE = re.compile(r"\((?:\.\./)+benchmarks/results/([\w-]+\.png)\)")


def on_files(files: Any, config: Any, **_: Any) -> Any:
    """Add the pictures to the files of the site."""
    for picture in sorted(RESULTS.glob("*.png")):
        files.append(File.generated(config, f"images/{picture.name}", abs_src_path=str(picture)))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Point a page to the pictures in the site."""
    up = "../" * page.file.src_uri.count("/")
    return _PICTURE.sub(rf"({up}images/\1)", markdown)
