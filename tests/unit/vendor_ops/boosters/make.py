"""Script that writes the models beside it: boosted trees as onnxmltools converts them.

python -m pip install lightgbm onnxmltools packaging scikit-learn skl2onnx xgboost
python tests/unit/vendor_ops/boosters/make.py
"""

# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOperatorIssue=false
from __future__ import annotations

from pathlib import Path

import numpy as np
from lightgbm import LGBMClassifier, LGBMRegressor
from onnxmltools import convert_lightgbm, convert_xgboost
from onnxmltools.convert.common.data_types import FloatTensorType
from sklearn.datasets import make_classification
from xgboost import XGBClassifier, XGBRegressor

HERE = Path(__file__).parent
TYPES = [("X", FloatTensorType([None, 6]))]
NAMES = np.array(["ada", "bob", "eve"])
TREES = {"n_estimators": 4, "max_depth": 3}
LIGHT = {**TREES, "min_child_samples": 3, "verbose": -1}


def main() -> None:
    """Writes the models."""
    data, classes = make_classification(80, 6, n_informative=4, n_classes=3, random_state=0)
    data = data.astype(np.float32)
    numbers = data @ np.arange(6)
    data[::7, 2] = np.nan  # trees send what is missing one way or the other
    bagged = {**LIGHT, "boosting_type": "rf", "subsample": 0.8, "subsample_freq": 1}
    light = {
        "lightgbm_classes": LGBMClassifier(**LIGHT).fit(data, classes),
        "lightgbm_names": LGBMClassifier(**LIGHT).fit(data, NAMES[classes]),
        "lightgbm_numbers": LGBMRegressor(**LIGHT).fit(data, numbers),
        "lightgbm_counts": LGBMRegressor(objective="poisson", **LIGHT).fit(data, np.abs(numbers)),
        "lightgbm_bagged": LGBMRegressor(**bagged).fit(data, numbers),
    }
    extreme = {
        "xgboost_classes": XGBClassifier(**TREES).fit(data, classes),
        "xgboost_two": XGBClassifier(**TREES).fit(data, classes > 0),
        "xgboost_numbers": XGBRegressor(**TREES).fit(data, numbers),
        "xgboost_counts": XGBRegressor(objective="count:poisson", **TREES).fit(
            data, np.abs(numbers)
        ),
    }
    for name, model in light.items():
        _write(name, convert_lightgbm(model, initial_types=TYPES))
    in_parts = convert_lightgbm(light["lightgbm_numbers"], initial_types=TYPES, split=2)
    _write("lightgbm_in_parts", in_parts)
    for name, model in extreme.items():
        _write(name, convert_xgboost(model, initial_types=TYPES))


def _write(name: str, model) -> None:
    (HERE / f"{name}.onnx").write_bytes(model.SerializeToString())


if __name__ == "__main__":
    main()
