"""What computes the modes of a unit: the golden model in torch, native kernels, compiled RTL."""
