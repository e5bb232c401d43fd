# Written by `python -m corejax stubs`: don't edit it.

from corejax_control_flow.policies import *
