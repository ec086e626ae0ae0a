"""Simulated and compiled units as backends of codecs."""
