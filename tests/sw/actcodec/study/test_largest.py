"""Check the search for the largest batch within a budget."""

import pytest
from actcodec.study.largest import largest
from cdu_tools.errors import UserError


@pytest.mark.parametrize("first", [1, 7, 64])
@pytest.mark.parametrize("budget", [50, 99, 100, 1003, 25_000])
@pytest.mark.parametrize(
    "peak",
    [lambda batch: 100 * batch, lambda batch: 1000 + 3 * batch, lambda batch: batch**2 + batch, lambda batch: 900 + batch // 4],
)
def test_largest_fits_and_the_next_does_not(peak, budget, first):
    found = largest(peak, budget, first)
    fitting = [batch for batch in range(1, 100_000) if peak(batch) <= budget]
    assert found == max(fitting, default=0)


def test_no_batch_is_measured_twice_and_few_are():
    seen = []
    assert largest(lambda batch: seen.append(batch) or 1000 + 7 * batch, 8000, 64) == 1000
    assert len(seen) == len(set(seen)) == 4


def test_peaks_that_do_not_grow_are_an_error():
    with pytest.raises(UserError, match="does not grow with the batch"):
        largest(lambda batch: 10, 100, 1)
