"""Backend ``native``: fused kernels in C++ for the CPU, with the torch version as their specification.

The kernels are compiled on first use, for the machine that runs them, and kept in the user's cache (``$CDU_CACHE_DIR``, else
``cdu`` in the user's cache folder). Results are the golden model's, bit for bit.
"""
