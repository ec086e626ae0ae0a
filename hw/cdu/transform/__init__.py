"""The two-dimensional DCT and its inverse."""
