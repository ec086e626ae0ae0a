"""Callbacks for training frameworks; each framework is imported by its own module only."""
