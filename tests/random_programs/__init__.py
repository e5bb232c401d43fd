"""A generator of random programs, for any library with the interface of jax; `python -m tests.random_programs --help`.

A seed stands for a program: statements (`expressions`, `control_flow`, `calls`, `custom_rules`) over typed variables
(`slots`), inputs, and up to three nested transformations (`transforming`). `making` chooses, `writing` gives the text,
which is Python. `oracles` says what is right, `comparing` how near is near enough, `differences` where jax is not
followed; `shrinking` makes what fails small, and `running` runs thousands in processes that may die.

`modes` has what else programs are made of and compared with: `closures`, words and numbers of 32 bits (`slots`,
`expressions`), types without values (`asking`), and packs that bring the names of others (`clashing`).
"""

from .modes import MODES, Mode
from .oracles import Oracle, check
from .programs import Program, program
from .shrinking import shrink

__all__ = ["MODES", "Mode", "Oracle", "Program", "check", "program", "shrink"]
