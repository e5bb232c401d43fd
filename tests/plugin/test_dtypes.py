"""Element types of packs as entry points: found by name, loaded late, refused if they aren't what they should be."""

from __future__ import annotations

import textwrap
from typing import Any

CLOCK = """
    import numpy as np
    from corejax.plugin import ElementType, define, elements
    print("imported")
    clock = ElementType({name!r}, np.uint8, (2,))
    of = define(elements.Wrap("clock_of", clock))
"""

USE = """
    import pickle
    import corejax as cj
    from corejax.base import dtypes
"""


def pack(site: Any, name: str = "clock-pack", element: str = "clock", value: str | None = None, of: str = "clock"
         ) -> None:
    module = name.replace("-", "_")
    site.pack(name, {"dtypes": {element: value or f"{module}:clock"}}, {module: CLOCK.format(name=of)})


UTC = "clock<utc>"  # a name that is no identifier


def run(site: Any, code: str, **environment: str) -> list[str]:
    return str(site.run(textwrap.dedent(USE) + textwrap.dedent(code), **environment)).splitlines()


def test_a_type_is_found_by_its_name_and_not_before(site: Any) -> None:
    pack(site)
    assert ["before", "imported", "ShapeDtypeStruct(shape=(3,), dtype=clock)", "clock[2]"] == run(site, """
    print("before")
    print(cj.ShapeDtypeStruct((3,), "clock"))
    from corejax.ir.parsing import parse_jaxpr
    print(parse_jaxpr("{ lambda ; a:clock[2]. let in (a,) }").in_avals[0])""")


def test_arrays_and_types_from_files_load_it(site: Any, tmp_path: Any) -> None:
    pack(site, element=UTC, of=UTC)
    made = run(site, """
    import clock_pack
    x = clock_pack.of(np.array([[1, 30], [2, 0]], np.uint8))
    struct = cj.ShapeDtypeStruct((2,), "clock<utc>")
    print(repr((*map(pickle.dumps, (x, x.aval, clock_pack.clock, struct)), cj.export.export(cj.jit(lambda x: x))(x)
                .serialize())))""")[-1]
    for i, wanted in enumerate(["Array([clock<utc>(1, 30), clock<utc>(2, 0)], dtype=clock<utc>)", "clock<utc>[2]",
                                "ElementType('clock<utc>', 'uint8', (2,))",
                                "ShapeDtypeStruct(shape=(2,), dtype=clock<utc>)",
                                "Exported(<lambda>: (clock<utc>[2]) -> (clock<utc>[2]), for cpu)"]):
        load = "pickle.loads" if i < 4 else "cj.export.deserialize"
        assert ["imported", wanted] == run(site, f"print(repr({load}({made}[{i}])))")
        said = run(site, f"print(error(lambda: {load}({made}[{i}])))", COREJAX_PACKS="none")
        assert UTC in said[0] and "imported" not in said
        assert "clock-pack 1.0 provides it, and COREJAX_PACKS or COREJAX_DISABLE_PACKS excludes that pack" in said[-1]


def test_two_packs_with_one_name_are_told(site: Any) -> None:
    pack(site)
    pack(site, "watch-pack")
    said = run(site, "print(error(lambda: cj.ShapeDtypeStruct((3,), 'clock')))")
    assert "clock-pack 1.0" in "".join(said) and "watch-pack 1.0" in "".join(said) and "COREJAX_PREFER" in "".join(said)
    assert ["imported", "(3,)"] == run(site, "print(cj.ShapeDtypeStruct((3,), 'clock').shape)",
                                       COREJAX_PREFER="watch-pack")


def test_a_name_in_two_parts_is_found_wherever_types_are_named(site: Any) -> None:
    pack(site, element=UTC, of=UTC)
    text = ("{ lambda ; a:clock<utc>[2]. let b:clock<utc>[] = toy[both=(clock<utc>, f32) one=clock<utc>] a "
            "c:u8[] = other[opaque=1] b in (c,) }")
    said = run(site, f"""
    from corejax.ir.parsing import parse_jaxpr
    from corejax.inspect import checkup, cli
    print(" ".join(str(parse_jaxpr({text!r})).split()))
    print(dtypes.canonical("clock<utc>") is cj.ShapeDtypeStruct((), "clock<utc>").dtype)
    print(error(lambda: cj.numpy.ones(2).astype("clock<utc>")))
    print(error(lambda: dtypes.from_short_name("clock<gmt>")))
    print([found for found in checkup.checkup() if found.pack == "clock-pack"])
    cli.main(["explain", "clock<utc>"])""",
               COREJAX_PACKS="clock-pack,corejax-lax-basic,corejax-numpy,corejax-reductions,corejax-control-flow")
    assert ["imported", text, "True"] == said[:3]
    assert "clock<utc>" in said[3] and "'clock<gmt>' is not a dtype" in "".join(said) and "[]" in said
    assert any(line.startswith("clock<utc> (clock-pack 1.0): an element type, its only provider") for line in said)


