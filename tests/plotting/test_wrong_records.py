"""What a picture cannot show is refused at the door: a tuner in place of its records, and the like."""

import pytest

from botorch_costly import CurveOptimizer, OnlineTuner, Real, SearchSpace, plotting
from botorch_costly.errors import CostlyError

pytest.importorskip("matplotlib")

SPACE = SearchSpace({"lr": Real(1e-3, 1.0, log=True), "dropout": Real(0.0, 0.5)})


def tuner_of_a_run():
    tuner = OnlineTuner(SPACE, horizon=6)
    for _ in range(6):
        decision = tuner.ask()
        if decision.query:
            tuner.tell(decision, 0.1)
    return tuner


TUNER = tuner_of_a_run()
DECISIONS = TUNER.decisions
WRONG = {
    "the tuner": TUNER,
    "another optimizer": CurveOptimizer(SPACE, iterations=4),
    "its class": OnlineTuner,
    "its history": TUNER.history,
    "its summary": TUNER.summary(),
    "limits by name": {"momentum": (0.1, 0.2)},
    "one decision": DECISIONS[0],
    "configurations": [decision.config for decision in DECISIONS],
    "numbers": [1, 2],
    "a generator": (decision for decision in ()),
    "True": True,
}
PICTURES = {
    "the decisions of a schedule": plotting.plot_schedule,
    "the names of a schedule": lambda wrong: plotting.plot_schedule(DECISIONS, wrong),
    "its observations": lambda wrong: plotting.plot_schedule(DECISIONS, observations=wrong),
    "its best values": lambda wrong: plotting.plot_schedule(DECISIONS, best=wrong),
    "its space": lambda wrong: plotting.plot_schedule(DECISIONS, space=wrong),
    "its limits": lambda wrong: plotting.plot_schedule(DECISIONS, limits=wrong),
    "its axes": lambda wrong: plotting.plot_schedule(DECISIONS, axes=wrong),
    "its logarithms": lambda wrong: plotting.plot_schedule(DECISIONS, log=wrong),
    "a map": plotting.plot_schedule_map,
    "queries": plotting.plot_queries,
    "the axes of queries": lambda wrong: plotting.plot_queries(DECISIONS, wrong),
    "runs": plotting.plot_query_raster,
    "one of the runs": lambda wrong: plotting.plot_query_raster({"run": wrong}),
    "a page": plotting.explore_run,
    "the observations of a page": lambda wrong: plotting.explore_run(DECISIONS, wrong),
    "the decisions of a transfer": lambda wrong: plotting.plot_transfer(wrong, ()),
    "the observations of a transfer": lambda wrong: plotting.plot_transfer((), wrong),
    "trainings": plotting.plot_trainings,
    "importance": plotting.plot_importance,
    "a slice": plotting.plot_slice,
    "curves of costs": lambda wrong: plotting.plot_quality_against_cost(wrong, quality="loss"),
    "one of the curves": lambda wrong: plotting.plot_regret_against_cost({"method": wrong}),
    "weights of iterations": plotting.plot_curve_weights,
}


@pytest.mark.parametrize("wrong", WRONG)
@pytest.mark.parametrize("picture", PICTURES)
def test_a_picture_names_what_it_expects_in_place_of_something_else(picture, wrong):
    with pytest.raises(CostlyError, match="Expected") as error:
        PICTURES[picture](WRONG[wrong])
    assert "a loop" not in str(error.value)  # nothing is iterated over before it is checked


def test_the_message_names_the_attribute_that_was_meant():
    with pytest.raises(CostlyError, match=r"in a list such as tuner\.decisions; Received <"):
        plotting.plot_schedule(TUNER)
    with pytest.raises(CostlyError, match=r"such as tuner\.observations; Received"):
        plotting.plot_schedule(DECISIONS, observations=TUNER)
    with pytest.raises(CostlyError, match=r"such as tuner\.trust_regions; Received"):
        plotting.plot_schedule(DECISIONS, limits=TUNER.trust_region)
    with pytest.raises(CostlyError, match=r"such as matplotlib\.pyplot\.subplots"):
        plotting.plot_queries(DECISIONS, SPACE.names)
