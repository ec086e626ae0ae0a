"""Compression inside compiled graphs: what crosses from the forward to the backward is kept, coded or computed again."""
