"""Convolutions: params that fit neither the operands nor each other."""

from __future__ import annotations

from .case import Group

general = Group("Convolutions")


def add(name: str, arguments: str, error: type[Exception], *words: str, shapes: str = "(1, 2, 5), (4, 2, 2)") -> None:
    """A call with operands of these shapes."""
    general.add(name, f"x, y = [np.ones(shape) for shape in ({shapes})]\nlax.conv_general_dilated(x, y, {arguments})",
                error, *words)


add("operands of different ranks", "(1,), 'VALID'", TypeError, "3 and 2 axes", shapes="(1, 2, 5), (2, 2)")
add("vectors", "(), 'VALID'", TypeError, "1 and 1 axes", "from 2", shapes="(5,), (2,)")
add("another number of features", "(1,), 'VALID'", ValueError, "3 features", "takes 2", shapes="(1, 3, 5), (4, 2, 2)")
add("axes in another order than is meant", "(1, 1), 'SAME'", ValueError, "8 features", "takes 3", "dimension_numbers",
    shapes="(1, 8, 8, 3), (3, 3, 3, 4)")
add("a stride of 0", "(0,), 'VALID'", ValueError, "window_strides=(0,)", "positive")
add("a negative stride", "(-1,), [(0, 0)]", ValueError, "window_strides=(-1,)")
add("too many strides", "(1, 1), 'VALID'", ValueError, "window_strides=(1, 1)", "1 positive integer")
add("a stride beyond 64 bits", "(2 ** 64,), 'VALID'", ValueError, "window_strides", "2**62")
add("a stride that isn't an integer", "(1.5,), 'VALID'", TypeError, "window_strides", "1.5")
add("a dilation of 0", "(1,), 'VALID', rhs_dilation=(0,)", ValueError, "rhs_dilation=(0,)")
add("too few dilations", "(1,), [(0, 0)], lhs_dilation=()", ValueError, "lhs_dilation=()")
add("a padding that doesn't exist", "(1,), 'FULL'", ValueError, "'FULL'", "'SAME_LOWER'")
add("a number for the padding", "(1,), 1", ValueError, "padding=1", "1 pair")
add("numbers instead of pairs", "(1,), [1]", ValueError, "padding=[1]", "pair")
add("padding for another number of axes", "(1,), [(0, 0), (0, 0)]", ValueError, "1 pair")
add("a half for padding", "(1,), [(0.5, 0.5)]", TypeError, "padding", "0.5")
add("padding that removes too much", "(1,), [(-3, -3)]", ValueError, "padding=((-3, -3),)", "sizes (5,)")
add("words for padding of a dilated operand", "(1,), 'SAME', lhs_dilation=(2,)", ValueError, "'SAME'",
    "conv_transpose")
add("groups that don't divide the features", "(1,), 'VALID', feature_group_count=3", ValueError, "3 groups",
    "2 features")
add("groups that don't divide the results", "(1,), 'VALID', feature_group_count=2", ValueError,
    "feature_group_count=2", "3 output features", shapes="(1, 4, 5), (3, 2, 2)")
add("groups that don't divide the batch", "(1,), 'VALID', batch_group_count=2", ValueError, "batch_group_count=2",
    "a batch of 1")
add("no groups", "(1,), 'VALID', feature_group_count=0", ValueError, "feature_group_count=0", "from 1 on")
add("groups of features and of the batch", "(1,), 'VALID', feature_group_count=2, batch_group_count=2", ValueError,
    "can't both", "batch_group_count=2", shapes="(2, 4, 5), (4, 2, 2)")
add("a word without features", "(1,), 'VALID', dimension_numbers=('NWX', 'OIW', 'NCW')", TypeError, "'NWX'", "N and C")
add("a letter twice", "(1,), 'VALID', dimension_numbers=('NCC', 'OIW', 'NCW')", TypeError, "'NCC'")
add("different letters in space", "(1,), 'VALID', dimension_numbers=('NCW', 'OIH', 'NCW')", TypeError,
    "same letters", "'OIH'")
