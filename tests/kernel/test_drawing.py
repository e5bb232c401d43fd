"""Pictures of shardings: as text, in color, and as SVG."""

from __future__ import annotations

import io
import sys
import xml.etree.ElementTree as ET
from types import SimpleNamespace

import numpy as np
import pytest
from grids import DEVICES, FakeDevice, grid

from corejax.arrays.drawing import Drawing, visualize_array_sharding, visualize_sharding
from corejax.arrays.meshes import AbstractMesh, Mesh
from corejax.arrays.partitions import P
from corejax.arrays.shardings import NamedSharding, SingleDeviceSharding
from corejax.errors import CorejaxError

SVG = "{http://www.w3.org/2000/svg}"


def named(*spec):
    return NamedSharding(Mesh(grid(2, 4), ("x", "y")), P(*spec))


def many(*spec):
    devices = np.array([FakeDevice(i, "gpu") for i in range(256)]).reshape(4, 64)
    return NamedSharding(Mesh(devices, ("a", "b")), P(*spec))


def test_each_part_is_a_box_with_its_device_and_range():
    assert """\
shape (8, 16), P('x', 'y') on Mesh('x': 2, 'y': 4)
       0:4     4:8     8:12   12:16
    ┌───────┬───────┬───────┬───────┐
0:4 │ cpu 0 │ cpu 1 │ cpu 2 │ cpu 3 │
    ├───────┼───────┼───────┼───────┤
4:8 │ cpu 4 │ cpu 5 │ cpu 6 │ cpu 7 │
    └───────┴───────┴───────┴───────┘""" == str(Drawing((8, 16), named("x", "y")))


def test_devices_with_the_same_part_are_in_one_box():
    assert """\
shape (8,), P('x') on Mesh('x': 2, 'y': 4)
    0:4       4:8
┌─────────┬─────────┐
│ cpu 0-3 │ cpu 4-7 │
└─────────┴─────────┘""" == str(Drawing((8,), named("x")))
    assert ["cpu 0, 4", "cpu 1, 5", "cpu 2, 6", "cpu 3, 7"] == [
        line.split("│")[1].strip() for line in str(Drawing((4, 2), named("y"))).splitlines() if "│" in line]


def test_a_scalar_is_one_box():
    assert """\
shape (), P() on Mesh('x': 2, 'y': 4)
┌─────────┐
│ cpu 0-7 │
└─────────┘""" == str(Drawing((), named()))
    assert "shape (), on one device\n┌───────┐\n│ cpu 3 │\n└───────┘" == str(
        Drawing((), SingleDeviceSharding(DEVICES[3])))


@pytest.mark.parametrize("width", [60, 80, 200])
@pytest.mark.parametrize("spec", [("a", "b"), ("b", "a"), ("b",), (None, "b"), (None, ("a", "b")), ("a",), ()])
def test_text_is_no_wider_than_wanted(spec, width):
    lines = str(Drawing((256, 256), many(*spec), max_width=width)).splitlines()[1:]
    assert max(map(len, lines)) <= width and len(lines) < 70
    assert 1 == len({len(line) for line in lines[1:]})  # a rectangle
    assert "255" in "".join(lines)


def test_boxes_beside_and_above_each_other_differ_in_color():
    text = Drawing((256, 256), many("a", "b"), max_width=2000).text(color=True)
    rows = [[code.split(";")[2] for code in line.split("\x1b[48")[1:]] for line in text.splitlines() if "\x1b" in line]
    assert (4, 64) == (len(rows), len(rows[0]))
    for row, below in zip(rows, rows[1:], strict=False):
        assert all(a != b for a, b in zip(row, row[1:], strict=False))
        assert all(a != b for a, b in zip(row, below, strict=True))


@pytest.mark.parametrize("sharding", [named("x", "y"), named(), named(None, "x"), many("a", "b"), many("b"),
                                      SingleDeviceSharding(DEVICES[3])], ids=str)
def test_svg_has_a_rectangle_for_each_part(sharding):
    root = ET.fromstring(Drawing((256, 512), sharding)._repr_svg_())
    rectangles = root.findall(f".//{SVG}rect")
    assert np.prod(sharding.tiling(2).counts) == len(rectangles)
    width, height = float(root.get("width")), float(root.get("height"))
    for each in rectangles:
        x, y, w, h = (float(each.get(name)) for name in ("x", "y", "width", "height"))
        assert 0 < x < x + w < width and 0 < y < y + h < height
    titles = [each.text for each in root.findall(f".//{SVG}title")]
    assert len(titles) == len(set(titles))
    assert str(Drawing((256, 512), sharding)).splitlines()[0] == root.find(f"{SVG}text").text


def test_names_are_escaped_in_svg():
    mesh = Mesh(grid(2), ("<b>&",))
    assert "P('<b>&')" in ET.fromstring(Drawing((2,), NamedSharding(mesh, P("<b>&"))).svg()).find(f"{SVG}text").text


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_colors_are_for_terminals_only(monkeypatch, capsys):
    monkeypatch.delenv("NO_COLOR", raising=False)
    visualize_sharding((2,), named("x"))
    plain = capsys.readouterr().out
    assert str(Drawing((2,), named("x"))) + "\n" == plain
    monkeypatch.setattr(sys, "stdout", Terminal())
    visualize_sharding((2,), named("x"))
    assert "\x1b[48;5;" in sys.stdout.getvalue()
    for setting, choice in (("1", True), ("", False)):
        monkeypatch.setenv("NO_COLOR", setting)
        monkeypatch.setattr(sys, "stdout", Terminal())
        visualize_sharding((2,), named("x"), use_color=choice)
        assert plain == sys.stdout.getvalue()


def test_a_notebook_shows_svg(monkeypatch, capsys):
    shown = []
    notebook = SimpleNamespace(get_ipython=lambda: SimpleNamespace(kernel=None),
                               display=SimpleNamespace(display=shown.append))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    array = SimpleNamespace(shape=(2, 4), sharding=named("x", "y"))
    visualize_array_sharding(array)
    assert "" == capsys.readouterr().out
    assert [Drawing((2, 4), named("x", "y")).svg()] == [each._repr_svg_() for each in shown]
    notebook.get_ipython = lambda: SimpleNamespace()  # IPython in a terminal
    visualize_array_sharding(array)
    assert "cpu 7" in capsys.readouterr().out and 1 == len(shown)


@pytest.mark.parametrize(("draw", "kind", "message"), [
    (lambda: visualize_sharding((2, 4, 4), named("x")), ValueError, r"(?s)more than two.*\(2, 4, 4\).*such as x\[0\]"),
    (lambda: visualize_sharding((3,), named("x")), ValueError, "can't be divided evenly"),
    (lambda: visualize_sharding((2,), P("x")), TypeError, "only shardings can be drawn"),
    (lambda: visualize_sharding(2, named("x")), TypeError, "a shape must hold integers"),
    (lambda: visualize_sharding((2,), NamedSharding(AbstractMesh((2,), ("x",)), P("x"))), ValueError, "no devices"),
    (lambda: visualize_array_sharding(np.ones(3)), TypeError, "only an array that has its elements"),
])
def test_what_can_not_be_drawn_is_refused(draw, kind, message):
    with pytest.raises(kind, match=message) as caught:
        draw()
    error = caught.value
    assert isinstance(error, CorejaxError) and None not in (error.got, error.wanted, error.where, error.todo)
