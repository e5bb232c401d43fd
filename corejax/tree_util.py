"""`corejax.tree_util`: the functions of `cj.tree` under JAX's other names, and what takes structures apart.

>>> from corejax import tree_util
>>> tree_util.tree_map(lambda x: 2 * x, {"a": 1, "b": (2, 3)})
{'a': 2, 'b': (4, 6)}
"""

from typing import TYPE_CHECKING

from corejax.base.facades import facade

if TYPE_CHECKING:
    from corejax.base.tree_functions import (
        DictKey as DictKey,
        FlattenedIndexKey as FlattenedIndexKey,
        GetAttrKey as GetAttrKey,
        Partial as Partial,
        SequenceKey as SequenceKey,
        keystr as keystr,
        register_dataclass as register_dataclass,
        register_static as register_static,
    )
    from corejax.base.tree_parts import (
        KeyEntry as KeyEntry,
        KeyPath as KeyPath,
        all_leaves as all_leaves,
        default_registry as default_registry,
        flatten_one_level as flatten_one_level,
        flatten_one_level_with_keys as flatten_one_level_with_keys,
        is_tree_node as is_tree_node,
        register_pytree_node as register_pytree_node,
        register_pytree_with_keys as register_pytree_with_keys,
        register_pytree_with_keys_class as register_pytree_with_keys_class,
        treedef_children as treedef_children,
        treedef_is_leaf as treedef_is_leaf,
        treedef_tuple as treedef_tuple,
    )
else:  # so that type checkers refuse names that aren't there
    __all__, __getattr__, __dir__ = facade(__name__, {
        "corejax.base.tree_functions":
            "DictKey FlattenedIndexKey GetAttrKey Partial SequenceKey all=tree_all broadcast=tree_broadcast "
            "flatten=tree_flatten flatten_with_path=tree_flatten_with_path keystr leaves=tree_leaves "
            "leaves_with_path=tree_leaves_with_path map=tree_map map_with_path=tree_map_with_path reduce=tree_reduce "
            "reduce_associative=tree_reduce_associative register_dataclass "
            "register_node_class=register_pytree_node_class register_static structure=tree_structure "
            "transpose=tree_transpose unflatten=tree_unflatten",
        "corejax.base.tree_parts":
            "KeyEntry KeyPath all_leaves default_registry flatten_one_level flatten_one_level_with_keys "
            "is_tree_node register_pytree_node register_pytree_with_keys register_pytree_with_keys_class "
            "treedef_children treedef_is_leaf treedef_tuple",
        "corejax.base._jaxlib": "PyTreeDef",
    })
