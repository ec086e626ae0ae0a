"""Blocks placed and routed on an FPGA."""
