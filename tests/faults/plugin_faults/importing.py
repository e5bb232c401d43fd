"""Packs that fail while they are imported."""

from __future__ import annotations

from .fault import Group, Pack, one, primitives, text, twice

importing = Group("Importing")


def add(name: str, pack: str, code: str, *words: str, cause: str, **more: object) -> None:
    """A pack that is broken by its only module."""
    importing.add(name, one(pack, code), f"lax.{pack}(1.0)", "PackError", f"the pack {pack.replace('_', '-')} 1.0",
                  f"so its primitive {pack!r} can't be used", f"COREJAX_DISABLE_PACKS={pack.replace('_', '-')}", *words,
                  cause=cause, explain=pack, **more)  # type: ignore[arg-type]


add("a module that is not installed", "needs_more", "import no_such_module", "can't be imported",
    "ModuleNotFoundError: No module named 'no_such_module'", cause="ModuleNotFoundError")
add("an exception", "divides", "scale = 1 / 0", "ZeroDivisionError: division by zero", cause="ZeroDivisionError")
add("an exception without a text", "mute", """
    class Mute(Exception):
        def __str__(self):
            raise ValueError
    raise Mute
    """, "Mute", cause="Mute")
add("a syntax error", "unparsed", "def (:", "SyntaxError: invalid syntax", cause="SyntaxError")
add("sys.exit()", "exits", """
    import sys
    sys.exit(3)
    """, "exits the process when it is imported", "SystemExit: 3", cause="SystemExit")
add("raise SystemExit", "leaves", 'raise SystemExit("not on this machine")', "SystemExit: not on this machine",
    cause="SystemExit")
add("endless recursion", "recurses", """
    def again():
        again()
    again()
    """, "RecursionError", cause="RecursionError")
add("no memory", "hungry", 'raise MemoryError("no room for the tables")', "MemoryError: no room for the tables",
    cause="MemoryError")
add("a module that removes itself", "vanishes", """
    import sys
    del sys.modules[__name__]
    """, "KeyError: 'vanishes'", cause="KeyError")
add("modules of others replaced, and then an exception", "replaces", """
    import sys, types
    sys.modules["numpy"] = types.ModuleType("numpy")
    del sys.modules["json"]
    import json_faster
    """, "ModuleNotFoundError", cause="ModuleNotFoundError")
add("a plugin object that define refuses", "nameless", """
    from corejax.plugin import define
    class Nameless:
        pass
    nameless = define(Nameless())
    """, "PluginError: a plugin must be an object whose name", cause="PluginError")

importing.add(
    "a package that fails half way", (Pack("half-way", primitives(half_way="half_way.rules:half_way"), {
        "half_way/__init__.py": "from half_way import tables\n", "half_way/tables.py": "TABLE = []\n",
        "half_way/rules.py": "from half_way.tables import TABLE\nfirst = TABLE[0]\n"}),),
    "lax.half_way(1.0)", "PackError", "IndexError: list index out of range", cause="IndexError", explain="half_way")
importing.add(
    "a dependency that fails", (Pack("leans", primitives(leans="leans:leans"), {
        "leans.py": "import leant_on\n", "leant_on.py": 'raise ImportError("built for another machine")\n'}),),
    "lax.leans(1.0)", "PackError", "ImportError: built for another machine", cause="ImportError", explain="leans")
importing.add(
    "KeyboardInterrupt", one("interrupted", f"""
import builtins
if not hasattr(builtins, "second_time"):
    builtins.second_time = True
    raise KeyboardInterrupt  # as if somebody pressed Ctrl-C now

{twice("interrupted")}"""), "lax.interrupted(1.0)", "KeyboardInterrupt", again="2.0", left=("interrupted",))
importing.add(
    "a module's __getattr__ that raises", one("lazy", """
    def __getattr__(name):
        raise RuntimeError("the tables are missing")
    """), "lax.lazy(1.0)", "PackError", "raises when its 'lazy' is looked up", "RuntimeError: the tables are missing",
    cause="RuntimeError", explain="lazy", left=("lazy",))
importing.add(
    "a module's __getattr__ that exits", one("lazier", """
    def __getattr__(name):
        raise SystemExit(name)
    """), "lax.lazier(1.0)", "PackError", "raises when its 'lazier' is looked up", "SystemExit: lazier",
    cause="SystemExit", explain="lazier", left=("lazier",))
importing.add(
    "a module that takes out those of others", one("takes", f"""
import sys
del sys.modules["json"]

{twice("takes")}"""), "lax.takes(1.0)", None, "2.0", again="2.0",
    warned=("the pack takes 1.0", "They were restored: json"), left=("takes",))
importing.add(
    "two packs that import each other", (
        Pack("chicken", primitives(chicken="chicken:chicken"), {"chicken.py": "from egg import egg\nchicken = egg\n"}),
        Pack("egg", primitives(egg="egg:egg"), {"egg.py": "from chicken import chicken\negg = chicken\n"})),
    "lax.chicken(1.0)", "PackError", "the pack chicken 1.0 can't be imported",
    "cannot import name 'chicken' from partially initialized module", cause="ImportError", explain="chicken")
importing.add(
    "two packs that use each other while imported", (
        Pack("hen", primitives(hen="hen:hen"), {"hen.py": "from corejax import lax\nhen = lax.rooster\n"}),
        Pack("rooster", primitives(rooster="rooster:rooster"), {
            "rooster.py": "from corejax import lax\nrooster = lax.hen\n"})),
    "lax.hen(1.0)", "PackError", "the pack hen 1.0 can't be imported", "PackError: the pack rooster 1.0",
    cause="PackError", explain="hen")
importing.add(
    "a pack that looks itself up while imported", one("early", "from corejax import lax\nearly = lax.early\n"),
    "lax.early(1.0)", "PackError", "is used while its module is being imported", cause="PackError", explain="early")
importing.add(
    "a primitive applied while its pack is imported (no fault)", one("tries", f"""
{twice("tries")}
assert float(tries(2.0)) == 4.0
"""), "lax.tries(1.0)", None, "2.0", again="2.0", left=("tries",))
importing.add(
    "another pack's primitive applied while imported, which is broken", (
        Pack("user-of-gone", primitives(user_of_gone="user_of_gone:user_of_gone"), {
            "user_of_gone.py": text("""
                from corejax import lax
                user_of_gone = lax.gone_pack(1.0)
            """)}),
        Pack("gone-pack", primitives(gone_pack="gone_pack:gone_pack"), {"gone_pack.py": "import gone_from_here\n"})),
    "lax.user_of_gone(1.0)", "PackError", "the pack user-of-gone 1.0 can't be imported",
    "PackError: the pack gone-pack 1.0 can't be imported", cause="PackError", explain="user_of_gone")

GROUPS = (importing,)
