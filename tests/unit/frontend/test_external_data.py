"""External data is read from regular files below the model's folder and from nowhere else."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import numpy as np
import pytest
from onnx import StringStringEntryProto, TensorProto
from onnx_models import add_of

from byoc_mlir.dialects.relay import ConstantOp
from byoc_mlir.errors import InvalidModelError, UnsafeModelError
from byoc_mlir.frontend import import_model

VALUES = np.arange(60, dtype=np.float32).reshape(20, 3)


def _write(folder: Path, location: str, **entries: object) -> Path:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[20, 1, 3])
    tensor.data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        tensor.external_data.append(StringStringEntryProto(key=key, value=str(value)))
    path = folder / "model.onnx"
    path.write_bytes(add_of(tensor).SerializeToString())
    return path


def _weight(path: Path) -> np.ndarray:
    (constant,) = (op for op in import_model(path).module.walk() if isinstance(op, ConstantOp))
    return constant.array


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    inner = tmp_path / "model"
    (inner / "sub").mkdir(parents=True)
    (inner / "w.bin").write_bytes(VALUES.tobytes())
    (inner / "sub" / "w.bin").write_bytes(bytes(8) + VALUES.tobytes() + bytes(4))
    (tmp_path / "secret.bin").write_bytes(VALUES.tobytes())
    return inner


def test_whole_file(folder: Path) -> None:
    np.testing.assert_array_equal(_weight(_write(folder, "w.bin")).reshape(20, 3), VALUES)


def test_part_of_a_file_in_a_folder(folder: Path) -> None:
    path = _write(folder, "./sub/w.bin", offset=8, length=240)
    np.testing.assert_array_equal(_weight(path).reshape(20, 3), VALUES)


def test_unaligned_offset(folder: Path) -> None:
    (folder / "w.bin").write_bytes(b"x" + VALUES.tobytes())
    weight = _weight(_write(folder, "w.bin", offset=1, length=240))
    assert weight.flags.aligned
    np.testing.assert_array_equal(weight.reshape(20, 3), VALUES)


def test_weights_are_mapped_not_copied(folder: Path) -> None:
    (folder / "w.bin").write_bytes((VALUES + 100).tobytes())  # equal ones of other tests are shared
    weight = _weight(_write(folder, "w.bin"))
    assert not weight.flags.owndata
    assert not weight.flags.writeable


def test_checksum(folder: Path) -> None:
    digest = hashlib.sha1(VALUES.tobytes()).hexdigest()
    _weight(_write(folder, "w.bin", checksum=digest))
    with pytest.raises(UnsafeModelError, match=f"SHA-1 {digest}, the model says 00"):
        _weight(_write(folder, "w.bin", checksum="00"))


@pytest.mark.parametrize(
    "location",
    [
        *(
            "../secret.bin",
            "sub/../../secret.bin",
            "sub/../w.bin",
            "/etc/passwd",
            "",
            ".",
            "sub//w",
        ),
        *("..\\secret.bin", "C:w.bin", "w.bin\0x", "\\\\server\\share\\w.bin"),
    ],
)
def test_path_outside(folder: Path, location: str) -> None:
    with pytest.raises(UnsafeModelError, match=r"accepted are relative paths below"):
        import_model(_write(folder, location))


def test_a_symbolic_link_out_of_the_folder(folder: Path) -> None:
    (folder / "link.bin").symlink_to("../secret.bin")
    with pytest.raises(UnsafeModelError, match=r"'link.bin' leads out of the model's folder"):
        import_model(_write(folder, "link.bin"))


def test_a_symbolic_link_to_a_folder_outside(folder: Path) -> None:
    (folder / "up").symlink_to("..")
    with pytest.raises(UnsafeModelError, match=r"'up/secret.bin' leads out of the model's folder"):
        import_model(_write(folder, "up/secret.bin"))


def test_a_link_to_the_folder_itself_is_no_file(folder: Path) -> None:
    (folder / "here").symlink_to(".")
    with pytest.raises(UnsafeModelError, match=r"'here' leads out of the model's folder"):
        import_model(_write(folder, "here"))


@pytest.mark.parametrize("target", ["w.bin", "sub/../w.bin"])
def test_a_symbolic_link_within_the_folder(folder: Path, target: str) -> None:
    (folder / "link.bin").symlink_to(target)
    np.testing.assert_array_equal(_weight(_write(folder, "link.bin")).reshape(20, 3), VALUES)


@pytest.fixture
def snapshot(tmp_path: Path) -> Path:
    """Creates a model as in the cache of Hugging Face: links to blobs, its data among them."""
    blobs, revision = tmp_path / "blobs", tmp_path / "snapshots" / "1f" / "onnx"
    blobs.mkdir()
    revision.mkdir(parents=True)
    (blobs / "22").write_bytes(VALUES.tobytes())
    _write(blobs, "model.onnx_data").rename(blobs / "11")
    (revision / "model.onnx").symlink_to("../../../blobs/11")
    (revision / "model.onnx_data").symlink_to("../../../blobs/22")
    return revision / "model.onnx"


def test_links_to_blobs_beside_those_of_the_model(snapshot: Path) -> None:
    np.testing.assert_array_equal(_weight(snapshot).reshape(20, 3), VALUES)


def test_a_link_to_elsewhere_than_the_blobs(snapshot: Path, tmp_path: Path) -> None:
    (tmp_path / "secret.bin").write_bytes(VALUES.tobytes())
    data = snapshot.with_name("model.onnx_data")
    data.unlink()
    data.symlink_to("../../../secret.bin")
    with pytest.raises(UnsafeModelError, match=r"leads out of the model's folder"):
        import_model(snapshot)


def test_a_hard_link_is_a_file_like_others(folder: Path) -> None:
    os.link(folder.parent / "secret.bin", folder / "hard.bin")
    np.testing.assert_array_equal(_weight(_write(folder, "hard.bin")).reshape(20, 3), VALUES)


def test_pipe(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    with pytest.raises(UnsafeModelError, match=r"not a regular file"):
        import_model(_write(folder, "pipe"))


def test_directory(folder: Path) -> None:
    with pytest.raises(UnsafeModelError, match=r"not a regular file"):
        import_model(_write(folder, "sub"))


def test_missing_file(folder: Path) -> None:
    with pytest.raises(InvalidModelError, match=r"tensor 'w': external data cannot be read"):
        import_model(_write(folder, "none.bin"))


@pytest.mark.parametrize(
    "entries",
    [{"length": 239}, {"length": 241}, {"offset": 4}, {"offset": 1 << 70}, {"offset": 240}],
)
def test_wrong_size(folder: Path, entries: dict[str, int]) -> None:
    with pytest.raises(UnsafeModelError, match=r"shape \[20, 1, 3\] needs 240"):
        import_model(_write(folder, "w.bin", **entries))


@pytest.mark.parametrize("value", ["-1", "1e3", "x", "0x10", "٣"])
def test_numbers(folder: Path, value: str) -> None:
    with pytest.raises(UnsafeModelError, match=r"accepted are integers"):
        import_model(_write(folder, "w.bin", offset=value))


@pytest.mark.parametrize("key", ["__class__", "basepath"])
def test_unknown_key(folder: Path, key: str) -> None:
    with pytest.raises(UnsafeModelError, match=r"accepted are .*'checksum', 'length', 'location'"):
        import_model(_write(folder, "w.bin", **{key: "x"}))


def test_only_from_a_path(folder: Path) -> None:
    with pytest.raises(UnsafeModelError, match=r"give the path of the model instead"):
        import_model(_write(folder, "w.bin").read_bytes())


def test_with_data_in_the_model_as_well(folder: Path) -> None:
    tensor = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=[1], raw_data=bytes(4))
    tensor.data_location = TensorProto.EXTERNAL
    with pytest.raises(InvalidModelError, match=r"external, but with data in the model"):
        import_model(add_of(tensor))
