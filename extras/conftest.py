"""Settings and fixtures that the tests of extras have in common with others."""

from synthesis_fixtures import block, nangate45
from torch_fixtures import maps, repeatable

__all__ = ["block", "maps", "nangate45", "repeatable"]
