#!/usr/bin/env python3
"""Sets the tokenizer's speed beside that of the Python library tiktoken: same texts, vocabulary and pattern, one thread.

    pip install tiktoken
    python3 scripts/tokenizer_speed.py DIR FILE...

DIR holds tiktoken.model and tokenizer_config.json. Both encode each file in chunks of about 100 KB without special tokens;
the best processor time of ten calls counts, so that other programs disturb little.
"""
import base64
import subprocess
import sys
import time
from pathlib import Path

import tiktoken

ROOT = Path(__file__).resolve().parent.parent
CHUNK_BYTES = 100_000
CALLS = 10

WORD = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]%s[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]%s(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
PATTERN = "|".join(
    [
        r"[\p{Han}]+",
        r"[^\r\n\p{L}\p{N}]?" + WORD % ("*", "+"),
        r"[^\r\n\p{L}\p{N}]?" + WORD % ("+", "*"),
        r"\p{N}{1,3}",
        r" ?[^\s\p{L}\p{N}]+[\r\n]*",
        r"\s*[\r\n]+",
        r"\s+(?!\S)",
        r"\s+",
    ]
)


def python_encoding(folder):
    lines = (line.split() for line in (folder / "tiktoken.model").read_bytes().splitlines())
    ranks = {base64.b64decode(token): int(rank) for token, rank in lines}
    return tiktoken.Encoding("k3", pat_str=PATTERN, mergeable_ranks=ranks, special_tokens={})


def chunks(text):
    data, start = text.encode(), 0
    while start < len(data):
        end = min(start + CHUNK_BYTES, len(data))
        while end < len(data) and 0x80 <= data[end] < 0xC0:
            end += 1
        yield data[start:end].decode()
        start = end


def best_seconds(call):
    times = []
    for _ in range(CALLS):
        start = time.thread_time()
        call()
        times.append(time.thread_time() - start)
    return min(times)


def main():
    folder, files = Path(sys.argv[1]).resolve(), [Path(name).resolve() for name in sys.argv[2:]]
    encoding = python_encoding(folder)
    bench = ["cargo", "bench", "-q", "-p", "k3-core", "--bench", "tokenizer", "--", "--tok", str(folder)]
    print("file\tMB/s\ttiktoken MB/s\tratio")
    for file in files:
        text = file.read_bytes().decode()
        seconds = sum(best_seconds(lambda: encoding.encode_ordinary(chunk)) for chunk in chunks(text))
        python_rate = len(text.encode()) / 1e6 / seconds
        output = subprocess.run([*bench, str(file)], cwd=ROOT, check=True, capture_output=True, text=True).stdout
        rate = float(output.splitlines()[-1].split("\t")[1])
        print(f"{file.name}\t{rate:.1f}\t{python_rate:.1f}\t{rate / python_rate:.1f}")


if __name__ == "__main__":
    main()
