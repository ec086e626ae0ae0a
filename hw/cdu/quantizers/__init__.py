"""Coefficients and values to codes of a few bits and back."""
