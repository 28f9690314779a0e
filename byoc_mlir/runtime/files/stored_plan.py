"""Complete plans as documents of a container, with the order of their programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from byoc_mlir.errors import InvalidArtifactError
from byoc_mlir.runtime import plan
from byoc_mlir.runtime.files.serialise import Blob, Json, decode_fields, encode_fields
from byoc_mlir.runtime.files.stored import encode_program
from byoc_mlir.runtime.plan import Leaf, Loop, Node, leaf_of
from byoc_mlir.runtime.program import Program

PLAN = "plan"
"""Key of a plan in a document."""

ProgramReader: TypeAlias = Callable[[Json], Program]
"""Function that reads the document of a program; called in the order in which programs run."""


def encode_plan(node: Node, blobs: list[Blob]) -> dict[str, Json]:
    """Returns the document of a plan; binary data is appended to `blobs`."""
    if isinstance(node, Leaf):
        return {"program": encode_program(node.programs[-1], blobs)}
    if isinstance(node, Loop):
        assert node.body is not None
        return {"loop": encode_fields(node, blobs, "body"), "body": encode_plan(node.body, blobs)}
    assert isinstance(node, plan.Staged), "others are written to no file"
    stages: list[Json] = [
        {"stage": encode_fields(one, blobs, "nodes"), "node": encode_plan(one.nodes[-1], blobs)}
        for one in node.stages
    ]
    return {"sequence": encode_fields(node, blobs, "stages"), "stages": stages}


def decode_plan(document: Json, blobs: Sequence[memoryview], read: ProgramReader) -> Node:
    """Returns the plan that `encode_plan` wrote.

    Raises:
        InvalidArtifactError: the document describes no plan.
    """
    match document:
        case {"program": program, **others} if not others:
            return leaf_of(read(program))
        case {"loop": fields, "body": body, **others} if not others:
            given = {"body": decode_plan(body, blobs, read)}
            return decode_fields(Loop, fields, blobs, given)
        case {"sequence": fields, "stages": [_, *_] as stages, **others} if not others:
            given = {"stages": tuple(_stage(one, blobs, read) for one in stages)}
            return decode_fields(plan.Staged, fields, blobs, given)
        case _:
            raise InvalidArtifactError(f"there is no plan in {str(document)[:40]!r}")


def _stage(document: Json, blobs: Sequence[memoryview], read: ProgramReader) -> plan.PlanStage:
    match document:
        case {"stage": fields, "node": node, **others} if not others:
            given = {"nodes": (decode_plan(node, blobs, read),)}
            return decode_fields(plan.PlanStage, fields, blobs, given)
        case _:
            raise InvalidArtifactError(f"there is no segment in {str(document)[:40]!r}")
