"""Cases of operators that work element by element."""

from __future__ import annotations

import numpy as np

from .cases import Case, Chooser, case, recipe

INTEGERS = ["int32", "int64"]
ALL = ["float32", "float64", "int32", "int64", "bool", "uint8", "int8", "int16", "float16"]


@recipe(
    "abs",
    "acos",
    "asin",
    "atan",
    "ceil",
    "cos",
    "cosh",
    "erf",
    "exp",
    "expm1",
    "floor",
    "log",
    "log10",
    "log1p",
    "log2",
    "logsigmoid",
    "reciprocal",
    "relu",
    "round",
    "rsqrt",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinh",
    "softplus",
    "softsign",
    "sqrt",
    "square",
    "tan",
    "tanh",
    "tanh_shrink",
)
def unary(c: Chooser, op: str) -> Case:
    dtype = c.pick(ALL) if c.one_in(8) else c.real()
    return case(op, {"X": c.values(c.shape(), dtype)})


PARAMETERS = {
    "brelu": {"t_min": (-1.0, 0.5), "t_max": (1.0, 24.0)},
    "elu": {"alpha": (1.0, 0.3)},
    "gelu": {"approximate": (False, True)},
    "hard_shrink": {"threshold": (0.5, 0.0, 1.5)},
    "hard_sigmoid": {"slope": (0.2, 1.0), "offset": (0.5, 0.0)},
    "hard_swish": {"threshold": (6.0, 2.0), "scale": (6.0, 3.0), "offset": (3.0, 0.0)},
    "leaky_relu": {"alpha": (0.02, 0.0, -0.5, 2.0)},
    "mish": {"threshold": (20.0, 0.5)},
    "pow": {"factor": (1.0, 2.0, 3.0, 0.5, -1.0, 0.0, -2.5)},
    "relu6": {"threshold": (6.0, 1.0)},
    "selu": {"scale": (1.0507009873554805, 1.2), "alpha": (1.6732632423543772, 2.0)},
    "soft_relu": {"threshold": (40.0, 1.0)},
    "softshrink": {"lambda": (0.5, 0.0, 1.5)},
    "stanh": {"scale_a": (0.67, 2.0), "scale_b": (1.7159, 1.0)},
    "swish": {"beta": (1.0, 2.0)},
    "thresholded_relu": {"threshold": (1.0, 0.0)},
}


@recipe(*PARAMETERS)
def unary_with_numbers(c: Chooser, op: str) -> Case:
    attrs = {name: c.pick(values) for name, values in PARAMETERS[op].items() if not c.one_in(3)}
    dtype = c.pick(INTEGERS) if c.one_in(10) else c.real()
    return case(op, {"X": c.values(c.shape(), dtype)}, attrs)


@recipe("clip")
def clip(c: Chooser, op: str) -> Case:
    x = c.values(c.shape(), c.pick(INTEGERS) if c.one_in(6) else c.real())
    return case(op, {"X": x}, {"min": c.pick([-1.0, 0.0, 1.0]), "max": c.pick([0.5, 1.0, 0.0, -1.0])})


@recipe("clip_by_norm")
def clip_by_norm(c: Chooser, op: str) -> Case:
    return case(op, {"X": c.floats(c.shape())}, {"max_norm": c.pick([1.0, 0.1, 100.0])})


@recipe("scale")
def scale(c: Chooser, op: str) -> Case:
    x = c.values(c.shape(), c.pick([*ALL, "float32", "float32"]))
    tensor = c.values((1,), str(x.dtype), "plain") if c.one_in(4) else None
    attrs = {
        "scale": c.pick([1.0, 2.0, -0.5, 0.0]),
        "bias": c.pick([0.0, 1.0, 0.7]),
        "bias_after_scale": c.bool(),
    }
    return case(op, {"X": x, "ScaleTensor": tensor}, attrs)


@recipe("increment")
def increment(c: Chooser, op: str) -> Case:
    return case(op, {"X": c.values((1,), c.pick(ALL[:4]))}, {"step": c.pick([1.0, -2.0, 0.5])})


