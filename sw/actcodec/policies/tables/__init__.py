"""Policies that are tables: a codec for each kind of saved tensor."""
