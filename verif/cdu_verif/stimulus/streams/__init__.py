"""Streams made by hand from docs/reference/bitstream.md, with struct and zlib: for every rule of the page some that keep it
and some that break it and no other one. No encoder and no table of the rest of this repository has a part in them.
"""
