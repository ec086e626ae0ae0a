"""Saved tensors: the operations that save them, the needs of their gradients, and the forms in which they are kept."""
