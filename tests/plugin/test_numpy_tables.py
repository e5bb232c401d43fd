"""The roles that every pack may fill, with a table of NumPy's functions each."""

from __future__ import annotations

TABLE = """
    import numpy as np
    numpy_ufunc = {{np.{ufunc}: lambda x: {result!r}}}
"""

CALL = """
    from corejax.core import ShapedArray, stage
    def result_of(function):
        found = []
        stage(lambda x: [found.append(function(x)) or x], [ShapedArray((3,), float)])
        return found[0]
"""


def table(site, name, ufunc, result):
    module = name.replace("-", "_")
    site.pack(name, {"roles": {"numpy_ufunc": f"{module}:numpy_ufunc"}},
              {module: TABLE.format(ufunc=ufunc, result=result)})


def test_the_tables_of_all_packs_are_joined(site):
    table(site, "pack-a", "sin", "sine")
    table(site, "pack-b", "cos", "cosine")
    assert "sine cosine" == site.run(CALL + "    print(result_of(np.sin), result_of(np.cos))").strip()
    checked = site.run("from corejax.inspect.checkup import checkup; print(list(checkup()))")
    assert "[]" == checked.strip()
    explained = site.run("import corejax as cj; cj.plugins.explain('numpy_ufunc')")
    assert "pack-a 1.0" in explained and "pack-b 1.0" in explained and "a table of 1 functions" in explained


def test_a_clash_of_two_tables_names_both_packs_where_it_is_used(site):
    table(site, "pack-a", "sin", "first")
    table(site, "pack-b", "sin", "second")
    table(site, "pack-c", "cos", "cosine")
    out = site.run(CALL + "    print(result_of(np.cos), error(lambda: result_of(np.sin)))")
    assert out.startswith("cosine PackError: the role 'numpy_ufunc of sin' is provided more than once")
    assert "pack-a 1.0" in out and "pack-b 1.0" in out and "COREJAX_PREFER=" in out
    assert "second" == site.run(CALL + "    print(result_of(np.sin))", COREJAX_PREFER="pack-b").strip()


def test_a_broken_table_leaves_the_others_alone(site):
    table(site, "pack-a", "sin", "sine")
    site.pack("pack-b", {"roles": {"numpy_ufunc": "pack_b:numpy_ufunc"}}, {"pack_b": "raise ValueError('no')"})
    site.pack("pack-c", {"roles": {"numpy_ufunc": "pack_c:numpy_ufunc"}}, {"pack_c": "numpy_ufunc = {'sin': 3}"})
    out = site.run(CALL + """
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        print(result_of(np.sin))
    print(*[w.message for w in seen])
    """)
    assert out.startswith("sine\n")
    assert "the pack pack-b 1.0 can't be imported" in out and "pack-c 1.0: the role 'numpy_ufunc' is not a table" in out
