"""Commands for authors of packs: a new pack, entry points made of what modules export, stubs for type checkers."""
