"""The ``cdu`` command."""
