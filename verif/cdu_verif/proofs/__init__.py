"""List of all proofs, and their campaigns."""
