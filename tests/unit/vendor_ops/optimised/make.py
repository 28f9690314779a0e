"""Script that writes the models beside it: transformers that ONNX Runtime's optimiser rewrote.

python -m pip install sympy && python tests/unit/vendor_ops/optimised/make.py
"""

# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
from __future__ import annotations

import tempfile
from pathlib import Path

import onnx
from onnxruntime.transformers.optimizer import optimize_model

from byoc_mlir.testing.networks.transformer import bert6, gpt4, vit_tiny

HERE = Path(__file__).parent
WIDTH, HEADS = 16, 2
SMALL = {"width": WIDTH, "heads": HEADS, "layers": 2}

MODELS = {
    "bert": bert6(batch=2, tokens=10, vocabulary=40, **SMALL),
    "gpt2": gpt4(tokens=9, vocabulary=40, **SMALL),
    "vit": vit_tiny(image=48, classes=10, **SMALL),
}


def main() -> None:
    """Writes the models."""
    for kind, model in MODELS.items():
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "model.onnx"
            onnx.save(model, path)
            found = optimize_model(
                str(path), model_type=kind, num_heads=HEADS, hidden_size=WIDTH, opt_level=0
            )
            found.save_model_to_file(str(HERE / f"{kind}.onnx"))


if __name__ == "__main__":
    main()
