"""Results of a compiled function equal eager PyTorch's: memory, strides, types and values."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional

import byoc_mlir
from byoc_mlir.errors import ByocError, ExecutionError, InvalidInputError


@pytest.fixture(autouse=True)
def _fresh() -> Iterator[None]:
    torch.compiler.reset()
    with warnings.catch_warnings(), torch.no_grad():
        warnings.filterwarnings("error", "a graph runs in PyTorch")
        yield


def _compiled(function: Callable[..., Any]) -> Callable[..., Any]:
    return torch.compile(function, backend="byoc_mlir", fullgraph=True)


def _check(function: Callable[..., Any], *arguments: Tensor, exact: bool = True) -> None:
    wanted, got = function(*arguments), _compiled(function)(*arguments)
    pairs = zip(*(one if isinstance(one, tuple) else (one,) for one in (wanted, got)), strict=True)
    for one, other in pairs:
        assert (one.dtype, one.shape, one.stride()) == (other.dtype, other.shape, other.stride())
        tolerance = {"rtol": 0, "atol": 0} if exact else {}
        torch.testing.assert_close(other, one, equal_nan=True, **tolerance)


def test_results_are_views_of_arguments_and_of_each_other() -> None:
    def views(x: Tensor) -> tuple[Tensor, ...]:
        y = x * 2
        return x[1], y, y.T, y.view(-1)[2:], *x.split(2, 1)

    x = torch.arange(12.0).reshape(3, 4)
    _check(views, x)
    whole = torch.zeros(5, 4)
    row, y, turned, flat, _, right = _compiled(views)(whole[2:])  # the offset is the argument's own
    row.fill_(1)
    right.fill_(2)
    y.fill_(3)
    assert whole[2:].tolist() == [[0, 0, 2, 2], [1, 1, 2, 2], [0, 0, 2, 2]]
    assert turned.eq(3).all()
    assert flat.eq(3).all()


def test_views_follow_sizes_that_change() -> None:
    compiled = torch.compile(lambda x: (x * 2).T[1:], backend="byoc_mlir", dynamic=True)
    for rows in (2, 5, 3):
        x = torch.randn(rows, 4)
        got, wanted = compiled(x), (x * 2).T[1:]
        assert torch.equal(got, wanted)
        assert got.stride() == wanted.stride()


def test_changes_of_intermediate_tensors_are_in_the_views() -> None:
    def changes(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        y[0].add_(1)
        return y, y[0].relu_()

    _check(changes, torch.randn(3, 4))


def test_a_module_compiled_whole_gives_views_and_numbers() -> None:
    class Parts(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.ones(3))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor, int, None]:
            return x[0], (x * 2).T, self.weight[1:], 3, None

    module, x = Parts(), torch.arange(6.0).reshape(2, 3)
    row, turned, weight, number, nothing = byoc_mlir.from_torch(module, (x,))(x)
    assert row.data_ptr() == x.data_ptr()
    assert turned.stride() == (1, 3)
    assert weight.data_ptr() == module.weight[1:].data_ptr()
    assert (number, nothing) == (3, None)


@pytest.mark.parametrize(
    "function",
    [
        lambda x: functional.max_pool2d(x * 2, 2),
        lambda x: x.permute(2, 0, 1, 3) + 1,
        lambda x: (x + 1).sum(1, keepdim=True).expand(-1, 4, -1, -1),
    ],
    ids=["pool", "permuted", "expanded"],
)
def test_strides(function: Callable[[Tensor], Tensor]) -> None:
    x = torch.randn(2, 3, 8, 8)
    _check(function, x, exact=False)
    _check(function, x.to(memory_format=torch.channels_last), exact=False)


@pytest.mark.parametrize(
    "function",
    [
        torch.fft.fft,
        torch.real,
        torch.conj,
        lambda z: torch.fft.ihfft(z.real * 2),
        lambda z: z * z,
        lambda z: torch.view_as_real(z * 2) + 1,
    ],
    ids=["fft", "real", "conj", "ihfft", "product", "pairs"],
)
def test_complex_numbers(function: Callable[[Tensor], Tensor]) -> None:
    z = torch.randn(3, 4, dtype=torch.complex64)
    _check(function, z, exact=False)
    _check(function, z.T.conj(), exact=False)


@pytest.mark.parametrize("name", ["float8_e4m3fn", "float8_e5m2", "bfloat16"])
def test_small_types(name: str) -> None:
    kind = getattr(torch, name)
    _check(lambda x: x.to(torch.float32) + 1, torch.arange(4.0).to(kind))
    _check(lambda x: (x * 2).to(kind), torch.arange(4.0))


A = torch.tensor([1, 0.3, 6, -7.5, 1e8, 5, -0.0, 0.9, float("nan"), float("inf"), -float("inf"), 3])
B = torch.tensor([0.1, 0.1, 0.2, 2.5, 0.3, -0.3, 3, 0.3, 1, 2, 2, 0])
INTEGERS = torch.tensor([7, -7, 7, -7, 2**62 + 1, 0]), torch.tensor([2, 2, -2, -2, 3, 5])
DIVISIONS: dict[str, Callable[[Any, Any], Tensor]] = {
    "floor_divide": lambda a, b: a // b,
    "remainder": lambda a, b: a % b,
    "floor": lambda a, b: torch.div(a, b, rounding_mode="floor"),
    "trunc": lambda a, b: torch.div(a, b, rounding_mode="trunc"),
    "numbers": lambda a, b: (a // 3 + a % 3) + (5 // b.abs().clamp(1) + torch.fmod(a, 3)),
}


@pytest.mark.parametrize("name", DIVISIONS)
@pytest.mark.parametrize("kind", ["float", "half", "int"])
def test_divisions_round_as_pytorch_s(name: str, kind: str) -> None:
    arguments = (
        INTEGERS if kind == "int" else (A.to(getattr(torch, kind)), B.to(getattr(torch, kind)))
    )
    # a chain of operations in half precision is rounded once, at its end
    _check(DIVISIONS[name], *arguments, exact=(name, kind) != ("numbers", "half"))


SIGNED = torch.tensor([0.0, -0.0, 1.5, -2.5, float("inf"), -float("inf"), float("nan")])


@pytest.mark.parametrize("kind", [torch.float32, torch.float16, torch.int64])
def test_angles_are_in_all_quadrants(kind: torch.dtype) -> None:
    y, x = torch.cartesian_prod(SIGNED, SIGNED).T
    if kind == torch.int64:
        y, x = torch.cartesian_prod(torch.arange(-2, 3), torch.arange(-2, 3)).T
        _check(torch.atan2, y, x, exact=False)
        return
    _check(torch.atan2, y.to(kind), x.to(kind), exact=False)


@pytest.mark.parametrize("form", [torch.linspace, torch.logspace])
@pytest.mark.parametrize("steps", [1, 4])
def test_rows_of_numbers_have_an_axis(form: Callable[..., Tensor], steps: int) -> None:
    _check(lambda start: form(start, 3.0, steps), torch.tensor(2.0))
    _check(lambda start: form(1.0, start, steps, dtype=torch.int64), torch.tensor(2.0))


def test_a_row_of_one_number_has_memory_of_its_own() -> None:
    start = torch.tensor(2.0)
    _compiled(lambda start: torch.linspace(start, 3.0, 1))(start).fill_(7)
    assert start == 2


@pytest.mark.parametrize("limits", [(0.1, -7.9, -4.0), (0.5, 3), (2.5,), (1, 4)])
def test_rows_of_floats_are_counted_in_double_precision(limits: tuple[float, ...]) -> None:
    _check(lambda x: x + torch.arange(*limits, dtype=x.dtype), torch.zeros(()))
    _check(lambda x: x + torch.arange(*limits), torch.zeros(()))


def test_logarithms_of_sums_do_not_overflow() -> None:
    a, b = torch.cartesian_prod(*2 * [torch.tensor([0.5, -2000, 1000, torch.inf, -torch.inf])]).T
    nan = torch.tensor([torch.nan])
    _check(torch.logaddexp, torch.cat((a, nan)), torch.cat((b, nan)), exact=False)
    _check(torch.logaddexp2, a, b.half(), exact=False)
    _check(lambda x: torch.logcumsumexp(x, 1), a.reshape(5, 5), exact=False)
    _check(lambda x: torch.logcumsumexp(x, 0), torch.tensor([-300.0, -299, 300]), exact=False)


@pytest.mark.parametrize("kind", [torch.float32, torch.int64])
@pytest.mark.parametrize("include_self", [True, False])
def test_means_are_scattered(kind: torch.dtype, include_self: bool) -> None:
    x, index = (
        torch.arange(-8, 4).reshape(3, 4).to(kind),
        torch.tensor([[0, 0, 2, 0], [2, 1, 1, 1]]),
    )
    _check(
        lambda x: x.scatter_reduce(1, index, x[:2] * 5, "mean", include_self=include_self),
        x,
        exact=False,
    )


SPECIAL = torch.tensor([0.0, -0.0, 1.5, -2.0, torch.inf, -torch.inf, torch.nan, 3e38])


@pytest.mark.parametrize(
    "function", [torch.fmax, torch.fmin, torch.copysign, torch.hypot, torch.atan2]
)
def test_pairs_of_special_values(function: Callable[..., Tensor]) -> None:
    a, b = torch.meshgrid(SPECIAL, SPECIAL[:6], indexing="ij")
    with warnings.catch_warnings():
        warnings.simplefilter("error", UserWarning)
        found = _compiled(function)(a, b)
    torch.testing.assert_close(found, function(a, b), equal_nan=True)


def test_small_numbers_are_added() -> None:
    def normalized(x: Tensor) -> tuple[Tensor, Tensor]:
        return x / (x.abs().sum(1, keepdim=True) + 1e-12), (x > 9).sum(1) + 1e-9

    _check(normalized, torch.tensor([[0.0, 0.0], [1.0, -3.0]]))


def test_angles_of_integers() -> None:
    _check(torch.angle, torch.tensor([-2, 0, 3]))


@pytest.mark.parametrize("shape", [(3, 4), (5,)])
def test_extremes_over_all_axes(shape: tuple[int, ...]) -> None:
    _check(lambda x: (torch.amax(x), torch.amin(x), *torch.aminmax(x)), torch.randn(shape))


@pytest.mark.parametrize(
    "function",
    [
        torch.abs,
        lambda x: x.cumsum(0),
        lambda x: torch.aminmax(x, dim=0),
        lambda x: torch.native_layer_norm(x, (4,), None, None, 1e-5),
        lambda x: functional.margin_ranking_loss(x[0, 0], x[0, 1], x[0, 2], reduction="sum"),
    ],
    ids=["abs", "cumsum", "aminmax", "native_layer_norm", "margin_ranking_loss"],
)
def test_results_in_half_precision(function: Callable[[Tensor], Tensor]) -> None:
    _check(function, torch.randn(3, 4).half(), exact=False)


@pytest.mark.parametrize(
    ("function", "shape"),
    [
        (torch.sign, (3, 4)),
        (lambda x: torch.linalg.matrix_power(x, 0), (2, 3, 3)),
        (lambda x: torch.linalg.vector_norm(x, keepdim=True), (3, 4)),
        (lambda x: torch.linalg.norm(x[0], 2, keepdim=True), (3, 4)),
        (torch.linalg.vector_norm, ()),
        (lambda x: torch.sort((x > 0).int(), dim=1, stable=True), (3, 40)),
        (lambda x: torch.sort((x > 0).int(), dim=0, descending=True, stable=True), (40, 3)),
        (lambda x: torch.hstack((x[0], x[1])), (2, 4)),
        (
            lambda x: functional.cross_entropy(x, torch.tensor([0, 2, 1]), label_smoothing=0.2),
            (3, 4),
        ),
        (lambda x: torch.log_softmax(x, 0, dtype=torch.float64), (3, 4)),
        (lambda x: functional.avg_pool2d(x, 3, 2, 1, True, divisor_override=2), (1, 3, 8, 10)),
        (lambda x: functional.avg_pool3d(x, (4, 3, 2), 2, divisor_override=5), (1, 5, 6, 7)),
        (lambda x: functional.interpolate(x, scale_factor=1.7, mode="linear"), (2, 3, 7)),
        (
            lambda x: functional.interpolate(
                x, scale_factor=1.7, mode="bilinear", align_corners=True
            ),
            (2, 3, 4, 5),
        ),
    ],
    ids=[
        "sign",
        "copy",
        "norm",
        "norm_2",
        "norm_0d",
        "sort",
        "descending",
        "hstack",
        "smoothed",
        "log_softmax",
        "avg_pool2d",
        "avg_pool3d",
        "linear",
        "bilinear",
    ],
)
def test_operations_that_the_exporter_changes(
    function: Callable[[Tensor], Tensor], shape: tuple[int, ...]
) -> None:
    _check(function, torch.randn(shape), exact=False)


def test_an_encoder_layer_in_one_operation() -> None:
    layer = nn.TransformerEncoderLayer(16, 4, 32, batch_first=True).eval()
    _check(
        nn.TransformerEncoder(layer, 2, enable_nested_tensor=False).eval(),
        torch.randn(2, 5, 16),
        exact=False,
    )


INDICES = torch.tensor([0, 2, 8, 10]).expand(1, 2, 4).reshape(1, 2, 2, 2)


@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        (
            lambda q: torch.ops.aten._scaled_dot_product_flash_attention_for_cpu(q, q, q)[1],
            (torch.randn(2, 4, 3, 8),),
            "no values for its other results",
        ),
        (
            lambda x: torch.ops.aten._upsample_bilinear2d_aa(x, [8, 20], True),
            (torch.randn(2, 3, 10, 20),),
            "does not align corners",
        ),
        (
            lambda x, at: functional.max_unpool2d(x, at, 2),
            (torch.ones(1, 2, 2, 2).to(memory_format=torch.channels_last), INDICES),
            "does not know the strides",
        ),
        (torch.special.log_ndtr, (torch.tensor([-8.0]),), "not exact"),
        (torch.special.erfcx, (torch.tensor([8.0]),), "not exact"),
        (lambda a, b: a.add_(1) * b, (torch.ones(4), torch.ones(4)), "changes it in place"),
    ],
    ids=["logsumexp", "antialias", "unpooled", "log_ndtr", "erfcx", "changed"],
)
def test_other_graphs_run_in_pytorch(
    function: Callable[..., Tensor], arguments: tuple[Tensor, ...], reason: str
) -> None:
    wanted = function(*(one.clone() for one in arguments))
    with pytest.warns(UserWarning, match=f"a graph runs in PyTorch: (.|\n)*{reason}"):
        torch.testing.assert_close(_compiled(function)(*arguments), wanted)


def test_arguments_that_share_memory() -> None:
    def changes(a: Tensor, b: Tensor) -> Tensor:
        a.add_(1)
        return (a * b).sum()

    whole = torch.arange(6.0)
    with pytest.warns(UserWarning, match="changes it in place"):
        assert _compiled(changes)(whole[:4], whole[2:]) == 43
    torch.compiler.reset()
    _check(lambda a, b: (a * b, a[1:]), whole[:4], whole[2:])


@pytest.mark.parametrize("change", ["mul_", "fill_", "set"])
def test_changes_that_pytorch_does_not_count(change: str) -> None:
    module, x = (
        nn.Sequential(nn.Conv2d(3, 8, 3), nn.Flatten(), nn.Linear(32, 64)),
        torch.randn(2, 3, 4, 4),
    )
    compiled = _compiled(module.eval())
    whole = byoc_mlir.from_torch(module, (x,))
    for layer in (module[0], module[2]):
        torch.testing.assert_close(compiled(x), module(x), rtol=1e-5, atol=1e-5)
        if change == "set":
            layer.weight.data = layer.weight.data * 2
        else:
            getattr(layer.weight.data, change)(2)
        torch.testing.assert_close(compiled(x), module(x), rtol=1e-5, atol=1e-5)
    with pytest.raises(ExecutionError, match=r"parameter '0\.weight' was changed"):
        whole(x)


def test_options_are_checked() -> None:
    with pytest.raises(ByocError, match=r"no option 'thread'; accepted are .* threads"):
        byoc_mlir.from_torch(nn.ReLU(), (torch.ones(3),), thread=1)
    with pytest.warns(UserWarning, match="no option 'thread'"):
        torch.compile(nn.ReLU(), backend="byoc_mlir", options={"thread": 1})(torch.ones(3))


def test_types_without_arrays_are_refused() -> None:
    compiled = byoc_mlir.from_torch(nn.ReLU(), (torch.ones(3),))
    with pytest.raises(InvalidInputError, match=r"argument 'input' is of torch\.\w+: "):
        compiled(torch.ones(3).to(torch.float8_e8m0fnu))
