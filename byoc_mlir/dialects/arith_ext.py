"""The `arith` dialect: xDSL's ops and an upstream op that xDSL lacks, under its upstream name.

`ARITH` replaces xDSL's dialect object of the same name, so a tool registers it instead of
`xdsl.dialects.arith.Arith`.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.ir import Dialect
from xdsl.irdl import irdl_op_definition, traits_def
from xdsl.traits import Pure


@irdl_op_definition
class RemFOp(arith.FloatingPointLikeBinaryOperation):
    """Exact remainder of `lhs / rhs` rounded toward zero, as C `fmod`."""

    name = "arith.remf"
    traits = traits_def(Pure())


ARITH = Dialect("arith", [*arith.Arith.operations, RemFOp], list(arith.Arith.attributes))
