"""`.mlir` models in upstream's dialects: their results, and refusals."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import byoc_mlir

X = np.linspace(-2, 2, 12, dtype=np.float32).reshape(3, 4)
T = "tensor<3x4xf32>"


def compute(tmp_path: Path, body: str, result: str, arguments: str = f"%x: {T}") -> np.ndarray:
    path = tmp_path / "model.mlir"
    path.write_text(
        f"func.func @main({arguments}) -> {result} {{\n{body}\n  func.return %r : {result}\n}}"
    )
    with byoc_mlir.compile(path, targets=(), threads=1) as executable:
        names = [info.name for info in executable.inputs]
        return executable.run(dict(zip(names, [X, X], strict=False)))["result0"]


def loop(count: int, body: str = "%t = relay.add %s, %x") -> str:
    return f"""
  %a = arith.constant 1 : index
  %b = arith.constant {2 * count + 1} : index
  %c = arith.constant 2 : index
  %r = scf.for %i = %a to %b step %c iter_args(%s = %x) -> ({T}) {{
    {body} : ({T}, {T}) -> {T}
    scf.yield %t : {T}
  }}"""


EMPTY = f"%e = tensor.empty() : {T}\n"
FORMS = {
    "constant": (f"%c = arith.constant dense<2.0> : {T}\n%r = arith.addf %x, %c : {T}", X + 2),
    "math": (f"%r = math.exp %x : {T}", np.exp(X)),
    "select": (
        f"%c = relay.less %x, %x : ({T}, {T}) -> tensor<3x4xi1>\n"
        f"%n = arith.negf %x : {T}\n%e = tensor.empty() : {T}\n"
        f"%r = linalg.select ins(%c, %x, %n : tensor<3x4xi1>, {T}, {T}) outs(%e : {T}) -> {T}",
        -X,
    ),
    "named": (EMPTY + f"%r = linalg.mul ins(%x, %x : {T}, {T}) outs(%e : {T}) -> {T}", X * X),
    "copy": (EMPTY + f"%r = linalg.copy ins(%x : {T}) outs(%e : {T}) -> {T}", X),
    "fill": (
        EMPTY + f"%v = arith.constant 3.0 : f32\n"
        f"%f = linalg.fill ins(%v : f32) outs(%e : {T}) -> {T}\n%r = arith.divf %x, %f : {T}",
        X / 3,
    ),
    "splat": (
        f"%v = arith.constant 3.0 : f32\n%f = tensor.splat %v : {T}\n%r = arith.subf %x, %f : {T}",
        X - 3,
    ),
    "transpose": (
        "%e = tensor.empty() : tensor<4x3xf32>\n"
        f"%r = linalg.transpose ins(%x:{T}) outs(%e:tensor<4x3xf32>) permutation = [1, 0]",
        X.T,
    ),
    "expand": (
        f"%r = tensor.expand_shape %x [[0], [1, 2]] output_shape [3, 2, 2] : {T} into"
        " tensor<3x2x2xf32>",
        X.reshape(3, 2, 2),
    ),
    "collapse": (f"%r = tensor.collapse_shape %x [[0, 1]] : {T} into tensor<12xf32>", X.ravel()),
    "reshape": (
        "%n = arith.constant dense<[2, 6]> : tensor<2xi64>\n"
        f"%r = tensor.reshape %x(%n) : ({T}, tensor<2xi64>) -> tensor<2x6xf32>",
        X.reshape(2, 6),
    ),
    "concat": (
        f"%r = tensor.concat dim(1) %x, %x : ({T}, {T}) -> tensor<3x8xf32>",
        np.hstack([X, X]),
    ),
    "slice": (
        f"%r = tensor.extract_slice %x[1, 0][1, 2][1, 3] : {T} to tensor<2xf32>",
        X[1, ::3],
    ),
    "pad": (
        "%v = arith.constant 7.0 : f32\n"
        f"%r = tensor.pad %x low[1, 0] high[0, 2] {{\n^bb0(%i: index, %j: index):\n"
        f"tensor.yield %v : f32\n}} : {T} to tensor<4x6xf32>",
        np.pad(X, ((1, 0), (0, 2)), constant_values=7),
    ),
    **{f"{n} iterations": (loop(n), (n + 1) * X) for n in (0, 1, 2, 5)},
}


@pytest.mark.parametrize("form", FORMS)
def test_ops_on_tensors_compute(form: str, tmp_path: Path) -> None:
    body, wanted = FORMS[form]
    shape = "x".join(map(str, wanted.shape))
    got = compute(tmp_path, body, f"tensor<{shape}xf32>")
    np.testing.assert_allclose(got, wanted, rtol=1e-6)


def test_a_product_is_added_to_its_output(tmp_path: Path) -> None:
    body = (
        "%r = linalg.matmul ins(%x, %t : tensor<3x4xf32>, tensor<4x3xf32>)"
        " outs(%c : tensor<3x3xf32>) -> tensor<3x3xf32>"
    )
    body = f"""%t = relay.transpose %x {{axes = [1, 0]}} : ({T}) -> tensor<4x3xf32>
      %c = arith.constant dense<1.0> : tensor<3x3xf32>\n{body}"""
    got = compute(tmp_path, body, "tensor<3x3xf32>")
    np.testing.assert_allclose(got, X @ X.T + 1, rtol=1e-6)


def test_a_nested_loop_reads_what_is_outside(tmp_path: Path) -> None:
    inner = loop(3, "%u = relay.add %s, %w").replace("%r =", "%t =").replace("%t : t", "%u : t")
    inner = inner.replace("iter_args(%s = %x)", "iter_args(%s = %q)")
    for name in ("%a", "%b", "%c", "%i"):
        inner = inner.replace(name, name + "2")
    body = f"%w = arith.mulf %x, %x : {T}" + loop(2, "BODY").replace(
        f"BODY : ({T}, {T}) -> {T}", inner
    ).replace("iter_args(%s = %x)", "iter_args(%q = %x)")
    np.testing.assert_allclose(compute(tmp_path, body, T), X + 6 * X * X, rtol=1e-6)
