"""Rivals are found where they were before, for one version."""

import pytest

from botorch_costly import acquisition, baselines, models


@pytest.mark.parametrize(
    ("room", "name"),
    [
        (models, "RankWeightedGP"),
        (models, "ScaMLGP"),
        (models, "EmpiricalPriorGP"),
        (acquisition, "TAF"),
    ],
)
def test_an_earlier_place_warns_and_has_the_same_class(room, name):
    with pytest.warns(FutureWarning, match=f"`{name}` is in `botorch_costly.baselines` now"):
        assert getattr(room, name) is getattr(baselines, name)
    with pytest.raises(AttributeError, match="no attribute 'Nothing'"):
        _ = room.Nothing
