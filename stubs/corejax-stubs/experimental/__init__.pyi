# Written by `python -m corejax stubs`: don't edit it.

"""What the installed packs provide that may change, by name."""

from corejax.experimental import checkify as checkify
