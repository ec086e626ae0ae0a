"""Units that tests of several files compile once: half a minute each."""

from cdu_spec import CduConfig, Mode

#: With every mode and both coders of jpeg-act.
EVERYTHING = CduConfig("everything", modes=tuple(mode.label for mode in Mode), coders=("zvc", "gmc"))
#: A unit that keeps completion records.
RECORDING = CduConfig("recording", modes=("sfpr+zvc", "jpeg-act"), completions=4)
