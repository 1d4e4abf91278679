"""`python -m linadd` is `linadd`."""

import sys

from linadd.cli import main

if __name__ == "__main__":
    sys.exit(main())
