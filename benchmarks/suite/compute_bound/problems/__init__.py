"""Runs that end long before the loss has: some choose defaults, the others confirm them."""

from collections.abc import Callable

from benchmarks.suite.compute_bound.problems.generative import diffusion, super_resolution, vae
from benchmarks.suite.compute_bound.problems.language import (
    character_mlp,
    fine_tuning_text,
    recurrent_text,
    small_gpt,
    transformer_text,
    word_language_model,
)
from benchmarks.suite.compute_bound.problems.pictures import (
    cifar_one_pass,
    denoising,
    fine_tuning_pictures,
    mnist_one_pass,
)
from benchmarks.suite.compute_bound.problems.structures import graph_nodes, ratings, tones
from benchmarks.suite.compute_bound.training import LongProblem

CHOICE: tuple[Callable[[], LongProblem], ...] = (
    transformer_text,
    cifar_one_pass,
    denoising,
    recurrent_text,  # was to confirm, until its stall taught what to do about stalls
    fine_tuning_text,  # was to confirm, until its bad starts taught that rates which are close go on
    graph_nodes,
    diffusion,
    character_mlp,
)
CONFIRMATION: tuple[Callable[[], LongProblem], ...] = (
    mnist_one_pass,
    fine_tuning_pictures,
    tones,
    ratings,
    small_gpt,
    vae,
    super_resolution,
    word_language_model,
)
PROBLEMS = {make.__name__: make for make in (*CHOICE, *CONFIRMATION)}
