"""Policies whose errors follow from a bound on the loss (AC-GC)."""
