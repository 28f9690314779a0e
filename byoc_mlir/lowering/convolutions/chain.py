"""Chains of ops after a convolution that its kernel fuses."""

from __future__ import annotations

from dataclasses import dataclass, replace

from xdsl.ir import SSAValue

from byoc_mlir.dialects.relay import ConstantOp, RelayOp, elementwise, nn
from byoc_mlir.dialects.relay.base import sizes_of
from byoc_mlir.dialects.relay.window import ConvOp
from byoc_mlir.kernels.epilogue import Epilogue

_CHANNEL_AXIS = 1


@dataclass(frozen=True)
class ConvolutionChain:
    """Convolution and the ops after it, each the only user of the previous op."""

    convolution: ConvOp
    followers: tuple[RelayOp, ...] = ()
    bias: ConstantOp | None = None
    residual: SSAValue | None = None
    """Tensor of the result's shape, which is added to it."""
    lower: float | None = None
    upper: float | None = None

    @property
    def ops(self) -> tuple[RelayOp, ...]:
        """Returns the ops of the chain, in order."""
        return (self.convolution, *self.followers)

    @property
    def result(self) -> SSAValue:
        """Returns the result of the last op."""
        return self.ops[-1].results[0]

    @property
    def epilogue(self) -> Epilogue:
        """Returns the kernel's epilogue: bias, residual and limits of the chain."""
        limits = Epilogue()
        return Epilogue(
            self.bias is not None,
            self.residual is not None,
            limits.lower if self.lower is None else self.lower,
            limits.upper if self.upper is None else self.upper,
        )


def chain_of(op: ConvOp) -> ConvolutionChain:
    """Returns the longest chain that begins with a convolution."""
    chain = ConvolutionChain(op)
    while (longer := _longer(chain)) is not None:
        chain = longer
    return chain


def _longer(chain: ConvolutionChain) -> ConvolutionChain | None:
    """Returns the chain with the next op appended, or None if the kernel cannot fuse that op."""
    op = chain.result.get_user_of_unique_use()
    if not isinstance(op, RelayOp) or chain.lower is not None:
        return None
    added = _with(chain, op)
    return None if added is None else replace(added, followers=(*chain.followers, op))


def _with(chain: ConvolutionChain, op: RelayOp) -> ConvolutionChain | None:
    match op:
        case nn.BiasAddOp() if not chain.followers and op.positive_axis == _CHANNEL_AXIS:
            bias = op.bias.owner
            return replace(chain, bias=bias) if isinstance(bias, ConstantOp) else None
        case elementwise.AddOp() if chain.residual is None:
            other = op.lhs if op.rhs is chain.result else op.rhs
            fits = sizes_of(other) == sizes_of(chain.result) and other is not chain.result
            return replace(chain, residual=other) if fits else None
        case nn.ReluOp():
            return replace(chain, lower=0.0)
        case elementwise.ClipOp():
            return replace(chain, lower=op.a_min.value.data, upper=op.a_max.value.data)
        case _:
            return None
