"""Entry points that lead elsewhere than they should, and names that two provide; metadata that is broken."""

from __future__ import annotations

from .fault import Group, Pack, functions, one, primitives, roles, text, twice

pointing = Group("Entry points")
twofold = Group("Names that two provide")
metadata = Group("Metadata")

# Where they lead

pointing.add("a module that is not there", one("no_module", "", "no_module_there:no_module"), "lax.no_module(1.0)",
             "PackError", "the pack no-module 1.0 can't be imported", "No module named 'no_module_there'",
             cause="ModuleNotFoundError", explain="no_module")
pointing.add("an attribute that is not there", one("no_attribute", "x = 1"), "lax.no_attribute(1.0)", "PackError",
             "no-attribute 1.0: the primitive 'no_attribute' leads nowhere", "no_attribute = no_attribute:no_attribute",
             explain="no_attribute", left=("no_attribute",))
pointing.add("an attribute of an attribute that is not there", one("no_inner", "x = 1", "no_inner:x.y"),
             "lax.no_inner(1.0)", "PackError", "leads nowhere", "no_inner:x.y", explain="no_inner", left=("no_inner",))
pointing.add("a module", one("a_module", "", "a_module"), "lax.a_module(1.0)", "PackError", "leads to a module",
             "the module a_module", explain="a_module", left=("a_module",))
pointing.add("a class", one("a_class", """
    class Plugin:
        name = "a_class"
    """, "a_class:Plugin"), "lax.a_class(1.0)", "PluginError", "the class Plugin", "a-class 1.0",
             "define(MyPrimitive())", explain="a_class", left=("a_class",))
pointing.add("a number", one("a_number", "a_number = 42"), "lax.a_number(1.0)", "PluginError", "an object of int",
             "a-number 1.0", explain="a_number", left=("a_number",))
pointing.add("a function that is no primitive", one("a_function", "def a_function(x):\n    return x"),
             "lax.a_function(1.0)", "PluginError", "an object of function", "a-function 1.0", explain="a_function",
             left=("a_function",))
pointing.add("a primitive of another name", one("renamed", twice("original"), "renamed:original"), "lax.renamed(1.0)",
             "PluginError", "the entry point 'renamed' leads to the primitive 'original'", "renamed 1.0",
             explain="renamed", left=("renamed",))
pointing.add("a function of `lax` that is none", (Pack("a-constant", functions(a_constant="a_constant:a_constant"), {
    "a_constant.py": "a_constant = 3.14\n"}),), "lax.a_constant", "PackError",
             "the function 'a_constant' is not a function", "a float", left=("a_constant",))
pointing.add("a role that is not a function", (Pack("a-text", roles(a_text="a_text:a_text"), {
    "a_text.py": "a_text = 'zeros'\n"}),), "roles.a_text(1.0)", "PackError", "the role 'a_text' is not a function",
             "a str", left=("a_text",))
pointing.add("rules of a pack that can't be imported", (
    Pack("ruled", primitives(ruled="ruled:ruled"), {"ruled.py": twice("ruled")}),
    Pack("rules-fail", "[corejax.rules]\nruled/ruled:dce = rules_fail:dce\n", {
        "rules_fail.py": "import no_such_rules\n"})),
             "lax.ruled(1.0)", None, "2.0", again="2.0", left=("ruled",),
             warned=("rules of rules-fail 1.0 for ruled are left out", "No module named 'no_such_rules'"))
pointing.add("rules that raise when they are looked at", (
    Pack("watched", primitives(watched="watched:watched"), {"watched.py": twice("watched")}),
    Pack("shy", "[corejax.rules]\nwatched/watched:dce = shy:rules.dce\n", {"shy.py": text("""
        class Shy:
            @property
            def dce(self):
                raise OSError("don't look at me")

        rules = Shy()
    """)})), "lax.watched(1.0)", None, "2.0", again="2.0", left=("watched", "shy"),
             warned=("rules of shy 1.0 for watched are left out", "OSError: don't look at me"))

