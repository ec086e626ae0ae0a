"""A unit that tests of several files compile once: half a minute."""

from cdu_spec import CduConfig, Mode

#: With every mode and both coders of jpeg-act.
EVERYTHING = CduConfig("everything", modes=tuple(mode.label for mode in Mode), coders=("zvc", "gmc"))
