"""Releases of torch that nobody has tried are refused in a sentence."""

import pytest
import torch
from actcodec.graph.torch_private import check_version
from cdu_tools.errors import UserError


def test_releases(monkeypatch):
    check_version()
    for version in ("2.10.1", "3.13.0+cpu"):
        monkeypatch.setattr(torch, "__version__", version)
        with pytest.raises(
            UserError, match=f"actcodec.compiled is not tested with torch {version.replace('+', '.')}.*: use torch 2.13"
        ):
            check_version()
