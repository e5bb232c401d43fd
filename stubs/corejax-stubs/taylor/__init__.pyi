# Written by `python -m corejax stubs`: don't edit it.

from corejax_taylor import *
