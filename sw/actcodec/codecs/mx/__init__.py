"""MX and NVFP4: blocks of small numbers that share a scale."""
