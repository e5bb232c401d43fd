"""Pytrees: what is a container, what a leaf, and what happens when trees don't fit."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import subprocess
import sys
from collections import OrderedDict, defaultdict, namedtuple

import pytest

from corejax import tree
from corejax.base import trees
from corejax.base.prefixes import broadcast_prefix, check_same_structure
from corejax.errors import CorejaxTypeError, CorejaxValueError

Point = namedtuple("Point", ["x", "y"])


@tree.register_dataclass
@dataclasses.dataclass
class Layer:
    weights: object
    bias: object
    activation: str = dataclasses.field(default="relu", metadata={"static": True})


@tree.register_node_class
class Pair:
    def __init__(self, first, second):
        self.first, self.second = first, second

    def tree_flatten(self):
        return (self.first, self.second), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)

    def __eq__(self, other):
        return (self.first, self.second) == (other.first, other.second)


@tree.register_static
@dataclasses.dataclass(frozen=True)
class Mode:
    name: str


CONTAINERS = [
    (None, []), (1, [1]), ((1, 2), [1, 2]), ([1, [2]], [1, 2]), ({"b": 1, "a": 2}, [2, 1]), ((), []), ({}, []),
    (Point(1, (2,)), [1, 2]), (OrderedDict(b=1, a=2), [1, 2]), (defaultdict(list, b=1, a=2), [2, 1]),
    (Layer(1, {"z": 2}), [1, 2]), (Pair(1, [2, None]), [1, 2]), ([Mode("train"), 1], [1]),
    ({"a": (None, [1, Point(2, 3)]), "b": defaultdict(int, {3: 4})}, [1, 2, 3, 4]),
]


@pytest.mark.parametrize(("value", "leaves"), CONTAINERS, ids=lambda v: type(v).__name__)
def test_flatten_and_unflatten_are_inverse(value, leaves):
    assert leaves == tree.leaves(value)
    found, treedef = tree.flatten(value)
    again = tree.unflatten(treedef, found)
    assert value == again and type(value) is type(again)
    assert treedef == tree.structure(again) and hash(treedef) == hash(tree.structure(again))


def test_containers_keep_what_is_not_a_leaf():
    again = tree.map(lambda x: x + 1, defaultdict(list, {"a": 1}))
    assert list is again.default_factory
    assert ["b", "a"] == list(tree.map(lambda x: x, OrderedDict(b=1, a=2)))
    assert "relu" == tree.map(lambda x: x, Layer(1, 2)).activation
    assert tree.structure(Layer(1, 2)) != tree.structure(Layer(1, 2, "tanh"))
    assert tree.structure([Mode("train")]) != tree.structure([Mode("test")])


def test_subclasses_of_dict_and_arrays_are_leaves():
    class Special(dict):
        pass

    assert [{"a": 1}, "text"] == tree.leaves([Special(a=1), "text"])


def test_key_paths_read_like_code():
    value = {"a": [1, Point(2, Layer(3, 4))], "b": Pair(5, OrderedDict(k=6)), "c": defaultdict(int, {7: 7})}
    found = [(tree.keystr(path), leaf) for path, leaf in tree.leaves_with_path(value)]
    assert [("['a'][0]", 1), ("['a'][1].x", 2), ("['a'][1].y.weights", 3), ("['a'][1].y.bias", 4),
            ("['b'][<flat index 0>]", 5), ("['b'][<flat index 1>]['k']", 6), ("['c'][7]", 7)] == found


def test_key_path_entries_are_values():
    ((path, _),) = tree.leaves_with_path({"a": [(), Point((), 1)]})
    assert (tree.DictKey("a"), tree.SequenceKey(1), tree.GetAttrKey("y")) == path
    assert ("a", 1, "y") == (path[0].key, path[1].idx, path[2].name)
    assert "DictKey('a')" == repr(path[0]) and len({*path, tree.SequenceKey(1)}) == 3
    assert tree.DictKey(1) != tree.SequenceKey(1)


def test_is_leaf_stops_early():
    value = [(1, 2), {"a": (3, 4)}, None]
    assert [(1, 2), (3, 4)] == tree.leaves(value, is_leaf=lambda x: isinstance(x, tuple))
    assert [1, 2, 3, 4, None] == tree.leaves(value, is_leaf=lambda x: x is None)
    paths = [tree.keystr(p) for p, _ in tree.leaves_with_path(value, is_leaf=lambda x: isinstance(x, tuple))]
    assert ["[0]", "[1]['a']"] == paths


def test_map_takes_several_trees():
    assert {"a": 11, "b": (22,)} == tree.map(lambda x, y: x + y, {"a": 1, "b": (2,)}, {"a": 10, "b": (20,)})
    assert [(1, [2, 3])] == tree.map(lambda x, y: (x, y), [1], [[2, 3]])
    assert {"a": ("['a']", 1, 10)} == tree.map_with_path(lambda p, x, y: (tree.keystr(p), x, y), {"a": 1}, {"a": 10})


def test_reduce_and_all():
    assert 6 == tree.reduce(lambda x, y: x + y, {"a": 1, "b": [2, 3]})
    assert 16 == tree.reduce(lambda x, y: x + y, {"a": 1, "b": [2, 3]}, 10)
    assert tree.all({"a": True, "b": []}) and not tree.all([True, {"x": 0}])
    with pytest.raises(CorejaxTypeError, match="without leaves can't be reduced"):
        tree.reduce(lambda x, y: x + y, ())


def test_transpose():
    outer, inner = tree.structure([0, 0]), tree.structure({"a": 0, "b": 0})
    value = [{"a": 1, "b": 2}, {"a": 3, "b": 4}]
    assert {"a": [1, 3], "b": [2, 4]} == tree.transpose(outer, inner, value) == tree.transpose(outer, None, value)
    with pytest.raises(CorejaxTypeError, match="not the outer structure of the inner one"):
        tree.transpose(inner, outer, value)


def test_broadcast_repeats_the_leaves_of_a_prefix():
    full = ({"x": 1, "y": [2, 3]}, None, 4)
    assert ({"x": 0, "y": [1, 1]}, None, 2) == tree.broadcast(({"x": 0, "y": 1}, None, 2), full)
    assert [0, 0, 0, 5] == broadcast_prefix((0, None, 5), full, lambda x: x is None)
    assert [7, 7, 7, 7] == broadcast_prefix(7, full)


@pytest.mark.parametrize(("prefix", "full", "path", "got", "wanted"), [
    ((0, (1, 2)), (3, [4, 5]), r"args\[1\]", "a list of 2", "a tuple of 2"),
    ((0, {"w": 1}), (3, {"v": 5}), r"args\[1\]", r"keys \['v'\]", r"keys \['w'\]"),
    ((0, 1), (1, 2, 3), "args", "a tuple of 3", "a tuple of 2"),
    (({"a": (1,)},), ({"a": 5},), r"args\[0\]\['a'\]", "a leaf of type int", "a tuple of 1"),
    ((Layer(1, 2, "tanh"),), (Layer(1, 2),), r"args\[0\]", "relu", "tanh"),
])
def test_a_prefix_that_does_not_fit_says_where(prefix, full, path, got, wanted):
    with pytest.raises(CorejaxValueError, match=f"the structure of in_axes doesn't fit args, at {path}\n") as caught:
        broadcast_prefix(prefix, full, names=("in_axes", "args"))
    caught.match(f"got: +.*{got}")
    caught.match(f"wanted: +.*{wanted}")


def test_trees_of_other_structure_are_refused_by_map():
    with pytest.raises(CorejaxValueError, match=r"tree number 2\['a'\]\[1\]"):
        tree.map(lambda x, y: x, {"a": [1, (2, 3)]}, {"a": [1, 2]})


def test_the_same_structure_is_checked_both_ways():
    check_same_structure([1, (2,)], [3, (4,)], ("one", "other"), "f")
    with pytest.raises(CorejaxTypeError, match=r"f: other doesn't have the structure of one, at other\[1\]") as caught:
        check_same_structure([1, 2], [3, (4,)], ("one", "other"), "f")
    assert ("a tuple of 1", "a leaf of type int") == (caught.value.got, caught.value.wanted)


@pytest.mark.parametrize("make", [dict, lambda items: defaultdict(int, items)])
def test_keys_without_order_are_refused_with_the_path(make):
    with pytest.raises(CorejaxTypeError, match=r"the dict at \['a'\]\[1\] of a pytree can't be sorted") as caught:
        tree.flatten({"a": [0, make({1: 2, "x": 3})]})
    assert "types int, str" in caught.value.got and "OrderedDict" in caught.value.todo
    assert [2, 3] == tree.leaves(OrderedDict({1: 2, "x": 3}))


def test_a_tree_that_contains_itself_is_refused():
    value = [1]
    value.append(value)
    with pytest.raises(CorejaxValueError, match="contains itself"):
        tree.leaves(value)


def test_wrong_number_of_leaves():
    with pytest.raises(CorejaxValueError, match="as many leaves as it has") as caught:
        tree.unflatten(tree.structure((1, 2)), [1])
    assert 1 == caught.value.got


def test_what_a_flatten_function_raises_passes_through():
    class Broken:
        pass

    class Oops(Exception):
        pass

    def flatten(_):
        raise Oops

    tree.register_node(Broken, flatten, lambda *_: Broken())
    with pytest.raises(Oops):
        tree.leaves([Broken()])


def test_a_flatten_function_of_another_form_is_named():
    class Wrong:
        pass

    tree.register_node(Wrong, lambda _: 3, lambda *_: Wrong())
    with pytest.raises(CorejaxTypeError, match=r"flattening the .*Wrong at \[0\]\['k'\]"):
        tree.leaves([{"k": Wrong()}])


def test_classes_are_registered_once():
    with pytest.raises(CorejaxValueError, match="Pair is already a pytree node"):
        tree.register_node_class(Pair)
    with pytest.raises(CorejaxValueError, match="dict is already a pytree node"):
        tree.register_node(dict, lambda d: ((), None), lambda *_: {})
    with pytest.raises(CorejaxTypeError, match="only a class"):
        tree.register_node(Pair(1, 2), lambda d: ((), None), lambda *_: {})


def test_dataclass_fields_are_checked():
    @dataclasses.dataclass
    class Some:
        a: int
        b: int

    with pytest.raises(CorejaxValueError, match="are not its fields") as caught:
        tree.register_dataclass(Some, data_fields=["a"], meta_fields=["c"])
    assert ("a, c", "a, b") == (caught.value.got, caught.value.wanted)
    with pytest.raises(CorejaxTypeError, match="together, or not at all"):
        tree.register_dataclass(Some, data_fields=["a"])
    with pytest.raises(CorejaxTypeError, match="int is not a dataclass"):
        tree.register_dataclass(int)
    tree.register_dataclass(Some, data_fields=["b"], meta_fields=["a"])
    assert [2] == tree.leaves(Some(1, 2))


def test_registering_before_the_first_flatten_loads_nothing():
    code = """
