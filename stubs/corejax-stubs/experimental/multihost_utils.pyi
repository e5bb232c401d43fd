# Written by `python -m corejax stubs`: don't edit it.

from corejax_processes.multihost_utils import *
