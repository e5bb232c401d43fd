"""`python -m corejax`."""

import sys

from corejax.inspect.cli import main

if __name__ == "__main__":
    sys.exit(main())
