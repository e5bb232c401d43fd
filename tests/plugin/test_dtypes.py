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
    pack(site)
    made = run(site, """
    import clock_pack
    x = clock_pack.of(np.array([[1, 30], [2, 0]], np.uint8))
    struct = cj.ShapeDtypeStruct((2,), "clock")
    print(repr((*map(pickle.dumps, (x, x.aval, clock_pack.clock, struct)), cj.export.export(cj.jit(lambda x: x))(x)
                .serialize())))""")[-1]
    for i, wanted in enumerate(["Array([clock(1, 30), clock(2, 0)], dtype=clock)", "clock[2]",
                                "ElementType('clock', 'uint8', (2,))", "ShapeDtypeStruct(shape=(2,), dtype=clock)",
                                "Exported(<lambda>: (clock[2]) -> (clock[2]), for cpu)"]):
        load = "pickle.loads" if i < 4 else "cj.export.deserialize"
        assert ["imported", wanted] == run(site, f"print(repr({load}({made}[{i}])))")
        said = run(site, f"print(error(lambda: {load}({made}[{i}])))", COREJAX_PACKS="none")
        assert "clock" in said[0] and "imported" not in said
        assert "clock-pack 1.0 provides it, and COREJAX_PACKS or COREJAX_DISABLE_PACKS excludes that pack" in said[-1]


def test_two_packs_with_one_name_are_told(site: Any) -> None:
    pack(site)
    pack(site, "watch-pack")
    said = run(site, "print(error(lambda: cj.ShapeDtypeStruct((3,), 'clock')))")
    assert "clock-pack 1.0" in "".join(said) and "watch-pack 1.0" in "".join(said) and "COREJAX_PREFER" in "".join(said)
    assert ["imported", "(3,)"] == run(site, "print(cj.ShapeDtypeStruct((3,), 'clock').shape)",
                                       COREJAX_PREFER="watch-pack")


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
