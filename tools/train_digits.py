"""Training of the network of `byoc demo`, which is written to the package with pictures of the test
set.

    python -m pip install torch scikit-learn && python tools/train_digits.py

The pictures are scikit-learn's copy of a part of the "Optical Recognition of Handwritten Digits"
data set (E. Alpaydin and C. Kaynak, 1998, UCI Machine Learning Repository, CC BY 4.0): 1,797 digits
of 8 by 8 pixels with values from 0 to 16. A quarter of them is kept for the test.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import onnx
import torch
from onnx import TensorProto, helper, numpy_helper
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, pad

FOLDER = Path(__file__).parent.parent / "byoc_mlir" / "digits"
EPOCHS, BATCH = 60, 64


def main() -> None:
    """Trains, tests and writes."""
    torch.set_num_threads(1)  # other numbers of threads add in another order
    torch.manual_seed(0)
    digits = load_digits()
    pictures, labels = digits.images.astype(np.uint8), digits.target.astype(np.uint8)
    seen, unseen, seen_labels, unseen_labels = train_test_split(
        pictures, labels, test_size=0.25, random_state=0, stratify=labels
    )
    network = trained(_scaled(seen), torch.from_numpy(seen_labels).long())
    with torch.no_grad():
        answers = network(_scaled(unseen)).argmax(1).numpy()
    print(f"{(answers == unseen_labels).mean():.1%} of {len(unseen)} unseen pictures are right")
    onnx.save(exported(network), FOLDER / "digits.onnx")
    np.savez_compressed(FOLDER / "unseen.npz", pictures=unseen, labels=unseen_labels)


def trained(pictures: Tensor, labels: Tensor) -> nn.Sequential:
    """Returns a network trained on pictures `[N, 1, 8, 8]`, each shifted by up to a pixel."""
    network = nn.Sequential(
        *(nn.Conv2d(1, 16, 3, padding=1), nn.ReLU()),
        *(nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2)),
        *(nn.Flatten(), nn.Dropout(0.3), nn.Linear(32 * 4 * 4, 10)),
    )
    optimizer = torch.optim.AdamW(network.parameters(), lr=2e-3)
    steps = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, EPOCHS)
    for _ in range(EPOCHS):
        for rows in torch.randperm(len(labels)).split(BATCH):
            optimizer.zero_grad()
            cross_entropy(network(_shifted(pictures[rows])), labels[rows]).backward()
            optimizer.step()
        steps.step()
    return network.eval()


def exported(network: nn.Sequential) -> onnx.ModelProto:
    """Returns the network in ONNX: `picture [1, 1, 8, 8]` to `probabilities [1, 10]`."""
    names = (
        "conv1.weight",
        "conv1.bias",
        "conv2.weight",
        "conv2.bias",
        "dense.weight",
        "dense.bias",
    )
    weights = [
        numpy_helper.from_array(tensor.detach().numpy(), name)
        for name, tensor in zip(names, network.parameters(), strict=True)
    ]
    nodes = [
        helper.make_node("Conv", ["picture", *names[:2]], ["c1"], "conv1", pads=[1] * 4),
        helper.make_node("Relu", ["c1"], ["r1"], "relu1"),
        helper.make_node("Conv", ["r1", *names[2:4]], ["c2"], "conv2", pads=[1] * 4),
        helper.make_node("Relu", ["c2"], ["r2"], "relu2"),
        helper.make_node("MaxPool", ["r2"], ["p"], "pool", kernel_shape=[2, 2], strides=[2, 2]),
        helper.make_node("Flatten", ["p"], ["f"], "flatten"),
        helper.make_node("Gemm", ["f", *names[4:]], ["g"], "dense", transB=1),
        helper.make_node("Softmax", ["g"], ["probabilities"], "softmax", axis=1),
    ]
    picture = helper.make_tensor_value_info("picture", TensorProto.FLOAT, [1, 1, 8, 8])
    probabilities = helper.make_tensor_value_info("probabilities", TensorProto.FLOAT, [1, 10])
    graph = helper.make_graph(nodes, "digits", [picture], [probabilities], weights)
    model = helper.make_model(
        graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8, producer_name="byoc_mlir"
    )
    onnx.checker.check_model(model, full_check=True)
    return model


def _scaled(pictures: np.ndarray) -> Tensor:
    return torch.from_numpy(pictures.astype(np.float32) / 16)[:, None]


def _shifted(pictures: Tensor) -> Tensor:
    down, right = torch.randint(0, 3, (2,)).tolist()
    return pad(pictures, (1, 1, 1, 1))[:, :, down : down + 8, right : right + 8]


if __name__ == "__main__":
    main()
