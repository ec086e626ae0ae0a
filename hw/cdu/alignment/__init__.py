"""Alignment of values between rows and blocks of 8x8, a beat being 8 values of a row; and the statistics of blocks."""