@recipe("cast")
def cast(c: Chooser, op: str) -> Case:
    numbers = {
        "bool": 0, "int16": 1, "int32": 2, "int64": 3, "float16": 4, "float32": 5, "float64": 6,
        "uint8": 20, "int8": 21,
    }  # fmt: skip
    source, target = c.pick(ALL), c.pick(ALL)
    x = c.values(c.shape(), source)
    if source.startswith("float") and c.one_in(3):
        x = (x.astype("float64") * c.pick([100.0, 1e5, 1e12, 1e25])).astype(source)
    return case(op, {"X": x}, {"in_dtype": numbers[source], "out_dtype": numbers[target]})


@recipe("sum")
def add_up(c: Chooser, op: str) -> Case:
    shape, dtype = c.shape(), c.pick(ALL[:4])
    count = c.int(1, 4)
    items = [c.values(shape, dtype) for _ in range(count)]
    if count > 1 and c.one_in(12):
        items[-1] = c.values(c.shape(), dtype)
    return case(op, {"X": items})


def broadcast(c: Chooser, dtype: str, other: str | None = None) -> tuple[np.ndarray, np.ndarray, int]:
    """X, Y and the axis: Y's shape a part of X's, with ones here and there, now and then something else."""
    shape = c.shape(1, 4)
    start = c.int(0, len(shape) - 1) if c.bool() else 0
    end = c.int(start + 1, len(shape)) if c.bool() else len(shape)
    part = list(shape[start:end])
    axis = start
    if end == len(shape) and c.bool():
        axis = -1
    if c.one_in(3):
        part = [1 if c.one_in(3) else n for n in part]
    if end < len(shape) and c.one_in(4):
        part += [1] * (len(shape) - end)
    xs, ys = list(shape), part
    if c.one_in(6):
        xs = [1 if c.one_in(3) else n for n in xs]
    if c.one_in(12):
        xs, ys = ys, xs
    if c.one_in(20):
        axis = c.int(-2, 3)
    return c.values(xs, dtype), c.values(ys, other or dtype), axis


ARITHMETIC = [
    f"elementwise_{name}" for name in ("add", "sub", "mul", "div", "max", "min", "pow", "mod", "floordiv")
]


@recipe(*ARITHMETIC)
def arithmetic(c: Chooser, op: str) -> Case:
    whole = op.endswith(("mod", "floordiv"))
    dtype = c.pick(INTEGERS) if c.one_in(3) or whole and not c.one_in(4) else c.real()
    if c.one_in(25):
        dtype = c.pick(ALL)
    x, y, axis = broadcast(c, dtype, c.pick(ALL) if c.one_in(25) else None)
    if dtype in INTEGERS and op.endswith(("mod", "floordiv", "div")) and not c.one_in(6):
        y = np.where(y == 0, 3, y).astype(y.dtype)
    return case(op, {"X": x, "Y": y}, {"axis": axis})


@recipe("minus")
def minus(c: Chooser, op: str) -> Case:
    shape, dtype = c.shape(), c.real()
    return case(op, {"X": c.floats(shape, dtype), "Y": c.floats(shape, dtype)})


@recipe("equal", "not_equal", "less_than", "less_equal", "greater_than", "greater_equal")
def comparison(c: Chooser, op: str) -> Case:
    dtype = c.pick(ALL[:5] if c.one_in(5) else ALL[:4])
    x, y, axis = broadcast(c, dtype)
    if x.shape == y.shape and c.bool():
        y = np.where(c.ints(x.shape, 0, 1) == 0, x, y).astype(dtype)
    return case(op, {"X": x, "Y": y}, {"axis": axis})


@recipe("logical_and", "logical_or", "logical_xor")
def logic(c: Chooser, op: str) -> Case:
    shape = c.shape()
    other = c.shape() if c.one_in(15) else shape
    return case(op, {"X": c.values(shape, "bool"), "Y": c.values(other, "bool")})


@recipe("logical_not")
def negation(c: Chooser, op: str) -> Case:
    return case(op, {"X": c.values(c.shape(), "bool")})


@recipe("isfinite", "isinf", "isnan", "is_empty")
def question(c: Chooser, op: str) -> Case:
    return case(op, {"X": c.values(c.shape(), c.pick(ALL[:4]))})


