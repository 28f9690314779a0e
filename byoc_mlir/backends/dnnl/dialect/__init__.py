"""The `dnnl` dialect: oneDNN's primitives on tensors whose types contain their memory layout.

```mlir
%1 = dnnl.convolution %x, %w, %b {strides = [1, 1], padding = [1, 1, 1, 1], dilation = [1, 1],
    post_ops = [#dnnl.eltwise<relu>]}
  : (tensor<1x3x8x8xf32>, tensor<16x3x3x3xf32>, tensor<16xf32>)
  -> tensor<1x16x8x8xf32, #dnnl.layout<"aBcd8b">>
```

A tensor without a layout is dense and row-major. A constant weight of a convolution, a
deconvolution, an inner product or a matmul is packed at load time, into the layout that the
primitive requests; the IR shows it as it is stored. Primitives are described at
https://oneapi-src.github.io/oneDNN/v3.1/
"""

from __future__ import annotations

from xdsl.ir import Dialect

from byoc_mlir.backends.dnnl.dialect import (
    elementwise,
    matrix,
    memory,
    normalization,
    quantized,
    recurrent,
    window,
)
from byoc_mlir.backends.dnnl.dialect.attributes import BinaryAttr, EltwiseAttr, LayoutAttr, SumAttr
from byoc_mlir.backends.dnnl.dialect.base import (
    DnnlOp,
    ExecutedOp,
    LikeSourceOp,
    PostOpsOp,
    ProductOp,
    layout_of,
    with_layout,
)
from byoc_mlir.backends.dnnl.dialect.elementwise import ActivationOp, BinaryOp, EltwiseOp
from byoc_mlir.backends.dnnl.dialect.matrix import InnerProductOp, MatmulOp
from byoc_mlir.backends.dnnl.dialect.memory import (
    ConcatOp,
    ConvertOp,
    JoinOp,
    PermuteOp,
    PixelShuffleOp,
    ReorderOp,
    ShuffleOp,
    SliceOp,
    ViewOp,
)
from byoc_mlir.backends.dnnl.dialect.normalization import (
    BatchNormalizationOp,
    LayerNormalizationOp,
    LrnOp,
    NormalizedConcatOp,
    SoftmaxOp,
)
from byoc_mlir.backends.dnnl.dialect.quantized import (
    LookupOp,
    QuantizedAddOp,
    QuantizedConvolutionOp,
    QuantizedMatmulOp,
)
from byoc_mlir.backends.dnnl.dialect.recurrent import GruOp, LstmOp, RecurrentOp
from byoc_mlir.backends.dnnl.dialect.window import (
    ConvolutionOp,
    DeconvolutionOp,
    PoolingOp,
    ResamplingOp,
    WeightedWindowOp,
    WindowOp,
)
from byoc_mlir.dialects.operations import operations_in

__all__ = [
    "DNNL",
    "ActivationOp",
    "BatchNormalizationOp",
    "BinaryAttr",
    "BinaryOp",
    "ConcatOp",
    "ConvertOp",
    "ConvolutionOp",
    "DeconvolutionOp",
    "DnnlOp",
    "EltwiseAttr",
    "EltwiseOp",
    "ExecutedOp",
    "GruOp",
    "InnerProductOp",
    "JoinOp",
    "LayerNormalizationOp",
    "LayoutAttr",
    "LikeSourceOp",
    "LookupOp",
    "LrnOp",
    "LstmOp",
    "MatmulOp",
    "NormalizedConcatOp",
    "PermuteOp",
    "PixelShuffleOp",
    "PoolingOp",
    "PostOpsOp",
    "ProductOp",
    "QuantizedAddOp",
    "QuantizedConvolutionOp",
    "QuantizedMatmulOp",
    "RecurrentOp",
    "ReorderOp",
    "ResamplingOp",
    "ShuffleOp",
    "SliceOp",
    "SoftmaxOp",
    "SumAttr",
    "ViewOp",
    "WeightedWindowOp",
    "WindowOp",
    "layout_of",
    "with_layout",
]

_FAMILIES = (elementwise, matrix, memory, normalization, quantized, recurrent, window)

DNNL = Dialect(
    "dnnl",
    operations_in(*map(vars, _FAMILIES)),
    [BinaryAttr, EltwiseAttr, LayoutAttr, SumAttr],
)
