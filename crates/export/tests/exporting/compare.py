"""Compares ONNX files with the features that were exported with them: compare.py A.onnx A.check.safetensors B.onnx ..."""

import json
import sys

import numpy as np
import onnxruntime


def read_safetensors(path):
    with open(path, "rb") as file:
        data = file.read()
    start = 8 + int.from_bytes(data[:8], "little")
    types = {"F32": np.float32, "U8": np.uint8}
    header = {name: entry for name, entry in json.loads(data[8:start]).items() if name != "__metadata__"}
    return {
        name: np.frombuffer(data[start + entry["data_offsets"][0] : start + entry["data_offsets"][1]], types[entry["dtype"]])
        .reshape(entry["shape"])
        for name, entry in header.items()
    }


def features(model, images):
    names = [output.name for output in model.get_outputs()]
    return dict(zip(names, model.run(names, {model.get_inputs()[0].name: images})))


options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
for path, check in zip(sys.argv[1::2], sys.argv[2::2]):
    model = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    expected = read_safetensors(check)
    images = expected.pop("images").astype(np.float32) / 255
    found, alone = features(model, images), features(model, images[2:3])
    if found.keys() != expected.keys():
        sys.exit(f"{path} has the outputs {list(found)}, expected {list(expected)}")
    largest = 0.0
    for name, wanted in expected.items():
        for rows, values in ((wanted, found[name]), (wanted[2:3], alone[name])):
            if values.shape != rows.shape:
                sys.exit(f"{path}: {name} has the shape {values.shape}, expected {rows.shape}")
            rows, values = rows.reshape(len(rows), -1), values.reshape(len(rows), -1)
            difference = np.linalg.norm(values - rows, axis=1) / np.linalg.norm(rows, axis=1)
            largest = max(largest, float(difference.max()))
    if not largest <= 1e-4:
        sys.exit(f"{path}: the largest difference is {largest:.1e} of the features' norm")
    print(f"{path}: {largest:.1e}")
