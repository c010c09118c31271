"""What the networks of these problems learn."""

from benchmarks.suite.compute_bound.works.autoencoders import SuperResolution, Variational
from benchmarks.suite.compute_bound.works.diffusion import Diffusion
from benchmarks.suite.compute_bound.works.graphs import GraphNodes
from benchmarks.suite.compute_bound.works.melodies import Melodies
from benchmarks.suite.compute_bound.works.pictures import Classes, Denoising
from benchmarks.suite.compute_bound.works.ratings import Ratings
from benchmarks.suite.compute_bound.works.text import (
    CHARACTERS,
    NextCharacter,
    further_sources,
    help_pages,
    sources,
)
from benchmarks.suite.compute_bound.works.widths import Narrow, narrower
from benchmarks.suite.compute_bound.works.words import (
    VOCABULARY,
    NextLetter,
    WordNetwork,
    word_codes,
    words,
)

__all__ = [
    "CHARACTERS",
    "VOCABULARY",
    "Classes",
    "Denoising",
    "Diffusion",
    "GraphNodes",
    "Melodies",
    "Narrow",
    "NextCharacter",
    "NextLetter",
    "Ratings",
    "SuperResolution",
    "Variational",
    "WordNetwork",
    "further_sources",
    "help_pages",
    "narrower",
    "sources",
    "word_codes",
    "words",
]
