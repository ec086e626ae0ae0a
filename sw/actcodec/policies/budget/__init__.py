"""Policies that share a number of bits among tensors by their sensitivity."""
