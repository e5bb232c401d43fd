# Written by `python -m corejax stubs`: don't edit it.

"""The conformance kit: checks that the rules of a primitive agree with each other and with mathematics.

>>> from corejax.testing import check_primitive
>>> check_primitive("neg")
Report(1 primitive: ... checks held, 0 failed, ... s)

A primitive's hook `samples` gives the inputs. `check_primitive` and `check_pack` raise a `ConformanceError` that lists
each broken law with the primitive, the hook, the input and what to do; `pytest --corejax-pack NAME` makes a test of
each primitive and check. `search=True` also looks for the smallest other input that breaks a law.
"""

from corejax_testing import CHECKS as CHECKS, Case as Case, Check as Check, ConformanceError as ConformanceError, Failure as Failure, Outcome as Outcome, Report as Report, Sample as Sample, Search as Search, check as check, check_pack as check_pack, check_primitive as check_primitive, pack_tests as pack_tests
