"""`corejax.tree_util` and `corejax.typing`: JAX's names for what `cj.tree` does, and structures taken apart."""

from __future__ import annotations

import inspect
from collections import OrderedDict, defaultdict, namedtuple
from dataclasses import dataclass

import numpy as np
import pytest

import corejax as cj
from corejax import tree, tree_util
from corejax.errors import CorejaxTypeError, CorejaxValueError
from corejax.tree_util import DictKey, FlattenedIndexKey, GetAttrKey, SequenceKey

Pair = namedtuple("Pair", "x y")
TREES = [1.0, None, (), [], {}, [1, (2, None)], {"b": 1, "a": [2, {"c": 3}]}, Pair(1, [2]), OrderedDict(z=1, a=2),
         defaultdict(list, k=[1, 2]), (Pair(None, {}), [Pair(1, 2)])]


# The same functions

@pytest.mark.parametrize("name", ["all", "broadcast", "flatten", "flatten_with_path", "leaves", "leaves_with_path",
                                  "map", "map_with_path", "reduce", "reduce_associative", "structure", "transpose",
                                  "unflatten"])
def test_functions_of_trees_have_both_names(name):
    assert getattr(tree, name) is getattr(tree_util, f"tree_{name}")


def test_other_names_are_the_same_objects():
    for name in ("DictKey", "Partial", "keystr", "register_dataclass", "register_static"):
        assert getattr(tree, name) is getattr(tree_util, name)
    assert tree.register_node_class is tree_util.register_pytree_node_class
    assert isinstance(tree.structure([1]), tree_util.PyTreeDef)
    assert cj.typing.ArrayLike and cj.typing.DTypeLike


# Keys and paths

def test_keys_have_jax_names_for_what_they_hold():
    assert 3 == SequenceKey(idx=3).idx
    assert "w" == DictKey(key="w").key
    assert "bias" == GetAttrKey(name="bias").name
    assert 2 == FlattenedIndexKey(key=2).key
    assert SequenceKey(idx=1) == SequenceKey(1) != FlattenedIndexKey(1)


def test_a_path_can_be_written_plainly():
    path = (DictKey("w"), SequenceKey(0), GetAttrKey("bias"), FlattenedIndexKey(2))
    assert "['w'][0].bias[<flat index 2>]" == tree_util.keystr(path)
    assert "w/0/bias/2" == tree_util.keystr(path, simple=True, separator="/")
    assert "['w'].[0]" == tree_util.keystr(path[:2], separator=".")
    assert "" == tree_util.keystr((), simple=True, separator="/")
    with pytest.raises(CorejaxTypeError, match="separator must be text"):
        tree_util.keystr(path, separator=1)


def test_a_leaf_can_be_chosen_by_its_path():
    nested = {"a": [1, (2, 3)], "b": (4,)}
    pairs, treedef = tree_util.tree_flatten_with_path(
        nested, is_leaf=lambda path, node: path == (DictKey("a"),), is_leaf_takes_path=True)
    assert [[1, (2, 3)], 4] == [leaf for _, leaf in pairs]
    assert nested == treedef.unflatten([leaf for _, leaf in pairs])
    depths = tree_util.tree_map_with_path(lambda path, x: len(path), nested,
                                          is_leaf=lambda path, node: len(path) == 1, is_leaf_takes_path=True)
    assert {"a": 1, "b": 1} == depths
    assert 2 == len(tree_util.tree_leaves_with_path(nested, lambda path, node: len(path) == 1, True))
    with pytest.raises(ZeroDivisionError):
        tree_util.tree_flatten_with_path(nested, lambda path, node: 1 / 0, True)


# Parts of structures

@pytest.mark.parametrize("nested", TREES, ids=str)
def test_a_structure_is_that_of_its_children(nested):
    treedef = tree.structure(nested)
    children = tree_util.treedef_children(treedef)
    assert treedef.num_leaves == sum([child.num_leaves for child in children]) or tree_util.treedef_is_leaf(treedef)
    assert tree.structure((nested, [nested])) == tree_util.treedef_tuple([treedef, tree.structure([nested])])


def test_a_structure_of_one_node_is_a_leaf():
    assert tree_util.treedef_is_leaf(tree.structure(3.0))
    assert not tree_util.treedef_is_leaf(tree.structure([3.0]))
    assert tree_util.treedef_tuple([]) == tree.structure(())


@pytest.mark.parametrize("function", ["treedef_children", "treedef_is_leaf"])
def test_what_is_no_structure_is_refused(function):
    with pytest.raises(CorejaxTypeError, match="not the structure of a pytree"):
        getattr(tree_util, function)([1, 2])


def test_one_level_has_children_keys_and_what_is_static():
    assert ((3, (1, 2)), ("a", "b")) == tree_util.flatten_one_level({"b": (1, 2), "a": 3})
    assert (((SequenceKey(0), 1), (SequenceKey(1), [2])), None) == tree_util.flatten_one_level_with_keys((1, [2]))
    assert ((), None) == tree_util.flatten_one_level(None)
    pairs, _ = tree_util.flatten_one_level_with_keys(Pair(1, 2))
    assert ((GetAttrKey("x"), 1), (GetAttrKey("y"), 2)) == pairs
    with pytest.raises(CorejaxValueError, match="a leaf, which has no children"):
        tree_util.flatten_one_level(3.0)


