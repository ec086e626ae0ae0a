"""Backend ``triton``: kernels for GPUs in Triton, with the torch version as their specification.

Triton compiles them when they are first called, for the device of the tensors, and keeps them in its own cache. Results are the
golden model's, bit for bit. Where ``TRITON_INTERPRET=1`` is in the environment when Triton is first imported, its interpreter
computes the same on the CPU, slowly: that is how the kernels are tested without a device.
"""
