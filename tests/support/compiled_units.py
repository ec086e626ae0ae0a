"""A unit that tests of several files compile once: half a minute each."""

from cdu_spec import CduConfig, Mode

#: With every mode, both coders of jpeg-act, and records of jobs.
EVERYTHING = CduConfig("everything", modes=tuple(mode.label for mode in Mode), coders=("zvc", "gmc"), completions=4)
