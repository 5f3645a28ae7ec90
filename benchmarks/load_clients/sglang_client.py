"""SGLang's load generator, in its client written in Rust.

It knows no schedule but gaps drawn at random, and sleeps for one after another. So it is judged by
what it drew, drawn here again: exponential gaps from the uniform numbers of ``StdRng`` of the
library rand 0.8, which is ChaCha with 12 rounds (Bernstein, ChaCha, 2008) under a key from a PCG
generator (O'Neill, PCG, 2014).
"""

import json

import numpy as np
import numpy.typing as npt
from point import TOKENS, Point

from s2l.workloads.arrivals.base import OffsetsUs

SEED = 42
_SEED_MASK = 0x5EED
_ROUNDS = 12
_CONSTANTS = (0x61707865, 0x3320646E, 0x79622D32, 0x6B206574)
_COLUMNS = ((0, 4, 8, 12), (1, 5, 9, 13), (2, 6, 10, 14), (3, 7, 11, 15))
_DIAGONALS = ((0, 5, 10, 15), (1, 6, 11, 12), (2, 7, 8, 13), (3, 4, 9, 14))

Words = npt.NDArray[np.uint32]


def command(point: Point) -> list[str]:
    """How it is started; all its threads have one core."""
    return [
        *["python", "-m", "sglang.benchmark.rust_client", "--backend", "vllm"],
        *["--base-url", point.url, "--model", "mock", "--tokenizer", str(point.tokenizer)],
        *["--dataset-name", "random-ids", "--random-input-len", str(point.prompt_tokens)],
        *["--random-output-len", str(TOKENS), "--random-range-ratio", "1"],
        *["--num-prompts", str(point.requests), "--request-rate", f"{point.rate_qps:g}"],
        *["--seed", str(SEED), "--worker-threads", "1", "--disable-tqdm", "--output-details"],
        *["--output-file", str(point.folder / "out.json")],
    ]


def read_ttft_ms(point: Point) -> list[float]:
    """In the order of the requests."""
    found = json.loads((point.folder / "out.json").read_text())
    return [1e3 * ttft for ttft in found["ttfts"]]


def drawn_us(point: Point) -> OffsetsUs:
    """When it means to send each request."""
    words = _chacha(_key(SEED ^ _SEED_MASK), (point.requests + 7) // 8)
    pairs = words.reshape(-1, 2).astype(np.uint64)
    bits = (pairs[:, 0] | pairs[:, 1] << np.uint64(32)) >> np.uint64(12)
    uniform = np.maximum(bits * 2.0**-52, np.finfo(float).tiny)
    gaps_us = -np.log(uniform[: point.requests - 1]) * 1e6 / point.rate_qps
    return np.concatenate([[0], np.rint(np.cumsum(gaps_us)).astype(np.int64)])


def _key(seed: int) -> list[int]:
    words, state = [], seed
    for _ in range(8):
        state = (state * 6364136223846793005 + 11634580027462260723) % 2**64
        mixed = ((state >> 18 ^ state) >> 27) % 2**32
        turn = state >> 59
        words.append((mixed >> turn | mixed << (-turn & 31)) % 2**32)
    return words


def _chacha(key: list[int], blocks: int) -> Words:
    start = np.zeros((16, blocks), np.uint32)
    start[:12] = np.array([*_CONSTANTS, *key], np.uint32)[:, None]
    start[12] = np.arange(blocks)
    state = start.copy()
    for number in range(_ROUNDS):
        for places in _DIAGONALS if number % 2 else _COLUMNS:
            _quarter_round(state, *places)
    return (state + start).T.reshape(-1)


def _quarter_round(state: Words, a: int, b: int, c: int, d: int) -> None:
    for x, y, z, left in ((a, b, d, 16), (c, d, b, 12), (a, b, d, 8), (c, d, b, 7)):
        state[x] += state[y]
        mixed = state[z] ^ state[x]
        state[z] = mixed << np.uint32(left) | mixed >> np.uint32(32 - left)
