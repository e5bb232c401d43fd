"""Meshes of devices, specs and shardings that don't fit them."""

from __future__ import annotations

from .case import Group

EIGHT = {"COREJAX_NUM_CPU_DEVICES": "8"}

meshes = Group("Meshes")
meshes.add("more devices than there are", "cj.make_mesh((3, 3), ('x', 'y'))", ValueError, "3 x 3 = 9", "8 devices",
           "at most 8", jax=None, environment=EIGHT)
meshes.add("a device twice", "cj.sharding.Mesh([cj.devices()[0], cj.devices()[0]], 'x')", ValueError, "twice",
           "2 positions", "num_cpu_devices")
meshes.add("no devices", "cj.sharding.Mesh([], 'x')", ValueError, "at least one device")
meshes.add("too few names", "cj.make_mesh((1, 1), ('x',))", ValueError, "(1, 1)", "1 name: 'x'", "2 names")
meshes.add("devices that aren't in a grid", "cj.sharding.Mesh(cj.devices()[:1], ('x', 'y'))", ValueError, "(1,)",
           "2 names", "reshape")
meshes.add("rows of different lengths", """
    d = cj.devices()
    cj.sharding.Mesh([d[:3], d[3:]], ('x', 'y'))
    """, ValueError, "a full grid", "equal lengths", jax=None, environment=EIGHT)
meshes.add("the same name twice", "cj.make_mesh((1, 1), ('x', 'x'))", ValueError, "'x' once")
meshes.add("a list for a name", "cj.sharding.Mesh(cj.devices()[:1], [['x']])", TypeError, "axis_names[0]", "unhashable")
meshes.add("None for a name", "cj.sharding.Mesh(cj.devices()[:1], (None,))", TypeError, "axis_names[0]", "None")
meshes.add("a number of devices for devices", "cj.sharding.Mesh(8, 'x')", TypeError, "made of devices", "cj.devices()")
meshes.add("names of devices for devices", "cj.sharding.Mesh(['cpu:0'], 'x')", TypeError, "made of devices",
           "cj.devices()")
meshes.add("a number for the sizes", "cj.make_mesh(1, 'x')", TypeError, "integers", "(8,)")
meshes.add("a size that isn't an integer", "cj.make_mesh((1.0,), 'x')", TypeError, "integers", "(1.0,)")
meshes.add("an axis of size 0", "cj.make_mesh((0, 1), ('x', 'y'))", ValueError, "at least one device", "(0, 1)")
meshes.add("explicit axes", "cj.make_mesh((1,), 'x', cj.sharding.AxisType.Explicit)", NotImplementedError, "explicit",
           "AxisType.Auto", jax=None)
meshes.add("changing one", "cj.make_mesh((1,), 'x').axis_names = ('y',)", AttributeError, "can't be changed")
meshes.add("the devices of an abstract one", "cj.sharding.AbstractMesh((2, 4), ('x', 'y')).flat_devices", ValueError,
           "no devices", "make_mesh", jax=None)

MESH = "mesh = cj.sharding.AbstractMesh((2, 4), ('x', 'y'))\n"

shardings = Group("Shardings")
shardings.add("an axis that the mesh doesn't have", MESH + "cj.NamedSharding(mesh, cj.P('rows'))", ValueError,
              "no axis 'rows'", "'x', 'y'")
shardings.add("the number of a dimension for an axis", MESH + "cj.NamedSharding(mesh, cj.P(0, 1))", ValueError,
              "no axis 0", "'x', 'y'")
shardings.add("an axis for two dimensions", MESH + "cj.NamedSharding(mesh, cj.P('x', 'x'))", ValueError, "'x'",
              "two dimensions", "at most once")
shardings.add("a tuple for a spec", MESH + "cj.NamedSharding(mesh, ('x', None))", TypeError, "('x', None)", "P(...)")
shardings.add("no spec", MESH + "cj.NamedSharding(mesh, None)", TypeError, "P()")
shardings.add("the spec first", MESH + "cj.NamedSharding(cj.P('x'), mesh)", TypeError, "needs a mesh", "PartitionSpec")
shardings.add("devices for a mesh", "cj.NamedSharding(cj.devices(), cj.P('x'))", TypeError, "needs a mesh", "a list")
shardings.add("a size that its axis doesn't divide", MESH + "cj.NamedSharding(mesh, cj.P('y')).shard_shape((6, 2))",
              ValueError, "dimension 0", "'y' of size 4", "size 6", "a multiple of 4", "pad it to 8 or cut it to 4")
shardings.add("a size that its two axes don't divide",
              MESH + "cj.NamedSharding(mesh, cj.P(None, ('x', 'y'))).shard_shape((6, 12))", ValueError,
              "dimension 1", "'x' of size 2 and 'y' of size 4", "size 12", "a multiple of 8")
