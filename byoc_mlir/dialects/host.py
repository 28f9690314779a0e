"""The `host` dialect: kernels written as loops, and the features that they need and `memref`
lacks.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from xdsl.dialects.builtin import (
    IndexType,
    IntegerAttr,
    MemRefType,
    StringAttr,
    TensorType,
    UnitAttr,
    VectorType,
    i8,
    i16,
    i32,
    i64,
)
from xdsl.ir import Attribute, Dialect, Region, SSAValue
from xdsl.irdl import (
    IRDLOperation,
    ParsePropInAttrDict,
    irdl_op_definition,
    operand_def,
    opt_operand_def,
    opt_prop_def,
    prop_def,
    region_def,
    result_def,
    traits_def,
    var_operand_def,
    var_result_def,
)
from xdsl.traits import IsolatedFromAbove, IsTerminator, Pure
from xdsl.utils.exceptions import VerifyException

from byoc_mlir.dialects import dynamic_buffers
from byoc_mlir.dialects.dynamic_buffers import (
    LayoutAttr,
    dense_buffer,
)
from byoc_mlir.dialects.operations import operations_in
from byoc_mlir.dialects.relay.shape import Tensor, type_sizes


@irdl_op_definition
class YieldOp(IRDLOperation):
    """End of a kernel's body."""

    name = "host.yield"
    traits = traits_def(IsTerminator())
    assembly_format = "attr-dict"


@irdl_op_definition
class KernelOp(IRDLOperation):
    """Code on whole, dense buffers that computes tensors from tensors.

    The body uses only its arguments: one memref for each input, then one for each output, in
    row-major order. It must write every element of the outputs, whose memory is undefined at first,
    and must not write to the inputs. After `bufferize` there are no results: the memrefs of the
    outputs follow the memrefs of the inputs as operands.

    With `in_place`, the first output initially holds the content of the first input, which has no
    argument in the body. With `prefer_no_gather`, LLVM does not generate gathers for the loads: the
    latency of a gather is five times the latency of a load.

    ```mlir
    %r = host.kernel "take" %x, %i : (tensor<8xf32>, tensor<2xi64>) -> tensor<2xf32> {
    ^bb0(%a : memref<8xf32>, %b : memref<2xi64>, %c : memref<2xf32>):
      …
      host.yield
    }
    ```
    """

    name = "host.kernel"
    kernel_name = prop_def(StringAttr)
    in_place = opt_prop_def(UnitAttr)
    prefer_no_gather = opt_prop_def(UnitAttr)
    arguments = var_operand_def(TensorType | MemRefType)
    outputs = var_result_def(TensorType)
    body = region_def("single_block")
    traits = traits_def(IsolatedFromAbove())
    assembly_format = (
        "$kernel_name (`in_place` $in_place^)?"
        " (`prefer_no_gather` $prefer_no_gather^)? $arguments attr-dict"
        " `:` functional-type($arguments, $outputs) $body"
    )

    def __init__(
        self,
        kernel_name: str,
        arguments: Sequence[SSAValue],
        result_types: Sequence[Attribute],
        body: Region,
        *,
        in_place: bool = False,
        prefer_no_gather: bool = False,
    ):
        super().__init__(
            operands=[arguments],
            result_types=[result_types],
            properties={
                "kernel_name": StringAttr(kernel_name),
                "in_place": UnitAttr() if in_place else None,
                "prefer_no_gather": UnitAttr() if prefer_no_gather else None,
            },
            regions=[body],
        )

    @property
    def initial(self) -> SSAValue | None:
        """Returns the value that the first output initially holds, or `None`."""
        return self.arguments[0] if self.in_place is not None else None

    @property
    def inputs(self) -> Sequence[SSAValue]:
        """Returns the operands that have an argument in the body."""
        return self.arguments[1:] if self.in_place is not None else self.arguments

    def verify_(self) -> None:
        if not isinstance(self.body.block.last_op, YieldOp):
            raise VerifyException("the body of a host.kernel ends in host.yield")
        types = [*(value.type for value in self.inputs), *self.outputs.types]
        expected = [buffer_type(type_) for type_ in types]
        found = list(self.body.block.arg_types)
        if found != expected:
            raise VerifyException(
                f"host.kernel '{self.kernel_name.data}': the body's arguments are"
                f" ({', '.join(map(str, found))}), but the inputs and outputs are"
                f" ({', '.join(map(str, expected))})"
            )


@irdl_op_definition
class CheckOp(IRDLOperation):
    """Check that ends the run with an error unless `least <= found <= most`; see `relay.checked`.

    Not allowed in kernels.

    ```mlir
    host.check %n {what = "total_sequence_length", least = 1, most = 80} : tensor<i64>
    ```
    """

    name = "host.check"
    found = operand_def(TensorType.constr(i64) | MemRefType.constr(i64))
    what = prop_def(StringAttr)
    least = prop_def(IntegerAttr.constr(i64))
    most = prop_def(IntegerAttr.constr(i64))
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = "$found attr-dict `:` type($found)"

    def __init__(self, found: SSAValue, what: StringAttr, least: IntegerAttr, most: IntegerAttr):
        super().__init__(operands=[found], properties={"what": what, "least": least, "most": most})


