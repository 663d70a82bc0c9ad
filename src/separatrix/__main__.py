"""Run the command line tool as ``python -m separatrix``."""

import sys

from separatrix.cli import main

if __name__ == "__main__":
    sys.exit(main())
