#!/usr/bin/env python3
"""Writes k3-core/src/tokenizer/unicode.rs from the class ranges in fixtures/tokenizer/classes.

Run it from the root of the repository; it takes no arguments. A test in the core compares the written tables with the
ranges for every code point, so a stale or wrong table fails there.
"""
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLASSES = ROOT / "fixtures/tokenizer/classes"
TARGET = ROOT / "k3-core/src/tokenizer/unicode.rs"
BLOCK = 128  # code points per block; two-level tables are smallest near here
PER_WORD = 16  # four bits each in a u64
END = 0x110000

# The classes in the order of their numbers in classes.rs.
OTHER, SPACE, NEWLINE, UPPER, LOWER, CASELESS, MARK, NUMBER, HAN_LETTER, HAN_NUMBER, HAN_OTHER = range(11)


def members(name):
    found = set()
    for line in (CLASSES / f"{name}.txt").read_text().splitlines():
        if not line.startswith("#"):
            first, last = (int(field, 16) for field in line.split())
            found.update(range(first, last + 1))
    return found


def classify():
    han, letter, number, space = (members(name) for name in ("Han", "L", "N", "s"))
    upper, lower = members("S1"), members("S2")
    classes = [OTHER] * END
    for point in range(END):
        if point in han:
            classes[point] = HAN_LETTER if point in letter else HAN_NUMBER if point in number else HAN_OTHER
        elif point in letter:
            classes[point] = CASELESS if point in upper and point in lower else UPPER if point in upper else LOWER
        elif point in upper:
            classes[point] = MARK
        elif point in number:
            classes[point] = NUMBER
        elif point in space:
            classes[point] = NEWLINE if point in (0x0A, 0x0D) else SPACE
    return classes


def two_levels(classes):
    numbers, blocks = {}, []
    index = []
    for start in range(0, END, BLOCK):
        block = tuple(classes[start : start + BLOCK])
        if block not in numbers:
            numbers[block] = len(blocks)
            blocks.append(block)
        index.append(numbers[block])
    assert len(blocks) <= 256, "a block number no longer fits a byte"
    words = [
        sum(value << (4 * place) for place, value in enumerate(block[at : at + PER_WORD]))
        for block in blocks
        for at in range(0, BLOCK, PER_WORD)
    ]
    return index, words


def rows(items, per_row):
    for at in range(0, len(items), per_row):
        yield "    " + ", ".join(items[at : at + per_row]) + ","


def main():
    index, words = two_levels(classify())
    lines = [
        "//! The class of every code point of Unicode 16.0, in two levels. Written by `scripts/unicode_tables.py`; do not edit.",
        "",
        "/// The block of [`BLOCKS`] that holds code points `128 · i .. 128 · (i + 1)`.",
        "#[rustfmt::skip]",
        f"pub(super) static BLOCK_OF: [u8; {len(index)}] = [",
        *rows([str(number) for number in index], 32),
        "];",
        "",
        "/// Blocks of 128 classes: eight words of sixteen classes, four bits each, the first in the lowest bits.",
        "#[rustfmt::skip]",
        f"pub(super) static BLOCKS: [u64; {len(words)}] = [",
        *rows([f"0x{word:x}" for word in words], 8),
        "];",
    ]
    TARGET.write_text("\n".join(lines) + "\n")


if __name__ == "__main__":
    main()
