"""Units that tests of several files compile once: half a minute each."""

from cdu_spec import CduConfig, Mode
from cdu_verif.backends.compiled import library
from cdu_verif.backends.compiled.unit import CompiledUnit

#: With every mode and both coders of jpeg-act.
EVERYTHING = CduConfig("everything", modes=tuple(mode.label for mode in Mode), coders=("zvc", "gmc"))
#: A unit that keeps completion records.
RECORDING = CduConfig("recording", modes=("sfpr+zvc", "jpeg-act"), completions=4)


def compiled(config):
    """Return the compiled unit of a configuration, with the streams of its design."""
    return CompiledUnit(library.unit(config), library.generated(config).streams)
