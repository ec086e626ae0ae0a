"""AC-GC (NeurIPS 2021): codecs with error bounds and their levels; cuSZ-like codes."""
