"""Reads and writes saved memories without the package, as a Python program would.

    memory-file.py read FILE     prints what is in it, as JSON
    memory-file.py write FILE    makes it from the same JSON on the standard input
    memory-file.py fingerprint   prints the fingerprint of the trace on the standard input
"""

import json
import struct
import sys

import numpy as np
import xxhash
from safetensors import safe_open
from safetensors.numpy import load_file

CHECKSUM_BYTES = 16


def read(path: str) -> dict:
    tensors = load_file(path)
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    with open(path, "rb") as file:
        contents = file.read()
    checksum = xxhash.xxh3_128_digest(contents[:-CHECKSUM_BYTES])
    assert checksum == tensors["checksum"].tobytes() == contents[-CHECKSUM_BYTES:], "the checksum is wrong"
    starts = np.concatenate([[0], tensors["label_ends"][:-1]]).astype(int)
    labels = [
        bytes(tensors["labels"][start:end]).decode() if labelled else None
        for start, end, labelled in zip(starts, tensors["label_ends"], tensors["labelled"], strict=False)
    ]
    return {
        "metadata": metadata,
        "dtypes": {name: str(tensor.dtype) for name, tensor in tensors.items()},
        "vectors": tensors["vectors"].tolist(),
        "novelties": [None if np.isnan(novelty) else novelty for novelty in tensors["novelties"].tolist()],
        "fingerprints": [fingerprint.tobytes().hex() for fingerprint in tensors["fingerprints"]],
        "labels": labels,
        "added": [str(time) for time in tensors["added"].astype("datetime64[us]")],
    }


def write(path: str, contents: dict) -> None:
    labels = [None if label is None else label.encode() for label in contents["labels"]]
    tensors = {
        "added": np.array(contents["added"], "datetime64[us]").astype("<i8"),
        "label_ends": np.cumsum([len(label or b"") for label in labels]).astype("<u8"),
        "novelties": np.array(contents.get("novelties", []), "<f8"),
        "vectors": np.array(contents["vectors"], "<f4"),
        "labelled": np.array([label is not None for label in labels], bool),
        "fingerprints": np.frombuffer(bytes.fromhex("".join(contents.get("fingerprints", []))), "u1").reshape(-1, 16),
        "labels": np.frombuffer(b"".join(label or b"" for label in labels), "u1"),
        "checksum": np.zeros(CHECKSUM_BYTES, "u1"),
    }
    names = {
        **{"int64": "I64", "uint64": "U64", "float32": "F32", "float64": "F64"},
        **{"bool": "BOOL", "uint8": "U8"},
    }
    header: dict = {"__metadata__": contents["metadata"]}
    end = 0
    for name, tensor in tensors.items():
        start, end = end, end + tensor.nbytes
        header[name] = {"dtype": names[str(tensor.dtype)], "shape": tensor.shape, "data_offsets": [start, end]}
    encoded = json.dumps(header).encode()
    encoded += b" " * (-len(encoded) % 8)
    data = b"".join(tensor.tobytes() for tensor in tensors.values())
    whole = len(encoded).to_bytes(8, "little") + encoded + data[:-CHECKSUM_BYTES]
    with open(path, "wb") as file:
        file.write(whole + xxhash.xxh3_128_digest(whole))


def fingerprint(trace: dict) -> str:
    def text(value: str) -> bytes:
        units = value.encode("utf-16-le")
        return struct.pack("<Q", len(units) // 2) + units

    def optional(value: str | None) -> bytes:
        return b"\0" if value is None else b"\1" + text(value)

    def number(value: float) -> bytes:
        return struct.pack("<d", value)

    metadata = trace["metadata"]
    fields = [text(trace["id"]), text(trace["task"]["objective"]), number(len(trace["steps"]))]
    for step in trace["steps"]:
        fields += [text(step["type"]), optional(step.get("content")), optional(step.get("tool", {}).get("name"))]
    fields += [bytes([metadata["success"]]), optional(metadata.get("task_domain"))]
    fields += [number(trace["outcome"]["confidence"])]
    return xxhash.xxh3_128_hexdigest(b"".join(fields))


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["read", path]:
            print(json.dumps(read(path)))
        case ["write", path]:
            write(path, json.load(sys.stdin))
        case ["fingerprint"]:
            print(fingerprint(json.load(sys.stdin)))
        case _:
            sys.exit(__doc__)