shardings.add("more entries than dimensions", MESH + "cj.NamedSharding(mesh, cj.P(None, 'x')).shard_shape((4,))",
              ValueError, "rank 1", "at most 1 entry")
shardings.add("a scalar that is divided", MESH + "cj.NamedSharding(mesh, cj.P('x')).shard_shape(())", ValueError,
              "rank 0", "P()")
shardings.add("a number for a shape", MESH + "cj.NamedSharding(mesh, cj.P('x')).shard_shape(8)", TypeError, "8",
              "(8,)")
shardings.add("a list within a tuple of axes", "cj.P(('x', ['y']))", ValueError, "names of axes",
              jax=MESH + "cj.NamedSharding(mesh, cj.P(('x', ['y'])))")
shardings.add("a dict in a spec", "cj.P({'x': 0})", TypeError, "entry 0", "unhashable",
              jax=MESH + "cj.NamedSharding(mesh, cj.P({'x': 0}))")
shardings.add("another memory", MESH + "cj.NamedSharding(mesh, cj.P('x'), memory_kind='pinned_host')",
              NotImplementedError, "default memory", "'pinned_host'")
shardings.add("a platform for a device", "cj.sharding.SingleDeviceSharding('cpu')", TypeError, "needs a device",
              "cj.devices()")
shardings.add("partial sums", "cj.P('x', unreduced={'y'})", NotImplementedError, "partial sums", "psum")

EIGHT_PARTS = """s = cj.NamedSharding(cj.make_mesh((2, 4), ('x', 'y')), cj.P('x'))
parts = [cj.device_put(np.ones(2), d) for d in cj.devices()]
"""
ONE = "s = cj.sharding.SingleDeviceSharding(cj.devices()[0])\n"

parts = Group("Arrays made of parts")
parts.add("a part of the wrong shape", ONE + "cj.make_array_from_callback((4,), s, lambda i: np.ones(3))", ValueError,
          "shape (3,)", "shape (4,), its part of (4,)")
parts.add("parts of different dtypes",
          EIGHT_PARTS + "cj.make_array_from_callback((4,), s, lambda i: np.ones(2, 'fi'[bool(i[0].start)]))", TypeError,
          "int32", "float32, as on the first device", jax=None, environment=EIGHT)
parts.add("another dtype than promised", ONE + "cj.make_array_from_callback((4,), s, lambda i: np.ones(4), np.int32)",
          TypeError, "float64", "int32")
parts.add("a spec for a sharding", "cj.make_array_from_callback((4,), cj.P('x'), lambda i: np.ones(4)[i])", TypeError,
          "a PartitionSpec", "NamedSharding(mesh, cj.P('x'))")
parts.add("an array for a function", ONE + "cj.make_array_from_callback((4,), s, np.ones(4))", TypeError,
          "expected a function", "an ndarray", "lambda index: x[index]")
parts.add("a function of no index", ONE + "cj.make_array_from_callback((4,), s, lambda: np.ones(4))", TypeError,
          "doesn't take these arguments")
parts.add("too few parts", EIGHT_PARTS + "cj.make_array_from_single_device_arrays((4,), s, parts[:3])", ValueError,
          "3 arrays", "8", "cpu:3, cpu:4", jax=None, environment=EIGHT)
parts.add("two parts on one device",
          EIGHT_PARTS + "cj.make_array_from_single_device_arrays((4,), s, parts[:7] + parts[:1])", ValueError,
          "two on cpu:0", jax=None, environment=EIGHT)
parts.add("parts that are divided",
          EIGHT_PARTS + "cj.make_array_from_single_device_arrays((4,), s, [cj.device_put(np.ones(4), s)] * 8)",
          ValueError, "arrays[0]", "one device", "addressable_shards", jax=None, environment=EIGHT)
parts.add("parts in NumPy's memory", ONE + "cj.make_array_from_single_device_arrays((2,), s, [np.ones(2)])", TypeError,
          "arrays[0]", "an ndarray", "device_put")
parts.add("a part that isn't there", "cj.device_put(np.ones(2)).addressable_data(1)", IndexError, "f64[2]",
          "from 0 to 0")
parts.add("the parts of a traced array", "cj.jit(lambda x: x.addressable_shards)(np.ones(2))", AttributeError,
          "addressable_shards", "outside")

drawings = Group("Drawing shardings")
drawings.add("three dimensions", MESH + "cj.debug.visualize_sharding((2, 4, 4), cj.NamedSharding(mesh, cj.P('x')))",
             ValueError, "(2, 4, 4)", "one or two dimensions", "x[0]")
drawings.add("a spec for a sharding", "cj.debug.visualize_sharding((2, 4), cj.P('x'))", TypeError, "a PartitionSpec",
             "NamedSharding")
drawings.add("a traced array", "cj.jit(cj.debug.visualize_array_sharding)(np.ones(2))", TypeError, "a traced",
             "outside", jax=None)

GROUPS = (meshes, shardings, parts, drawings)
