"""``python -m benchmarks``. Worker processes import this file again, so it holds nothing else."""

import sys

if __name__ == "__main__":
    from benchmarks.run import main

    sys.exit(main())