def test_containers_are_told_from_leaves():
    assert [True, True, True, False] == [tree_util.is_tree_node(cls) for cls in (list, type(None), OrderedDict, int)]
    assert tree_util.all_leaves([1, "a", np.ones(2)])
    assert not any([tree_util.all_leaves([1, x]) for x in ((), [], None, Pair(1, 2))])
    assert tree_util.all_leaves([(1,), 2], is_leaf=lambda x: isinstance(x, tuple))
    assert tree_util.default_registry.flatten([1, (2,)])[0] == [1, 2]


# Reductions

def test_leaves_are_combined_in_pairs():
    def joined(a, b):
        return f"({a}{b})"

    assert "((a(bc))((de)(fg)))" == tree_util.tree_reduce_associative(joined, list("abcdefg"))
    assert "a" == tree_util.tree_reduce_associative(joined, {"x": "a"})
    assert 0 == tree_util.tree_reduce_associative(joined, [], identity=0)
    with pytest.raises(CorejaxTypeError, match="without an identity"):
        tree_util.tree_reduce_associative(joined, [None])


# Registering

def test_a_class_is_registered_by_functions_of_jax_names():
    class Box:
        def __init__(self, value):
            self.value = value

    tree_util.register_pytree_node(nodetype=Box, flatten_func=lambda box: ((box.value,), "static"),
                                   unflatten_func=lambda static, children: Box(*children))
    assert 6 == tree_util.tree_map(lambda x: 2 * x, Box(3)).value
    assert "[<flat index 0>]" == tree_util.keystr(tree_util.tree_leaves_with_path(Box(1))[0][0])


@pytest.mark.parametrize("has_both", [False, True])
def test_a_class_is_registered_with_keys(has_both):
    calls = []

    class Box:
        def __init__(self, value):
            self.value = value

    def flatten(box):
        calls.append("flatten")
        return (box.value,), None

    tree_util.register_pytree_with_keys(
        Box, lambda box: (((GetAttrKey("value"), box.value),), None), lambda _, children: Box(*children),
        flatten if has_both else None)
    assert [3] == tree_util.tree_leaves(Box(3))
    assert ["flatten"] * has_both == calls
    assert ".value" == tree_util.keystr(tree_util.tree_leaves_with_path(Box(1))[0][0])
    assert 4 == cj.jit(lambda box: tree_util.tree_map(lambda x: x + 1, box))(Box(3)).value


def test_a_class_is_registered_by_its_methods():
    @tree_util.register_pytree_with_keys_class
    class Line:
        def __init__(self, start, stop):
            self.start, self.stop = start, stop

        def tree_flatten_with_keys(self):
            return ((GetAttrKey("start"), self.start), (GetAttrKey("stop"), self.stop)), "line"

        @classmethod
        def tree_unflatten(cls, static, children):
            assert "line" == static
            return cls(*children)

    paths = [tree_util.keystr(path) for path, _ in tree_util.tree_leaves_with_path([Line(1, 2)])]
    assert ["[0].start", "[0].stop"] == paths
    assert 3 == tree_util.tree_map(lambda x: x + 1, Line(1, 2)).stop
    with pytest.raises(CorejaxTypeError, match="no method tree_flatten_with_keys"):
        tree_util.register_pytree_with_keys_class(int)


def test_a_field_can_be_static():
    @tree.register_dataclass
    @dataclass
    class Layer:
        weights: object
        activation: str = tree.static(default="tanh")
        name: str = tree.static(default="", metadata={"doc": "its name"})

    assert [1.0] == tree.leaves(Layer(1.0))
    assert tree.structure(Layer(1.0)) == tree.structure(Layer(2.0)) != tree.structure(Layer(1.0, "relu"))
    assert "its name" == Layer.__dataclass_fields__["name"].metadata["doc"]


# Beside JAX

def test_parity_every_name_is_there_with_jax_parameters():
    jax = pytest.importorskip("jax")
    names = [name for name in dir(jax.tree_util) if not name.startswith("_")]
    assert 35 < len(names)
    assert [] == [name for name in names if not hasattr(tree_util, name)]
    assert [] == [name for name in dir(jax.tree) if not name.startswith("_") and not hasattr(tree, name)]
    assert [] == [name for name in dir(jax.typing) if not name.startswith("_") and not hasattr(cj.typing, name)]
    other = []
    for name in names:
        theirs = getattr(jax.tree_util, name)
        if inspect.isfunction(theirs):
            wanted, found = [list(inspect.signature(each).parameters) for each in (theirs, getattr(tree_util, name))]
            if wanted != found[:len(wanted)]:
                other.append(name)
    # Their first parameter, which is given by position, has another name.
    assert {"keystr", "register_dataclass", "register_pytree_node_class", "register_static"} >= {*other}


@pytest.mark.parametrize("nested", TREES, ids=str)
def test_parity_trees_are_taken_apart_as_jax_does(nested):
    jax = pytest.importorskip("jax")
    theirs, ours = jax.tree_util, tree_util
    assert theirs.tree_leaves(nested) == ours.tree_leaves(nested)
    assert theirs.treedef_is_leaf(theirs.tree_structure(nested)) == ours.treedef_is_leaf(ours.tree_structure(nested))
    assert theirs.all_leaves([nested]) == ours.all_leaves([nested])
    paths = [[[keys.keystr(path), keys.keystr(path, simple=True, separator=".")] for path, _ in
              keys.tree_leaves_with_path(nested)] for keys in (theirs, ours)]
    assert paths[0] == paths[1]
    try:
        children, _ = theirs.flatten_one_level(nested)
    except ValueError:
        with pytest.raises(ValueError):
            ours.flatten_one_level(nested)
    else:
        assert list(children) == list(ours.flatten_one_level(nested)[0])
