"""Regression of `cdu verify`: the runs and their results."""
