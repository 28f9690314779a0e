"""Script that writes the models beside it: pipelines of scikit-learn, converted by skl2onnx.

python -m pip install scikit-learn skl2onnx && python tests/unit/vendor_ops/pipelines/make.py
"""

# pyright: basic, reportMissingImports=false, reportMissingModuleSource=false
# pyright: reportAttributeAccessIssue=false, reportArgumentType=false, reportOperatorIssue=false
from __future__ import annotations

from pathlib import Path

import numpy as np
from skl2onnx import to_onnx
from skl2onnx.common.data_types import DictionaryType, FloatTensorType, StringTensorType
from sklearn.datasets import make_classification
from sklearn.decomposition import PCA
from sklearn.ensemble import GradientBoostingClassifier, RandomForestRegressor, StackingClassifier
from sklearn.feature_extraction import DictVectorizer
from sklearn.feature_selection import SelectKBest
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, OrdinalEncoder, RobustScaler, StandardScaler
from sklearn.svm import SVC, SVR
from sklearn.tree import DecisionTreeClassifier

HERE = Path(__file__).parent
NAMES = np.array(["ada", "bob", "eve"])
COLOURS = np.array(["red", "green", "blue"])


def main() -> None:
    """Writes the models."""
    data, classes = make_classification(80, 6, n_informative=4, n_classes=3, random_state=0)
    data, names = data.astype(np.float32), NAMES[classes]
    numbers = (data @ np.arange(6) + data[:, 0] * data[:, 1]).astype(np.float32)
    columns = make_pipeline(SimpleImputer(), RobustScaler(), SelectKBest(k=5), PCA(3))
    both = [("linear", LogisticRegression()), ("tree", DecisionTreeClassifier(max_depth=3))]
    fitted = {
        "tree_of_names": DecisionTreeClassifier(max_depth=4).fit(data, names),
        "boosting": GradientBoostingClassifier(n_estimators=4).fit(data, classes),
        "logistic_of_names": make_pipeline(StandardScaler(), LogisticRegression()).fit(data, names),
        "svc": SVC().fit(data, classes),
        "svc_of_two": SVC(probability=True).fit(data, classes > 0),
        "svc_of_names": SVC(probability=True, kernel="sigmoid").fit(data, names),
        "neighbours": KNeighborsClassifier(3).fit(data, classes),
        "layers_of_names": MLPClassifier((8,), max_iter=20).fit(data, names),
        "columns": make_pipeline(columns, LogisticRegression()).fit(data, classes),
        "stacked": StackingClassifier(both).fit(data, classes),
        "forest": RandomForestRegressor(4, max_depth=4).fit(data, numbers),
        "svr": SVR().fit(data, numbers),
    }
    for name, model in fitted.items():
        (HERE / f"{name}.onnx").write_bytes(to_onnx(model, data[:1]).SerializeToString())
    colours = COLOURS[classes][:, None]
    for name, encoder in (
        ("one_hot", OneHotEncoder(handle_unknown="ignore")),
        ("ordinal", OrdinalEncoder()),
    ):
        types = [("X", StringTensorType([None, 1]))]
        model = to_onnx(encoder.fit(colours), initial_types=types)
        (HERE / f"{name}_of_strings.onnx").write_bytes(model.SerializeToString())
    numbered = [dict(zip(COLOURS, row, strict=False)) for row in data.tolist()]
    maps = make_pipeline(DictVectorizer(sparse=False), LogisticRegression()).fit(numbered, classes)
    types = [("X", DictionaryType(StringTensorType([1]), FloatTensorType([1])))]
    model = to_onnx(maps, initial_types=types)
    (HERE / "logistic_of_maps.onnx").write_bytes(model.SerializeToString())


if __name__ == "__main__":
    main()
