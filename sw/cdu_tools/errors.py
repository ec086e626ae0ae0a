"""Errors that a user can mend: the message is one sentence that says what was given, what is allowed, and what to do."""


class UserError(Exception):
    """Base of all errors that a command reports as one sentence with exit code 2."""


class MissingToolError(UserError):
    """A simulator, synthesiser, library or data set that is not here; the message gives the command that adds it."""
