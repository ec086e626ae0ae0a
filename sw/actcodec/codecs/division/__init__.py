"""DIVISION (KDD 2023): low frequencies pooled, high ones in a few bits."""
