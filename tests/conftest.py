"""Settings for every test: one thread for XLA in each worker, and no warning passes unseen where a test asks."""

from __future__ import annotations

import os

# Before jaxlib loads: several workers with a thread pool each would fight for the cores.
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false")
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
