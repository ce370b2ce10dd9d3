"""Random arrays through every door; see `doors.py` and `scripts/fuzz_doors.py`."""

import pytest
from hypothesis import HealthCheck, given, settings

from .doors import DOORS, SLOW, Case, cases, go_through


@pytest.mark.parametrize("name", DOORS)
def test_what_arrives_is_what_was_handed_over(name: str) -> None:
    @settings(
        max_examples=2 if name in SLOW else 10,
        deadline=None,
        database=None,
        derandomize=True,
        suppress_health_check=list(HealthCheck),
    )
    @given(cases())
    def through(case: Case) -> None:
        go_through(name, case)

    through()
