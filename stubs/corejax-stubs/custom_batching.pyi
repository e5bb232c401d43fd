# Written by `python -m corejax stubs`: don't edit it.

from corejax_control_flow.batching import *
