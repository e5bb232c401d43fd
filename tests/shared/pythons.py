"""New Pythons that see other distributions than this one, for tests of what users install."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path


def compiler() -> str | None:
    """The C++ compiler that setuptools would call, if it is there."""
    command = os.environ.get("CXX") or sysconfig.get_config_var("CXX") or "c++"
    return shutil.which(command.split()[0])


def run(folder: Path, packages: Path | None, *arguments: str, fails: bool = False, **environment: str) -> str:
    """What a new Python prints, with the distributions in `packages`, if any, beside those of this environment."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COREJAX_"))}
    env |= {"PYTHONPATH": str(packages)} if packages else {}
    done = subprocess.run([sys.executable, *arguments], cwd=folder, env=env | environment, capture_output=True,
                          text=True)
    assert fails is (done.returncode != 0), done.stdout + done.stderr
    return done.stdout.strip() + (done.stderr if fails else "")
