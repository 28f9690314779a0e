"""Loaded programs with inputs and outputs in the memory of devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from byoc_mlir.abi import HOST_SPACE
from byoc_mlir.errors import InvalidInputError
from byoc_mlir.runtime.arguments import Shape
from byoc_mlir.runtime.call import Call
from byoc_mlir.runtime.device_array import DeviceAddress, DeviceArray, is_on_device
from byoc_mlir.runtime.instance import Instance
from byoc_mlir.runtime.profiled import TimedPart
from byoc_mlir.runtime.program import Array
from byoc_mlir.tensors import TensorInfo


class ResidentInstance(Instance):
    """Loaded program with inputs or outputs in the memory of devices.

    An array of the host for such an input is copied first.
    """

    def run(
        self,
        inputs: Sequence[Array],
        outputs: Sequence[Array] | None = None,
        call: Call | None = None,
        parts: list[TimedPart] | None = None,
    ) -> list[Array]:
        given = list(map(self._placed, self.program.inputs, inputs))
        if outputs is None:
            kinds = dict(zip(self.output_names, self.outputs, strict=True))
            outputs = list(self.new_outputs(kinds).values())
        found = super().run(given, outputs, call, parts)
        return [getattr(one, "owner", one) for one in found]

    def new_outputs(self, kinds: Mapping[str, tuple[Shape, np.dtype[Any]]]) -> dict[str, Array]:
        spaces = {info.name: info.space for info in self.program.outputs}
        made = super().new_outputs(
            {name: kind for name, kind in kinds.items() if spaces[name] == HOST_SPACE}
        )
        for name in kinds.keys() - made.keys():
            functions = self.device_functions[spaces[name]]
            made[name] = DeviceArray.new(functions, *kinds[name]).handle()
        return {name: made[name] for name in kinds}

    def handles(self, out: Mapping[str, Any]) -> Mapping[str, Any]:
        infos = {info.name: info for info in self.program.outputs}
        return {name: self._handle(infos[name], one) for name, one in out.items()}

    def _handle(self, info: TensorInfo, array: Any) -> Any:
        if info.space == HOST_SPACE:
            return array
        if is_on_device(array) and (found := DeviceArray.imported(array)).is_on(
            self.device_functions[info.space].device
        ):
            return found.handle()
        raise InvalidInputError(
            f"out: '{info.name}' must be an array on device '{info.space}', found"
            f" {type(array).__name__}"
        )

    def placed(self, arrays: Mapping[str, Array]) -> dict[str, Any]:
        """Copies arrays for inputs to the memory in which the program takes them."""
        infos = {info.name: info for info in self.program.inputs}
        placed = {name: self._placed(infos[name], one) for name, one in arrays.items()}
        return {name: getattr(one, "owner", one) for name, one in placed.items()}

    def _placed(self, info: TensorInfo, array: Array) -> Array:
        if info.space == HOST_SPACE:
            return array
        functions = self.device_functions[info.space]
        if not isinstance(array, DeviceAddress):
            return DeviceArray.copied(functions, array).handle()
        if not array.owner.is_on(functions.device):
            raise InvalidInputError(
                f"input '{info.name}' must be on device '{info.space}', found {array.owner!r}"
            )
        return array