import sys
from corejax import tree
class Box:
    def __init__(self, x): self.x = x
tree.register_node(Box, lambda b: ((b.x,), None), lambda _, c: Box(*c))
assert "jaxlib" not in sys.modules
assert [5] == tree.leaves([Box(5)])
assert "jaxlib" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_registry_is_not_the_default_one_of_jaxlib():
    from corejax.base import _jaxlib

    assert trees.registry() is not _jaxlib.pytree.default_registry()
    assert _jaxlib.pytree.default_registry().flatten([Pair(1, 2)])[0] != [1, 2]


# Copies

@pytest.mark.parametrize("example", [1, None, (), [1], (1, (2, None)), {"b": 1, "a": [2]}, Point(1, {"z": 2}),
                                  OrderedDict(b=1, a=2), defaultdict(list, a=1)], ids=lambda example: str(example)[:20])
def test_structures_are_copied_and_pickled(example):
    structure = tree.structure(example)
    copies = [copy.copy(structure), copy.deepcopy(structure),
              *[pickle.loads(pickle.dumps(structure, protocol)) for protocol in range(pickle.HIGHEST_PROTOCOL + 1)]]
    assert [structure] * len(copies) == copies
    assert [hash(structure)] * len(copies) == list(map(hash, copies))
    assert example == copies[-1].unflatten(tree.leaves(example))


def test_a_structure_says_which_part_of_it_can_not_be_pickled():
    with pytest.raises((pickle.PicklingError, AttributeError), match="lambda"):
        pickle.dumps(tree.structure(defaultdict(lambda: 0, a=1)))
