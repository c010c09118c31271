"""Sizes of the settings of self-tuning networks."""

from benchmarks.training.schedule.recipes import CPU, MIDDLE, PUBLISHED


def test_the_settings_of_the_processor_have_as_many_steps():
    def steps(recipe):
        return recipe.horizon * recipe.steps

    assert steps(CPU) == steps(MIDDLE) == 2_000
    assert CPU.validation / CPU.steps == MIDDLE.validation / MIDDLE.steps  # queries cost alike


def test_the_published_setting_is_that_of_the_paper():
    sizes = PUBLISHED.train, PUBLISHED.validation, PUBLISHED.epochs, PUBLISHED.learning_rate
    assert sizes == (4_000, 1_000, 150, 0.1)
    assert [round(150 * share) for share in PUBLISHED.decays] == [60, 100, 120]
    assert len(PUBLISHED.plan) == 13
    assert len(PUBLISHED.hyperparameters) == 13 + 8
