"""Sets of parameters for the cases of a block in Amaranth's simulator."""

import pytest


def one_at_once(first, *others):
    """Parametrizes ``options``: the first set always; the others with ``-m campaign``, for `cdu verify` tries several too."""
    return pytest.mark.parametrize("options", [first, *(pytest.param(other, marks=pytest.mark.campaign) for other in others)])
