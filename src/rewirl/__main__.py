"""`python -m rewirl` is `rewirl`; without arguments it prints what a bug report needs."""

import sys

from rewirl.cli import main

if __name__ == "__main__":
    sys.argv[1:] = sys.argv[1:] or ["--version"]
    sys.exit(main())
