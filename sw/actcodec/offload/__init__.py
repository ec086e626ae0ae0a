"""Saved tensors in host memory: copies on a stream of their own, pinned memory that is used again, prefetch in reverse."""
