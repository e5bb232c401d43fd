"""What `launch` runs in tests: a script that joins nobody, so that it needs no runtime and starts at once."""

import sys

from corejax_processes import _launched

_launched._join = lambda: None

if __name__ == "__main__":
    _launched.main(sys.argv[1:])
