"""Arrays that both sides of the differential tests make for themselves, bit for bit.

Element i of a stream is a function of the stream's number and i alone, so a case file names
streams and holds no arrays. tests/torch/formula.hpp is the same in C++.
"""

import numpy as np

_MASK = (1 << 64) - 1


def splitmix64(x: int) -> int:
    """One output of SplitMix64 (Steele, Lea & Flood 2014) for the state x."""
    x = (x + 0x9E3779B97F4A7C15) & _MASK
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & _MASK
    return x ^ (x >> 31)


def stream(*numbers: int) -> int:
    """The number of the stream that belongs to a tuple such as (seed, sample, parameter)."""
    state = 0
    for number in numbers:
        state = splitmix64((state + number) & _MASK)
    return state


def uniform(stream_number: int, count: int, dtype: np.dtype) -> np.ndarray:
    """`count` values in [-1, 1), multiples of 2^-23 (float32) or 2^-52 (float64): exact in both."""
    with np.errstate(over="ignore"):
        x = np.uint64(stream_number) + np.arange(count, dtype=np.uint64)
        x += np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    if np.dtype(dtype) == np.float64:
        return (x >> np.uint64(11)).astype(np.float64) * 2.0**-52 - 1.0
    return ((x >> np.uint64(40)).astype(np.float64) * 2.0**-23 - 1.0).astype(np.float32)
