"""Verification of generated units: cocotb benches whose scoreboards are the functions of the golden model."""
