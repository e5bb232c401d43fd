# Written by `python -m corejax stubs`: don't edit it.

from corejax_control_flow.ad_checkpoint import *
