"""Settings for shared test machines, and maps."""

from torch_fixtures import maps, repeatable

__all__ = ["maps", "repeatable"]
