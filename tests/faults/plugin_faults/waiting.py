"""Packs that are slow to import, and packs that many threads use first at once."""

from __future__ import annotations

from .fault import Group, Pack, one, primitives, text, twice

waiting = Group("Time and threads")
SOON = {"COREJAX_SLOW_IMPORT": "0.1"}

waiting.add("a slow import", one("slow", f"""
import time
time.sleep(0.5)

{twice("slow")}"""), "lax.slow(1.0)", None, "2.0", again="2.0", left=("slow",), environment=SOON,
            warned=("importing slow of the pack slow 1.0 takes more than 0.1 s; it is at", "slow.py:2 (<module>)",
                    "COREJAX_DISABLE_PACKS=slow"))
waiting.add("an endless import, interrupted", (Pack("endless", primitives(endless="endless.main:endless"), {
    "endless/__init__.py": "", "endless/wait.py": text("""
        import time

        def wait():
            while True: time.sleep(60)
    """), "endless/main.py": "from endless.wait import wait\nwait()\n"}),), """
    import signal
    def interrupt(*_):
        raise KeyboardInterrupt
    signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, 0.5)
    lax.endless(1.0)
    """, "KeyboardInterrupt", environment=SOON,
            warned=("importing endless.main of the pack endless 1.0 takes more than 0.1 s; it is at",
                    "wait.py:4 (wait)"))
waiting.add("an endless import in another thread", one("hangs", """
    import time
    while True: time.sleep(60)
    """), """
    from threading import Thread
    Thread(target=lambda: lax.hangs, daemon=True).start()
    time.sleep(0.4)
    lax.good(1.0)
    """, None, "2.0", again="2.0", left=("hangs",), environment=SOON,
            warned=("importing hangs of the pack hangs 1.0 takes more than 0.1 s; it is at", "hangs.py:2 (<module>)"))
waiting.add("a broken pack first used by 8 threads at once", one("fragile", """
    import time
    time.sleep(0.05)
    import no_such_module
    """), """
    def use(_):
        try:
            lax.fragile(1.0)
        except PackError as error:
            return str(error.__cause__), id(error.__cause__)
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(use, range(8)))
    print(len(found), "errors,", len({cause for _, cause in found}), "cause,", found[0][0])
    lax.fragile(1.0)
    """, "PackError", "8 errors, 1 cause, No module named 'no_such_module'", cause="ModuleNotFoundError",
            explain="fragile")
waiting.add("a good pack first used by 16 threads at once (no fault)", one("shared", f"""
import time
time.sleep(0.1)

{twice("shared")}"""), """
    def use(_):
        return lax.shared, lax.shared.primitive, float(lax.shared(1.0))
    with ThreadPoolExecutor(16) as pool:
        found = list(pool.map(use, range(16)))
    print(len(found), "results,", len({id(p) for _, p, _ in found}), "primitive,", len({id(f) for f, *_ in found}),
          "function, values:", {value for *_, value in found})
    lax.shared(1.0)
    """, None, "16 results, 1 primitive, 1 function, values: {2.0}", again="2.0", left=("shared",))
PARTNER = """
{0}
import time
time.sleep(0.1)
from corejax import lax
partner = lax.{1}
"""
waiting.add("two packs that use each other, first used by two threads at once (no fault)", tuple(
    Pack(name, primitives(**{name: f"{name}:{name}"}), {f"{name}.py": PARTNER.format(twice(name), other)})
    for name, other in (("ping", "pong"), ("pong", "ping"))), """
    with ThreadPoolExecutor(2) as pool:
        print(*pool.map(lambda name: float(getattr(lax, name)(1.0)), ["ping", "pong"]))
    lax.ping(1.0)
    """, None, "2.0 2.0", again="2.0", left=("ping", "pong"))

GROUPS = (waiting,)
