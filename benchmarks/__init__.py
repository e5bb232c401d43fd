"""corejax beside its rivals, in one process on one machine: `python -m benchmarks`, or `make bench`."""