@recipe("allclose")
def allclose(c: Chooser, op: str) -> Case:
    x = c.floats(c.shape())
    y = x + c.pick([0, 1e-9, 1e-6, 1e-3]) * c.pick([1, -1])
    return case(
        op, {"Input": x, "Other": y.astype(x.dtype)}, {"equal_nan": c.bool(), "rtol": 1e-5, "atol": 1e-8}
    )


@recipe("where")
def where(c: Chooser, op: str) -> Case:
    shape, dtype = c.shape(), c.pick(ALL[:4])
    xs = c.shape() if c.one_in(15) else shape
    return case(
        op, {"Condition": c.values(shape, "bool"), "X": c.values(xs, dtype), "Y": c.values(shape, dtype)}
    )


@recipe("where_index")
def where_index(c: Chooser, op: str) -> Case:
    return case(op, {"Condition": c.values(c.shape(), "bool")})


@recipe("prelu")
def prelu(c: Chooser, op: str) -> Case:
    dtype = c.real()
    x = c.floats(c.shape(2, 4, 1), dtype)
    mode = c.pick(["all", "channel", "element"])
    size = {"all": (1,), "channel": (1, x.shape[1], 1, 1), "element": (1, *x.shape[1:])}[mode]
    return case(op, {"X": x, "Alpha": c.floats(size, dtype)}, {"mode": mode})


@recipe("maxout")
def maxout(c: Chooser, op: str) -> Case:
    groups = c.int(1, 3)
    axis = c.pick([1, 1, -1, 3])
    n, h, w, k = c.dim(), c.dim(1), c.dim(1), c.int(1, 3) * groups
    shape = (n, k, h, w) if axis == 1 else (n, h, w, k)
    return case(op, {"X": c.floats(shape)}, {"groups": groups, "axis": axis})


@recipe("affine_channel")
def affine_channel(c: Chooser, op: str) -> Case:
    dtype, layout = c.real(), c.pick(["NCHW", "NHWC", "AnyLayout"])
    x = c.floats(c.shape(2, 4, 1), dtype)
    n = x.shape[-1] if layout == "NHWC" else x.shape[1]
    inputs = {"X": x, "Scale": c.floats((n,), dtype), "Bias": c.floats((n,), dtype)}
    return case(op, inputs, {"data_layout": layout})


@recipe("addmm")
def addmm(c: Chooser, op: str) -> Case:
    m, k, n = c.dim(1), c.dim(1), c.dim(1)
    dtype = c.real()
    shape = c.pick([(m, n), (m, n), (1, n), (m, 1), (1, 1), (n,), (1,)])
    inputs = {"Input": c.floats(shape, dtype), "X": c.floats((m, k), dtype), "Y": c.floats((k, n), dtype)}
    return case(op, inputs, {"Alpha": c.pick([1.0, 0.5, 0.0]), "Beta": c.pick([1.0, -2.0, 0.0])})


@recipe("softmax")
def softmax(c: Chooser, op: str) -> Case:
    x = c.floats(c.shape(1, 4))
    return case(op, {"X": x}, {"axis": c.int(-x.ndim, x.ndim - 1) if c.bool() else -1})


@recipe("cumsum")
def cumsum(c: Chooser, op: str) -> Case:
    x = c.values(c.shape(), c.pick(ALL[:4]))
    attrs = {"axis": c.int(-x.ndim - 1 * c.one_in(9), x.ndim - 1), "exclusive": c.bool(), "reverse": c.bool()}
    return case(op, {"X": x}, attrs)


@recipe("fill_zeros_like")
def zeros_like(c: Chooser, op: str) -> Case:
    return case(op, {"X": c.values(c.shape(), c.pick(ALL[:5]))})


@recipe("fill_any_like")
def any_like(c: Chooser, op: str) -> Case:
    attrs = {"value": c.pick([0.0, 1.0, -2.5, 3.0]), "dtype": c.pick([-1, -1, 5, 6, 2, 3])}
    return case(op, {"X": c.values(c.shape(), c.pick(ALL[:5]))}, attrs)


@recipe("assign")
def assign(c: Chooser, op: str) -> Case:
    return case(op, {"X": c.values(c.shape(), c.pick(ALL))})


@recipe("shape", "size")
def sizes(c: Chooser, op: str) -> Case:
    return case(op, {"Input": c.values(c.shape(), c.pick(ALL[:5]))})
