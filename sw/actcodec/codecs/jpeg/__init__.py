"""Blocks of eight by eight by DCT: JPEG-ACT, JPEG-BASE, and JPEG files."""
