"""Set-up and upkeep of a clone, in plain Python: nothing is installed yet when they run. Not part of the package."""

import sys

# Every Python 3 can read this file, unlike the modules beside it.
if sys.version_info < (3, 11):
    sys.stderr.write(
        "%s is Python %d.%d.%d: install Python 3.11 or newer, or name one with `make PYTHON=...`\n"
        % (sys.executable, sys.version_info[0], sys.version_info[1], sys.version_info[2])
    )
    sys.exit(3)