# Names that two provide

DOUBLE, AMBIGUOUS = "is provided more than once", "CorejaxAttributeError"
for _name, _entries, _use in (("primitive", primitives, "lax.{0}(1.0)"), ("function", functions, "lax.{0}(1.0)"),
                              ("role", roles, "roles.{0}(1.0)")):
    _same = f"same_{_name}"
    twofold.add(f"a {_name} of two packs", tuple(
        Pack(f"{which}-{_name}", _entries(**{_same: f"{which}_{_name}:{_same}"}), {
            f"{which}_{_name}.py": twice(_same)}, version) for which, version in (("left", "1.5"), ("right", "2.5"))),
        _use.format(_same), "PackError" if _name == "role" else AMBIGUOUS, f"the {_name} {_same!r} {DOUBLE}",
        f"left-{_name} 1.5", f"right-{_name} 2.5", f"COREJAX_PREFER=left-{_name}")
twofold.add("a function of one pack, a primitive of another", (
    Pack("has-function", functions(crossed="has_function:crossed"), {
        "has_function.py": "def crossed(x):\n    return x\n"}),
    Pack("has-primitive", primitives(crossed="has_primitive:crossed"), {"has_primitive.py": twice("crossed")})),
    "lax.crossed(1.0)", AMBIGUOUS, f"the function 'crossed' {DOUBLE}", "has-function 1.0", "has-primitive 1.0")
for _way, _requires, _words in (
        ("required", ("left-required", "right-required"), "which more than one of the packs that it requires provides"),
        ("undeclared", (), "add 'left-undeclared' or 'right-undeclared' to the requirements of uses-undeclared")):
    _sides = [Pack(f"{side}-{_way}", functions(**{f"{_way}_name": f"{side}_{_way}:{_way}_name"}), {
        f"{side}_{_way}.py": f"def {_way}_name(x):\n    return x\n"}) for side in ("left", "right")]
    _user = Pack(f"uses-{_way}", functions(**{f"uses_{_way}": f"uses_{_way}:uses_{_way}"}).encode(), {  # which stays
        f"uses_{_way}.py": f"from corejax import lax\ndef uses_{_way}(x):\n    return lax.{_way}_name(x)\n"},
        metadata=f"Metadata-Version: 2.1\nName: uses-{_way}\nVersion: 1.0\n" + "".join(
            f"Requires-Dist: {each}\n" for each in _requires))
    twofold.add(f"a function of two packs, {_way}", (*_sides, _user), f"lax.uses_{_way}(1.0)", AMBIGUOUS,
                f"uses-{_way} 1.0 uses the function '{_way}_name'", _words, left=(f"uses_{_way}",))
twofold.add("a primitive twice in one pack", (Pack("stutters", primitives(stutter="stutters:stutter") +
                                                   "stutter = stutters:other\n", {"stutters.py": twice("stutter")}),),
            "lax.stutter(1.0)", AMBIGUOUS, f"the primitive 'stutter' {DOUBLE}", "stutters:other",
            "correct the entry points of stutters", explain="stutter")
twofold.add("the same line twice (no fault)", (Pack("repeats", primitives(repeats="repeats:repeats") * 2, {
    "repeats.py": twice("repeats")}),), "lax.repeats(1.0)", None, "2.0", again="2.0", left=("repeats",))

# Metadata

LEFT_OUT = "is left out: its metadata is broken"


def broken(name: str, pack: str, entries: str | bytes, *words: str) -> None:
    """A distribution whose entry points can't be read: it is left out, with a warning."""
    dist = pack.replace("_", "-")
    metadata.add(name, (Pack(dist, entries, {f"{pack}.py": twice(pack)}),), f"lax.{pack}(1.0)", "CorejaxAttributeError",
                 f"no installed pack provides lax.{pack}", f"broken: {dist}",
                 warned=(f"the distribution {dist} {LEFT_OUT}", *words))


