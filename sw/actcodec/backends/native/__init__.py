"""Backend ``native``: fused kernels in C++ for the CPU, with the torch version as their specification.

They are compiled when they are first needed, for the machine that they run on, and kept in the user's cache
(``$CDU_CACHE_DIR``, else ``cdu`` in the user's cache folder). Results are the golden model's, bit for bit.
"""
