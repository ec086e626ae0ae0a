"""Backends, which compute the modes of a unit: the golden model in torch, native kernels, kernels for GPUs, compiled RTL."""