broken("a line that is no entry point", "no_equals", "[corejax.primitives]\nno_equals -> no_equals:no_equals\n",
       "line 2", "is not `name = module:attr`")
broken("a line without a name", "no_name", "[corejax.primitives]\n= no_name:no_name\n", "line 2")
broken("a line without a module", "no_target", "[corejax.primitives]\nno_target = :no_target\n", "line 2")
broken("a line with two colons", "two_colons", "[corejax.primitives]\ntwo_colons = two_colons:a:b\n", "line 2")
broken("a line before any group", "groupless", "groupless = groupless:groupless\n\n[corejax.functions]\n", "line 1",
       "isn't in a group")
broken("a group without its bracket", "unclosed", "[corejax.functions]\n[corejax.primitives\nunclosed = unclosed:x\n",
       "line 2", "is not `[group]`")
broken("a group that is misspelled", "misgrouped", "[corejax.primitive]\nmisgrouped = misgrouped:misgrouped\n",
       "line 1", "did you mean 'corejax.primitives'?")
broken("a text that is not UTF-8", "undecodable", "[corejax.primitives]\nundecodable = caf\xe9:x\n".encode("latin-1"),
       "UnicodeDecodeError")
metadata.add("a line without a colon", one("no_colon", twice("no_colon"), "no_colon"), "lax.no_colon(1.0)", "PackError",
             "the primitive 'no_colon' leads to a module", "no-colon 1.0", explain="no_colon", left=("no_colon",))
metadata.add("no entry points at all", (Pack("hollow", "", {"hollow.py": twice("hollow")}),), "lax.hollow(1.0)",
             "CorejaxAttributeError", "no installed pack provides lax.hollow")
metadata.add("no name", (Pack("anonymous", primitives(anonymous="anonymous:anonymous"), {
    "anonymous.py": twice("anonymous")}, metadata="Metadata-Version: 2.1\nVersion: 1.0\n"),),
    "print(lax.anonymous.primitive.origin)\nlax.anonymous(1.0)", None, "2.0", "anonymous 1.0", again="2.0",
    left=("anonymous",))
metadata.add("no version", (Pack("unversioned", primitives(unversioned="unversioned:unversioned"), {
    "unversioned.py": twice("unversioned")}, metadata="Metadata-Version: 2.1\nName: unversioned\n"),),
    "print(lax.unversioned.primitive.origin)\nlax.unversioned(1.0)", None, "2.0", "unversioned of unknown version",
    again="2.0", left=("unversioned",))
metadata.add("no metadata but the entry points", (Pack("bare", primitives(bare="bare:bare"), {"bare.py": twice("bare")},
                                                       version=None),),
             "print(lax.bare.primitive.origin)\nlax.bare(1.0)", None, "2.0", "bare of unknown version", again="2.0",
             left=("bare",))
metadata.add("what a failed uninstall left behind", (
    Pack("~omains", primitives(remains="remains:other"), {}),
    Pack("remains", primitives(remains="remains:remains"), {"remains.py": twice("remains")})),
             "lax.remains(1.0)", None, "2.0", again="2.0", left=("remains",),
             warned=(f"the distribution ~omains {LEFT_OUT}", "isn't the name of a distribution"))
metadata.add("two versions of a distribution on the path", (
    Pack("versions", primitives(versions="versions:versions"), {"versions.py": twice("versions")}, "2.0"),
    Pack("versions", primitives(versions="versions:older"), {}, "1.0", later=True)),
             "lax.versions(1.0)", None, "2.0", again="2.0", left=("versions",),
             warned=("two versions of versions are installed: 2.0 is used", "1.0 isn't"))
metadata.add("an empty folder of a distribution before the real one", (
    Pack("husk", None, {}, version=None),
    Pack("husk", primitives(husk="husk:husk"), {"husk.py": twice("husk")}, "2.0", later=True)),
             "lax.husk(1.0)", None, "2.0", again="2.0", left=("husk",))

GROUPS = (pointing, twofold, metadata)
