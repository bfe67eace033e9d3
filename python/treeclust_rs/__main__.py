"""``python -m treeclust_rs`` is the command ``treeclust``."""

import sys

from .cli import main

if __name__ == "__main__":
    sys.exit(main())
