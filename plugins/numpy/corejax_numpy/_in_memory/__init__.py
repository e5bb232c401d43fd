"""What NumPy computes at once for arrays in host memory: by modules as the functions that it stands for.

Each takes what the public function of its name takes, in NumPy's way, and raises `NotDirectly` for what it leaves to
that function, which `corejax.plugin.directly` then calls.
"""
