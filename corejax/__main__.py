"""`python -m corejax`."""

import sys

from corejax.cli import main

if __name__ == "__main__":
    sys.exit(main())