@irdl_op_definition
class CopyApartOp(IRDLOperation):
    """Copy of a dense buffer to another one; a no-op if both are the same memory.

    Not allowed in kernels.

    ```mlir
    host.copy_apart %x, %out : memref<4xf32>, memref<4xf32>
    host.copy_apart %y, %out of %elements : memref<?xf32>, memref<?xf32>
    ```

    `elements` is the number of elements, for shapes that are not static.
    """

    name = "host.copy_apart"
    source = operand_def(MemRefType)
    destination = operand_def(MemRefType)
    elements = opt_operand_def(IndexType)
    assembly_format = (
        "$source `,` $destination (`of` $elements^)? attr-dict `:` type($source) `,`"
        " type($destination)"
    )

    def __init__(self, source: SSAValue, destination: SSAValue, elements: SSAValue | None = None):
        super().__init__(operands=[source, destination, elements])

    def verify_(self) -> None:
        type_ = cast(MemRefType[Attribute], self.source.type)
        if type_.has_static_shape() == (self.elements is not None):
            raise VerifyException(
                f"{self.name}: the number of elements is given if the type is dynamic, and only"
                f" then; found {type_}"
            )


@irdl_op_definition
class PrefetchOp(IRDLOperation):
    """Prefetch of the cache line of an element, which may be after the buffer's end.

    ```mlir
    host.prefetch %b[%i] : memref<?xf32>
    ```
    """

    name = "host.prefetch"
    buffer = operand_def(MemRefType)
    index = operand_def(IndexType)
    assembly_format = "$buffer `[` $index `]` attr-dict `:` type($buffer)"

    def __init__(self, buffer: SSAValue, index: SSAValue):
        super().__init__(operands=[buffer, index])


@irdl_op_definition
class DotIntegersOp(IRDLOperation):
    """Sums of two or four products of neighbouring lanes, added to `total`.

    If the factors are `i8`, `codes` are unsigned and `numbers` signed, and the sum of two products
    must fit 16 bits; `i16` are signed.

    ```mlir
    %s = host.dot_integers %c, %n, %t : vector<32xi8>, vector<16xi16>
    ```
    """

    name = "host.dot_integers"
    codes = operand_def(VectorType)
    numbers = operand_def(VectorType)
    total = operand_def(VectorType)
    sum_ = result_def(VectorType)
    traits = traits_def(Pure())

    def __init__(self, codes: SSAValue, numbers: SSAValue, total: SSAValue):
        super().__init__(operands=[codes, numbers, total], result_types=[total.type])

    def verify_(self) -> None:
        codes, total = self.codes.type, self.total.type
        assert isinstance(codes, VectorType)
        assert isinstance(total, VectorType)
        lanes = total.element_count()
        accepted = ((4, i8, i32), (2, i8, i16), (2, i16, i32))
        expected = [
            (VectorType(factor, [group * lanes]), VectorType(sum_, [lanes]))
            for group, factor, sum_ in accepted
        ]
        if (codes, total) not in expected or self.numbers.type != codes:
            raise VerifyException(
                f"{self.name}: expected four times as many i8 as i32, or twice as many i8 as i16 or"
                f" i16 as i32, found {codes}, {self.numbers.type} and {total}"
            )


@irdl_op_definition
class RequestMatricesOp(IRDLOperation):
    """Request for the registers of AMX, which a process makes before `host.multiply_matrices`.

    ```mlir
    host.request_matrices
    ```
    """

    name = "host.request_matrices"
    assembly_format = "attr-dict"


@irdl_op_definition
class MultiplyMatricesOp(IRDLOperation):
    """Product of signed bytes `[16, steps]` and unsigned codes, written as `i32` by AMX.

    The codes `[vectors, steps / 4, 16, 4]` are those of 16 units for four steps, then for the next
    four; the sums are `[16, vectors, 16]`.

    ```mlir
    host.multiply_matrices %d[%i], %c[%j], %s[%k] {steps = 32 : i64, vectors = 2 : i64}
        : memref<?xi8>, memref<2048xi8>, memref<512xi32>
    ```
    """

    name = "host.multiply_matrices"
    data = operand_def(MemRefType)
    data_index = operand_def(IndexType)
    codes = operand_def(MemRefType)
    codes_index = operand_def(IndexType)
    sums = operand_def(MemRefType)
    sums_index = operand_def(IndexType)
    steps = prop_def(IntegerAttr)
    vectors = prop_def(IntegerAttr)
    irdl_options = (ParsePropInAttrDict(),)
    assembly_format = (
        "$data `[` $data_index `]` `,` $codes `[` $codes_index `]` `,` $sums"
        " `[` $sums_index `]` attr-dict `:` type($data) `,` type($codes) `,` type($sums)"
    )

    def __init__(
        self,
        data: tuple[SSAValue, SSAValue],
        codes: tuple[SSAValue, SSAValue],
        sums: tuple[SSAValue, SSAValue],
        *,
        steps: int,
        vectors: int,
    ):
        super().__init__(
            operands=[*data, *codes, *sums],
            properties={"steps": IntegerAttr(steps, i64), "vectors": IntegerAttr(vectors, i64)},
        )


def buffer_type(type_: Attribute) -> Attribute:
    """Returns the dense memref type for a tensor type; returns other types unchanged."""
    if not isinstance(type_, TensorType):
        return type_
    return dense_buffer(type_.element_type, type_sizes(cast(Tensor, type_)))


HOST = Dialect("host", operations_in(globals(), vars(dynamic_buffers)), [LayoutAttr])
