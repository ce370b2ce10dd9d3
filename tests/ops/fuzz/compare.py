"""Whether two ways of running a case agree."""

from __future__ import annotations

from typing import Any

import numpy as np

RTOL = {"float16": 4e-3, "float32": 4e-5, "float64": 1e-7}
"""Attributes are kept in single precision, so that even doubles differ in the seventh digit."""


NOT_FINITE = "only where one is not finite"


def differences(
    want: dict[str, Any], got: dict[str, Any], classes: bool = True, rtol: float | None = None
) -> list[str]:
    """Describe the differences of two results.

    `classes`: errors must be of the same class. `rtol`: the tolerance of floats, by default that of their type.
    """
    if "crash" in want or "crash" in got:
        return [] if "crash" in want and "crash" in got else ["crash in one of the ways"]
    if ("error" in want) != ("error" in got):
        which, raised = ("first", want) if "error" in want else ("second", got)
        return [f"only the {which} raises: {raised['error']}: {raised.get('text', '')[:300]}"]
    if "error" in want:
        if not classes or want["error"] == got["error"]:
            return []
        return [f"raises {want['error']} and {got['error']}: {want['text'][:150]} / {got['text'][:150]}"]
    if "@GRAD" in want or "@GRAD" in got:
        nested = differences(want.get("@GRAD", {}), got.get("@GRAD", {}), classes, rtol)
        rest = [{k: v for k, v in way.items() if not k.endswith("@GRAD")} for way in (want, got)]
        return [f"gradient: {text}" for text in nested] + differences(*rest, classes, rtol)
    names = {name for name in (*want, *got) if not name.endswith("@GRAD@LOD")}
    found = []
    for name in sorted(names):
        if name in want and name in got:
            text = _array(want[name], got[name], rtol)
        else:
            text = "" if _unset(want, got, name) else "only in one"
        if text:
            found.append(f"{name}: {text}")
    return found


def _unset(want: dict[str, Any], got: dict[str, Any], name: str) -> bool:
    return want.get(name) is None and (name in want or got.get(name) is None)


def _array(want: Any, got: Any, rtol: float | None) -> str:
    if want is None or got is None:
        return "" if want is None else f"{_brief(want)} and nothing"
    if not isinstance(want, np.ndarray):
        return "" if want == got else f"{want} and {got}"
    if want.shape != got.shape:
        return f"shapes {want.shape} and {got.shape}"
    if want.dtype != got.dtype:
        return f"dtypes {want.dtype} and {got.dtype}"
    if want.dtype.kind != "f":
        wrong = want != got
    else:
        wide, other = want.astype("float64"), got.astype("float64")
        rtol = rtol or RTOL[want.dtype.name]
        finite = np.abs(wide[np.isfinite(wide)])
        largest = max(1.0, float(finite.max(initial=0)))
        with np.errstate(all="ignore"):
            near = np.abs(wide - other) <= rtol * np.abs(wide) + rtol / 4 * largest
        wrong = ~(near | (wide == other) | (np.isnan(wide) & np.isnan(other)))
    if not wrong.any():
        return ""
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    if want.dtype.kind == "f" and not (wrong & np.isfinite(wide) & np.isfinite(other)).any():
        return f"{NOT_FINITE} at {at}: {want[at]!r} and {got[at]!r}"
    return f"{int(wrong.sum())} of {want.size} elements, at {at}: {want[at]!r} and {got[at]!r}"


def _brief(value: Any) -> str:
    return "nothing" if value is None else f"{value.dtype}{list(value.shape)}"
