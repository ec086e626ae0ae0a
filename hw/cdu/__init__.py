"""RTL generator of compression/decompression units (Amaranth)."""
