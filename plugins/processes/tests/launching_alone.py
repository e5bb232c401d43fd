"""`python launching_alone.py ARGUMENTS`: the command `launch`, whose processes join nobody and meet at no service.

By the environment: SERVICE=real makes it start one, PATIENCE says how many times as long as usual it waits.
"""

import os
import subprocess
import sys

from corejax.inspect.cli import main
from corejax_processes import _children, _service, launching

launching._CHILD = "alone"
patience = float(os.environ.get("PATIENCE", "0.1"))
for name in ("_BY_THEMSELVES", "_AFTER_TERM", "_LEFT"):
    setattr(_children, name, getattr(_children, name) * patience)
if os.environ.get("SERVICE") != "real":
    waits = subprocess.Popen([sys.executable, "-S", "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE,
                             start_new_session=True)
    _service.start_service = lambda address, count: _service.ServiceProcess(waits, address)

if __name__ == "__main__":
    sys.exit(main(["launch", *sys.argv[1:]]))