def test_two_modules_with_a_type_of_one_name_are_told_apart(site: Any) -> None:
    pack(site, element=UTC, of=UTC)
    site.pack("watch-pack", {"dtypes": {UTC: "watch_pack:clock"}, "functions": {"watch": "watch_pack:f"}},
              {"watch_pack": CLOCK.format(name=UTC).replace("uint8", "int32") + "    def f(): ...\n"})
    for watch in ("int32", "uint8"):
        path = site.folder / "watch_pack.py"
        path.write_text(path.read_text().replace("int32", watch))
        both = "the element type 'clock<utc>' is declared by watch_pack, and was declared by clock_pack already"
        said = run(site, """
        import importlib, clock_pack
        x, dtype = clock_pack.of(np.zeros(2, np.uint8)), clock_pack.clock.dtype
        print(error(lambda: importlib.import_module("watch_pack")))
        print(error(lambda: lax.watch))
        importlib.reload(clock_pack)
        print(clock_pack.clock.module, clock_pack.clock.dtype is dtype, x)""")
        assert both in "\n".join(said[:3]) and "COREJAX_DISABLE_PACKS" in "\n".join(said)
        assert any("watch-pack 1.0 can't be imported" in line for line in said) and 2 == "\n".join(said).count(both)
        assert "clock_pack True clock<utc>(0, 0)" == said[-1]


def test_an_import_that_failed_leaves_its_types_to_the_next_one(site: Any) -> None:
    pack(site)
    pack(site, "watch-pack")
    path = site.folder / "clock_pack.py"
    path.write_text(path.read_text() + "\nimport os\nif 'TORN' in os.environ: 1 / 0\n")
    said = run(site, """
    import os
    os.environ["TORN"] = ""
    print(error(lambda: __import__("clock_pack")))
    del os.environ["TORN"]
    import clock_pack
    print(clock_pack.clock.module)""")
    assert ["imported", "ZeroDivisionError: division by zero", "imported", "clock_pack"] == said
    assert "watch_pack" == run(site, """
    import os
    os.environ["TORN"] = ""
    print(error(lambda: __import__("clock_pack")))
    import watch_pack
    print(watch_pack.clock.module)""")[-1]


def test_what_is_no_element_type_of_that_name_is_told(site: Any) -> None:
    pack(site, "other-pack", of="watch")
    pack(site, "number-pack", element="number", value="number_pack:np")
    pack(site, "text-pack", element="text", value="text_pack:CLOCK")
    for name, problem in [("clock", "the element type 'clock' is not an element type of that name"),
                          ("number", "leads to a module"), ("text", "the element type 'text' leads nowhere")]:
        said = "".join(run(site, f"print(error(lambda: dtypes.from_short_name({name!r})))"))
        assert problem in said, said


def test_check_and_explain_know_them(site: Any) -> None:
    pack(site)
    pack(site, "other-pack", element="watch", of="clock")
    said = "\n".join(run(site, """
    from corejax.inspect.cli import main
    main(["explain", "clock"]), main(["plugins"]), print(main(["check"]))"""))
    assert "clock (clock-pack 1.0): an element type, its only provider" in said
    assert "clock-pack 1.0: 1 element type\n" in said


def test_check_looks_at_what_a_type_says(site: Any) -> None:
    pack(site)
    (site.folder / "clock_pack.py").write_text(textwrap.dedent("""
        from corejax.plugin import ElementType
        clock = ElementType("clock", "uint8", (2,), show=lambda t: 1 // t[0].item(), refuses={"clok_of": "it is late"})
    """))
    site.pack("tick-pack", {"primitives": {"tick": "tick_pack:tick", "tock": "tick_pack:tock"}}, {"tick_pack": """
        from corejax.plugin import hookimpl
        class Tick:
            name, element_types = "tick", ("clok",)
            @hookimpl
            def decompose(self, args):
                return args[0]
        class Tock(Tick):
            name, element_types = "tock", ("clock", "*")
        tick, tock = Tick(), Tock()
        """})
    site.names.append("corejax-lax-basic")
    said = "\n".join(run(site, "from corejax.inspect import checkup; print(*checkup.checkup(), sep='\\n')"))
    assert "elements of type 'clock' can't be shown: ZeroDivisionError" in said
    assert "the element type 'clock' refuses 'clok_of', which no pack in use provides" in said
    assert ("the primitive 'tick' is for elements of type 'clok', which no pack in use provides" in said
            and "did you mean 'clock'" in said and "'tock'" not in said)


KINDS = """
    import numpy as np
    from corejax.plugin import ElementType, define, elements, extended
    print("imported")
    class mark(extended): pass
    red = ElementType("red", np.uint8, (), kind=mark)
    of = define(elements.Wrap("red_of", red))
"""


def test_a_kind_of_elements_is_found_by_its_name(site: Any) -> None:
    site.pack("marks", {"dtypes": {"red": "marks:red", "mark": "marks:mark"}}, {"marks": KINDS})
    assert ["True False", "imported", "True True False True", "True False"] == run(site, """
    from corejax import dtypes
    print("mark" in dir(dtypes), "key<fry>" in dir(dtypes))
    kind = dtypes.mark
    print(dtypes.issubdtype("red", kind), dtypes.issubdtype("red", dtypes.extended), dtypes.issubdtype("f4", kind),
          dtypes.issubdtype(dtypes.red, "red"))
    print(dtypes.issubdtype(kind, dtypes.extended), dtypes.issubdtype("red", np.number))""")


def test_a_kind_that_is_none_is_refused(site: Any) -> None:
    site.pack("marks", {"dtypes": {"mark": "marks:red"}}, {"marks": KINDS})
    said = "\n".join(run(site, "from corejax import dtypes\nprint(error(lambda: dtypes.mark))"))
    assert "is not an element type of that name" in said and "a class mark of elements" in said
    assert "is not a dtype" in "\n".join(run(site, "print(error(lambda: cj.ShapeDtypeStruct((3,), 'extended')))"))
