"""Blocks of eight by eight codes to bytes and back: ZVC, BRC, codes of one width."""
