"""Codes of a few bits with a range of their own: the affine modes of the unit."""
