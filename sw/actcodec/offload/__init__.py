"""Saved tensors in host memory: copies on a separate stream, reused pinned memory, prefetch in reverse order."""
