"""The whole unit: both directions behind its ports. Read this first."""
