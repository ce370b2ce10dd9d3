"""delete_var: programs with it give what they gave in Paddle 1.8.5."""

import numpy as np

import fluidlite as fluid


def test_what_is_deleted_has_been_used_and_persistable_variables_stay(programs):
    main, startup = programs
    start = fluid.initializer.Constant(1.5)
    weight = fluid.layers.create_parameter([2], "float32", name="w", default_initializer=start)
    twice = fluid.layers.scale(weight, 2.0)
    four = fluid.layers.scale(twice, 2.0)
    main.global_block().append_op(type="delete_var", inputs={"X": [weight, twice]}, outputs={})
    exe, scope = fluid.Executor(fluid.CPUPlace()), fluid.Scope()
    exe.run(startup, scope=scope)
    for _ in range(2):
        (got,) = exe.run(main, fetch_list=[four], scope=scope)
        np.testing.assert_array_equal(got, [6, 6])
    assert scope.find_var("w") is not None
