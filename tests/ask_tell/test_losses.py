"""Losses told where the largest value counts as the best: said once, for no error follows from it."""

import logging

import botorch_costly as bc

SPACE = bc.SearchSpace({"x": bc.Real(0.0, 1.0)})
LOSSES = [0.4, 0.5, 0.45, 2.3, 0.6, 0.42, 9.0, 0.5]
XS = [{"x": k / 8} for k in range(8)]


def subset(values, **options):
    tuner = bc.SubsetOptimizer(SPACE, sampling=bc.Sampling(first=20), **options)
    for value in values:
        tuner.tell(tuner.ask(), value, cost=1.0)


def test_losses_are_named(caplog):
    with caplog.at_level(logging.WARNING):
        tasks = [bc.Task(XS, LOSSES), bc.Task(XS, LOSSES)]
        bc.TransferOptimizer(SPACE, tasks)
        bc.SubsetOptimizer(SPACE, tasks=tasks)
        bc.CurveOptimizer(SPACE, 9, tasks=tasks)
        subset([*LOSSES, 3.0])
    assert [record.message.count("maximize=False") for record in caplog.records] == [1] * 4


def test_accuracies_and_losses_that_are_minimized_are_not(caplog):
    scores = [0.1, 0.8, 0.9, 0.91, 0.85, 0.7, 0.3, 0.88]
    bc.TransferOptimizer(SPACE, [bc.Task(XS, scores), bc.Task(XS, [-one for one in LOSSES])])
    bc.TransferOptimizer(SPACE, [bc.Task(XS, LOSSES)], maximize=False)
    bc.SubsetOptimizer(SPACE, tasks=[bc.Task(XS, LOSSES)], maximize=False)
    subset(scores)
    subset(LOSSES, maximize=False)
    assert not caplog.records


def test_rewards_that_rise_with_the_data_are_not(caplog):
    """The kind: -log(error), which has the shape of losses."""

    def told(reward):
        tuner = bc.SubsetOptimizer(SPACE, sampling=bc.Sampling(first=20))
        for number in range(9):
            fraction = 2.0 ** (number - 8)
            decision = tuner.enqueue({"x": number / 8}, {"fraction": fraction})
            tuner.tell(decision, reward(fraction), cost=fraction)

    told(lambda fraction: 0.1 + 0.01 * fraction + 4.0 * fraction**2)
    assert not caplog.records
    told(lambda fraction: 0.1 + 0.01 / fraction)
    assert [record.message.count("maximize=False") for record in caplog.records] == [1]


def test_studies_of_rewards_that_rise_with_the_data_are_not(caplog):
    fractions = [2.0 ** (number - 8) for number in range(9)]
    configs = [{"x": number / 8, "fraction": f} for number, f in enumerate(fractions)]
    bc.SubsetOptimizer(
        SPACE, tasks=[bc.Task(configs, [0.1 + 0.01 * f + 4 * f**2 for f in fractions])]
    )
    assert not caplog.records
    bc.SubsetOptimizer(SPACE, tasks=[bc.Task(configs, [0.1 + 0.01 / f for f in fractions])])
    assert [record.message.count("maximize=False") for record in caplog.records] == [1]
