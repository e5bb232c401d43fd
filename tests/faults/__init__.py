"""What goes wrong, and what must be said: wrong uses, wrong rules, plugin faults and mistakes, a folder each.

A *case* has a title that no other of its kind has, says what is done, and what must come of it. `programs` runs what a
case does, in this process, and keeps what is raised as an `Outcome`; kinds that need processes of their own run them in
their `run`. `record` keeps the exact answers to all cases of a kind, which the pages in docs/ quote, and `speech` says
which words no error may have. `python -m tests.faults` records, shows and runs them.

Faults of the standard packs' rules, which the conformance kit must find, are with the kit: plugins/testing/tests.
"""
