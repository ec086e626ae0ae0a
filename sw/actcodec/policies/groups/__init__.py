"""Policies with one copy for several tensors, or none for a tensor that follows from another."""
