"""The native call of a matrix product, and what else it can do on its way: add a bias, apply an activation."""

from __future__ import annotations

from ..registry import Call


def gemm(
    name: str, a: str, b: str, c: str, sizes: tuple[int, int, int], trans: tuple[bool, bool], alpha: float
) -> Call:
    """C[m, n] = alpha op(A) op(B) for sizes (m, n, k)."""
    return Call(name, [a, b, c, None], [*sizes, int(trans[0]), int(trans[1]), 0], [alpha, 0.0])


def batched(
    name: str, a: str, b: str, c: str, sizes: tuple[int, int, int], trans: tuple[bool, bool], alpha: float,
    batch: int, strides: tuple[int, int, int],
) -> Call:  # fmt: skip
    """As `gemm`, for `batch` matrices; `strides`: the elements from one to the next, 0 where there is one for all."""
    if batch == 1:
        return gemm(name, a, b, c, sizes, trans, alpha)
    flags = [int(trans[0]), int(trans[1])]
    kernel = name.replace("gemm", "gemm_batched")
    return Call(kernel, [a, b, c], [*sizes, *flags, batch, *strides], [alpha, 0.0])


def is_product(call: Call) -> bool:
    """Whether a call is one that `gemm` makes."""
    return call.kernel.partition(".")[0] == "gemm"


def _plain(product: Call, suffix: str) -> bool:
    """Whether a product is of this element type, added to nothing and without an activation."""
    return product.kernel == f"gemm.{suffix}" and not any(product.ints[5:]) and product.floats[1] == 0


def with_bias(product: Call, add: Call) -> Call | None:
    """`product` that does what `add` does with its result as well: adds a row to each row; None if that is not so."""
    kind, _, suffix = add.kernel.partition(".")
    if kind != "elementwise_add_mid" or not _plain(product, suffix) or any(product.operands[3:]):
        return None
    if list(add.ints[:3]) != [product.ints[0], product.ints[1], 1]:
        return None
    _, bias, target = add.operands
    act = list(add.ints[3:]) or [0]
    return Call(
        product.kernel, [*product.operands[:2], target, bias], [*product.ints[:5], *act], product.floats
    )


def with_activation(product: Call, activation: Call, epilogue: int) -> Call | None:
    """`product` that ends with an activation, whose number is `epilogue`; None if it cannot."""
    _, _, suffix = activation.kernel.partition(".")
    if not epilogue or not _plain(product, suffix):
        return None
    operands = [*product.operands[:2], activation.operands[1], *product.operands[3:]]
    return Call(product.kernel, operands, [*product.ints[:5], epilogue], product.floats)
