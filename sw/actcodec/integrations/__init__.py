"""Callbacks for the frameworks that people train with; each is imported with its own module only."""
