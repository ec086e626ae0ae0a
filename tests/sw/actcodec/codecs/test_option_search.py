"""The option that a search finds is the one that trying all of them finds."""

import actcodec
import pytest
import torch
from actcodec.backends.named import backend
from actcodec.codecs.option_search import Goal, ladder, search
from actcodec.codecs.reconstruction_error import reconstruction_error
from cdu_spec.modes import STREAM_NAMES
from cdu_tools.errors import UserError

TORCH = backend("torch")


def x(dtype=torch.float32):
    return torch.randn(2, 3, 16, 24, generator=torch.Generator().manual_seed(0)).to(dtype)


SEARCHED = [name for name in STREAM_NAMES if ladder(name) is not None and name != "jpeg-base"]


def tried(name, values, **options):
    """Errors and ratios of all settings."""
    option, settings = ladder(name)
    for setting in settings:
        packed = actcodec.codec(name, **options, **{option: setting}).compress(values)
        yield setting, packed, reconstruction_error(values, packed.decompress()).largest, values.nbytes / packed.nbytes


def test_codecs_with_an_option_are_found():
    assert {"jpeg-act", "jpeg-gmc", "division", "autoquantz"} <= set(SEARCHED)
    assert ladder("sfpr") is None
    assert ladder("jpeg-base")[1][0] == "uniform-1"


@pytest.mark.parametrize("name", SEARCHED)
def test_the_coarsest_setting_within_an_error(name):
    rows = list(tried(name, x()))
    option, _ = ladder(name)
    for _, _, bound, _ in rows:
        found = search(x(), name, {}, TORCH, Goal(max_error=bound))
        error = reconstruction_error(x(), found.packed.decompress()).largest
        assert error <= bound
        (expected,) = [packed for setting, packed, *_ in rows if setting == found.options[option]]
        assert found.packed.to_bytes() == expected.to_bytes()
        assert found.packed.nbytes == min(packed.nbytes for _, packed, other, _ in rows if other <= bound)


@pytest.mark.parametrize("name", SEARCHED)
def test_the_finest_setting_at_a_ratio(name):
    rows = list(tried(name, x()))
    for *_, bound in rows:
        found = search(x(), name, {}, TORCH, Goal(ratio=bound))
        assert x().nbytes / found.packed.nbytes >= bound
        assert found.packed.nbytes == max(packed.nbytes for _, packed, _, other in rows if other >= bound)


def test_many_settings_are_bisected(monkeypatch):
    made = []
    original = actcodec.codecs.option_search.codec
    monkeypatch.setattr("actcodec.codecs.option_search.codec", lambda name, **o: made.append(o["dqt"]) or original(name, **o))
    found = search(x(), "jpeg-base", {"S": 1.0}, TORCH, Goal(max_error=0.5))
    assert reconstruction_error(x(), found.packed.decompress()).largest <= 0.5
    assert 1 < len(made) <= 10


def test_the_values_of_the_file_are_compared():
    """A cast counts as part of the error, and of the ratio."""
    exact = x(torch.float64) * 1.0001
    found = search(exact.float(), "autoquant", {}, TORCH, Goal(ratio=7.0), exact)
    assert found.options == {"bits": 8}
    assert exact.nbytes / found.packed.nbytes >= 7


def test_what_cannot_be_found():
    with pytest.raises(UserError, match=r"codec 'autoquant' does not keep to --max-error: it comes to .* with --bits 8; use"):
        search(x(), "autoquant", {}, TORCH, Goal(max_error=1e-6))
    with pytest.raises(UserError, match=r"codec 'autoquant' does not keep to --ratio: it comes to .* with --bits 1; use"):
        search(x(), "autoquant", {}, TORCH, Goal(ratio=100))
    with pytest.raises(UserError, match="--ratio finds --bits: leave one of the two out"):
        Goal(ratio=2).settings("autoquant", {"bits": 4})
    with pytest.raises(UserError, match="no option that --ratio could find: use jpeg-act, "):
        Goal(ratio=2).settings("sfpr", {})
    for bound in (0, -1, float("nan"), float("inf")):
        with pytest.raises(UserError, match="use a positive number"):
            Goal(max_error=bound)
    with pytest.raises(UserError, match="two goals"):
        Goal(1.0, 1.0)
