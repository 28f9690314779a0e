"""Binding of oneDNN: its C interface, called by `ctypes`.

Public: backends in packages of their own may import it. Its modules load no library when they are
imported; the first call of `engine()` does.

| module | has |
| --- | --- |
| `library` | `load_library`, `unavailable_reason`: the shared object of this process |
| `constants` | the numbers of `dnnl_types.h`: `Arg`, `DataType`, `ELTWISE`, … |
| `engine` | `engine()`, the one engine of a process; `openmp_threads` |
| `descriptors` | `Descriptor`, `PrimitiveAttributes`: memory layouts, post-ops and scales |
| `primitives` | `PrimitiveDescriptor`, `Primitive`, `BoundPrimitive` |
| `gemm` | `sgemm`: matmuls of `f32` that need no primitive |

A primitive is described, created and run on arrays:

```python
import numpy as np

from byoc_mlir.onednn.constants import ELTWISE, FORWARD_INFERENCE, Arg
from byoc_mlir.onednn.descriptors import Descriptor, PrimitiveAttributes
from byoc_mlir.onednn.engine import engine
from byoc_mlir.onednn.primitives import Primitive, PrimitiveDescriptor

x, y = np.linspace(-1, 1, 8, dtype=np.float32), np.empty(8, np.float32)
dense = Descriptor.dense(x.shape)
relu = PrimitiveDescriptor(
    "dnnl_eltwise_forward_primitive_desc_create",
    *(engine(), FORWARD_INFERENCE, ELTWISE["relu"], dense, dense, 0.0, 0.0, PrimitiveAttributes()),
)
Primitive(relu).execute({Arg.SRC: x, Arg.DST: y})
assert (y == np.maximum(x, 0)).all()
```

Any number of Python threads may create and run primitives. Some code of the library moves the stack
pointer elsewhere while it runs. A program with signal handlers therefore runs it inside
`byoc_mlir.runtime.system.signals.signals_held`.
"""
