"""ONNX loops as loops whose trip counts and sizes are known before they run."""
