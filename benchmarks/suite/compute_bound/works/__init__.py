"""What the networks of these problems learn."""

from benchmarks.suite.compute_bound.works.pictures import Classes, Denoising
from benchmarks.suite.compute_bound.works.text import (
    CHARACTERS,
    NextCharacter,
    help_pages,
    sources,
)

__all__ = ["CHARACTERS", "Classes", "Denoising", "NextCharacter", "help_pages", "sources"]
