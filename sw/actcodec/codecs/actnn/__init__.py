"""ActNN (ICML 2021): groups of a sample, and where their bits go."""
