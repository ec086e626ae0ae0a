"""Libraries and one small synthesised block for the tests of cost reports."""

from synthesis_fixtures import block, nangate45, synthesised, tiny_file

__all__ = ["block", "nangate45", "synthesised", "tiny_file"]
