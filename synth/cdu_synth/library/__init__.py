"""Cell libraries: where they are, what they say."""
