"""Code of models of fixed shapes: unchanged, with static sizes as constants."""

from __future__ import annotations

import json

from fixed_code import HASHES, code_hash, networks


def test_fixed_models_have_the_code_that_they_had() -> None:
    expected = json.loads(HASHES.read_text())
    found = {name: code_hash(model) for name, model in networks().items()}
    changed = sorted(name for name in found if found[name] != expected.get(name))
    assert not changed, (
        f"the LLVM IR of {', '.join(changed)} is another one; if that is meant, run"
        " python tests/unit/lowering/fixed_code.py"
    )
