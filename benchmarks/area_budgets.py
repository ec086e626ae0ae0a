"""Areas of the blocks against their budgets, and the budgets anew.

    python benchmarks/area_budgets.py                       # every block; exit code 1 when one does not keep its budget
    python benchmarks/area_budgets.py --write --only dct    # makes the area of the DCT its budget

docs/user/pdk.md says what the budgets are. ``--write`` without ``--only`` measures every block and takes minutes; after a
change of Yosys it has to be so, since another version maps a little differently.
"""

from __future__ import annotations

import argparse
import dataclasses
import sys
from pathlib import Path

from cdu.delivery.blocks import BLOCKS, UNITS, changes
from cdu_spec import named_config
from cdu_synth.area import budgets
from cdu_synth.library import pdk
from cdu_tools.files import write_whole

DATA = Path(budgets.__file__).with_name(budgets.FILE)
#: The whole unit is measured by benchmarks/configurations.py.
MEASURED = [block for block in BLOCKS if block not in UNITS]


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=MEASURED, metavar="BLOCK", default=MEASURED, help="these blocks")
    parser.add_argument("--write", action="store_true", help=f"write the areas into {budgets.FILE} as the new budgets")
    arguments = parser.parse_args()
    kept = budgets.read()
    build = kept.build
    used = f"{build.name} {build.version}"
    if used != kept.yosys and set(arguments.only) != set(MEASURED):
        parser.error(f"the budgets were measured with {kept.yosys}, here is {used}: measure all blocks, without --only")
    library, config = pdk.find(kept.pdk).read(), named_config(kept.config)
    areas, origins = {}, dict(kept.origins)
    for block in arguments.only:
        areas[block] = kept.measure(block, config, library, build)
        origins[block] = kept.origin(block, config)
        print(f"{block}: {areas[block] / 1e3:.2f} kGE", file=sys.stderr, flush=True)
    print("\n".join(budgets.table(areas, kept)))
    wrong = [sentence for block, ge in areas.items() if (sentence := kept.verdict(block, ge))]
    if arguments.write:
        # A block that was removed loses its budget.
        together = {**kept.ge, **areas}
        ge = {block: together[block] for block in MEASURED if block in together}
        of_these = {block: origins[block] for block in ge if block in origins}
        built_with = {block: changed for block in ge if (changed := changes(block, config))}
        write_whole(DATA, dataclasses.replace(kept, yosys=used, ge=ge, origins=of_these, built_with=built_with).text())
        return 0
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
