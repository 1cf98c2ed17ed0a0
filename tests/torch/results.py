"""What a rank of either side leaves behind: STEM.json and, for arrays, STEM.bin.

The JSON's "arrays" lists [key, dtype, count] in the order of the binary file; count is null for an
array that does not exist (a gradient that is None).
"""

import json
import pathlib

import numpy as np


class ResultWriter:
    def __init__(self, stem: pathlib.Path):
        self._stem = stem
        self._binary = open(stem.with_suffix(".bin"), "wb")
        self._arrays = []

    def array(self, key: str, values: "np.ndarray | None", dtype: str) -> None:
        self._arrays.append([key, dtype, None if values is None else int(values.size)])
        if values is not None:
            self._binary.write(np.ascontiguousarray(values).tobytes())

    def finish(self, fields: dict) -> None:
        self._binary.close()
        text = json.dumps({**fields, "arrays": self._arrays})
        self._stem.with_suffix(".json").write_text(text)


class Result:
    """A rank's result, read back: `fields` as they were written, `arrays` by key."""

    def __init__(self, stem: pathlib.Path):
        self.fields = json.loads(stem.with_suffix(".json").read_text())
        self.arrays = {}
        data = stem.with_suffix(".bin").read_bytes()
        offset = 0
        for key, dtype, count in self.fields.pop("arrays"):
            if count is None:
                self.arrays[key] = None
                continue
            values = np.frombuffer(data, np.dtype(dtype), count, offset)
            offset += values.nbytes
            self.arrays[key] = values
        if offset != len(data):
            raise ValueError(f"{stem}.bin has {len(data)} bytes where {offset} are described")