add("two words", "(1,), 'VALID', dimension_numbers=('NCW', 'OIW')", TypeError, "three words")
add("words that are too long", "(1,), 'VALID', dimension_numbers=('NCHW', 'OIHW', 'NCHW')", TypeError, "'NCHW'",
    "3 axes")
add("numbers without their type", "(1,), 'VALID', dimension_numbers=((0, 1, 2),) * 3", TypeError,
    "lax.ConvDimensionNumbers")
add("an axis twice", "(1,), 'VALID', dimension_numbers=lax.ConvDimensionNumbers((0, 1, 1), (0, 1, 2), (0, 1, 2))",
    TypeError, "(0, 1, 1)", "once")
add("a precision that doesn't exist", "(1,), 'VALID', precision='exact'", ValueError, "'exact'", "'highest'")
add("an algorithm of matrix products", "(1,), 'VALID', precision=lax.DotAlgorithmPreset.F32_F32_F32", ValueError,
    "precision", "preferred_element_type")
add("a narrower result", "(1,), 'VALID', preferred_element_type='float32'", TypeError, "f64", "at least as wide")
add("integers for floats", "(1,), 'VALID', preferred_element_type='int64'", TypeError, "int64", "can't hold")
general.add("operands of two dtypes", "lax.conv(np.ones((1, 1, 3), 'float32'), np.ones((1, 1, 2)), (1,), 'VALID')",
            TypeError, "f32[1,1,3]", "f64[1,1,2]", "astype")
general.add("a list for an operand", "lax.conv([[[1.0, 2.0]]], np.ones((1, 1, 2)), (1,), 'VALID')", TypeError, "list")
general.add("a traced stride", "cj.jit(lambda s: lax.conv(np.ones((1, 1, 3)), np.ones((1, 1, 2)), (s,), 'SAME'))(1)",
            TypeError, "i64[]", "static")

others = Group("Transposed convolutions, patches, shapes")
others.add("more axes than have default words", "lax.conv_transpose(np.ones((1,) * 6), np.ones((1,) * 6), (1,) * 4, "
           "'SAME')", ValueError, "6 axes", "dimension_numbers")
others.add("another padding of the convolution to transpose", "lax.conv_transpose(np.ones((1, 3, 1)), np.ones((2, 1, "
           "1)), (2,), 'SAME_LOWER', use_consistent_padding=True)", ValueError, "'SAME_LOWER'", "'VALID'")
others.add("another padding in words", "lax.conv_transpose(np.ones((1, 3, 1)), np.ones((2, 1, 1)), (2,), 'same')",
           ValueError, "'same'", "'SAME' or 'VALID'")
others.add("too few strides", "lax.conv_transpose(np.ones((1, 3, 3, 1)), np.ones((2, 2, 1, 1)), (2,), 'SAME')",
           ValueError, "strides=(2,)", "2 positive integers")
others.add("a window for patches of another rank", "lax.conv_general_dilated_patches(np.ones((1, 2, 5)), (2, 2), (1,), "
           "'VALID')", ValueError, "filter_shape=(2, 2)", "1 positive")
others.add("patches without elements", "lax.conv_general_dilated_patches(np.ones((1, 2, 5)), (0,), (1,), 'VALID')",
           ValueError, "filter_shape=(0,)")
others.add("too few windows", "lax.conv_general_dilated_local(np.ones((1, 2, 5)), np.ones((3, 4, 3)), (1,), 'VALID', "
           "(2,))", ValueError, "f64[3,4,3]", "4 input features", "(4,) in space")
others.add("a negative size", "lax.conv_shape_tuple((1, 2, -3), (1, 2, 2), (1,), 'VALID')", ValueError, "lhs_shape",
           "negative")
others.add("shapes of different ranks", "lax.conv_dimension_numbers((1, 2, 3), (1, 2), None)", TypeError,
           "3 and 2 axes")
others.add("one word for three", "lax.conv_general_permutations('NCW')", TypeError, "three words", "'NCW'")

GROUPS: tuple[Group, ...] = (general, others)
