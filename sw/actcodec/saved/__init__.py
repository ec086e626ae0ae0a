"""Saved tensors: what operation saves them, what its gradient needs, and the forms in which they are kept."""
