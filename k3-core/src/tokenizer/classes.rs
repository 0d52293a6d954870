//! The classes of code points that the piece pattern tells apart.
//!
//! The pattern speaks of overlapping sets: a mark may be part of a word, a word's leading character, or punctuation.
//! Here every code point has exactly one [`Class`], chosen so that each set of the pattern is a union of classes. A set
//! is then a bit mask, and membership one shift.

use super::unicode::{BLOCK_OF, BLOCKS};

/// The class of one code point, numbered as `scripts/unicode_tables.py` numbers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class(u8);

impl Class {
    /// None of the others: punctuation, symbols, controls, unassigned.
    pub(super) const OTHER: Class = Class(0);
    /// `\s` apart from CR and LF.
    pub(super) const SPACE: Class = Class(1);
    /// CR and LF.
    pub(super) const NEWLINE: Class = Class(2);
    /// `\p{Lu}` and `\p{Lt}`.
    pub(super) const UPPER: Class = Class(3);
    /// `\p{Ll}`.
    pub(super) const LOWER: Class = Class(4);
    /// `\p{Lm}` and `\p{Lo}` outside Han.
    pub(super) const CASELESS: Class = Class(5);
    /// `\p{M}` outside Han.
    pub(super) const MARK: Class = Class(6);
    /// `\p{N}` outside Han.
    pub(super) const NUMBER: Class = Class(7);
    /// `\p{Han}` and `\p{L}`.
    pub(super) const HAN_LETTER: Class = Class(8);
    /// `\p{Han}` and `\p{N}`.
    pub(super) const HAN_NUMBER: Class = Class(9);
    /// `\p{Han}`, neither letter nor number.
    pub(super) const HAN_OTHER: Class = Class(10);
    /// Not a code point: the end of the text. In no set.
    pub(super) const END: Class = Class(11);
}

/// A set of classes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Set(u16);

impl Set {
    /// `\p{Han}`
    pub(super) const HAN: Set = Set::of(&[Class::HAN_LETTER, Class::HAN_NUMBER, Class::HAN_OTHER]);
    /// `[^\r\n\p{L}\p{N}]`: what may stand before a word and belong to it.
    pub(super) const LEADING: Set =
        Set::of(&[Class::OTHER, Class::SPACE, Class::MARK, Class::HAN_OTHER]);
    /// `[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
    pub(super) const UPPER_PART: Set = Set::of(&[Class::UPPER, Class::CASELESS, Class::MARK]);
    /// `[\p{Ll}\p{Lm}\p{Lo}\p{M}&&[^\p{Han}]]`
    pub(super) const LOWER_PART: Set = Set::of(&[Class::LOWER, Class::CASELESS, Class::MARK]);
    /// `\p{N}`
    pub(super) const NUMBER: Set = Set::of(&[Class::NUMBER, Class::HAN_NUMBER]);
    /// `[^\s\p{L}\p{N}]`
    pub(super) const PUNCTUATION: Set = Set::of(&[Class::OTHER, Class::MARK, Class::HAN_OTHER]);
    /// `[\r\n]`
    pub(super) const NEWLINE: Set = Set::of(&[Class::NEWLINE]);
    /// `\s`
    pub(super) const WHITESPACE: Set = Set::of(&[Class::SPACE, Class::NEWLINE]);

    const fn of(classes: &[Class]) -> Set {
        let mut bits = 0;
        let mut i = 0;
        while i < classes.len() {
            bits |= 1 << classes[i].0;
            i += 1;
        }
        Set(bits)
    }

    /// Whether `class` is in the set.
    #[inline]
    pub(super) const fn has(self, class: Class) -> bool {
        (self.0 >> class.0) & 1 == 1
    }
}

/// The class of a code point.
#[inline]
pub(super) const fn class_of(point: u32) -> Class {
    let block = BLOCK_OF[(point >> 7) as usize] as usize;
    let word = BLOCKS[block * 8 + (point >> 4 & 7) as usize];
    Class((word >> (4 * (point & 15)) & 15) as u8)
}

/// The classes of ASCII, where most text is.
static ASCII: [Class; 128] = {
    let mut classes = [Class::OTHER; 128];
    let mut point = 0;
    while point < 128 {
        classes[point] = class_of(point as u32);
        point += 1;
    }
    classes
};

/// The class of the code point that begins at byte `at` of `text`, and where the next one begins. At the end:
/// [`Class::END`], which is in no set, and `at`.
#[inline]
pub(super) fn step(text: &str, at: usize) -> (Class, usize) {
    let bytes = text.as_bytes();
    let Some(&first) = bytes.get(at) else {
        return (Class::END, at);
    };
    if first < 0x80 {
        return (ASCII[first as usize], at + 1);
    }
    let (point, next) = wide_point(bytes, at, first);
    (class_of(point), next)
}

/// Decodes the code point of two to four bytes at `at`; `bytes` is the whole of a `str`, so the form is known good.
#[inline]
fn wide_point(bytes: &[u8], at: usize, first: u8) -> (u32, usize) {
    let tail = |i: usize| u32::from(bytes[at + i] & 0x3F);
    let first = u32::from(first);
    match first {
        0..0xE0 => ((first & 0x1F) << 6 | tail(1), at + 2),
        0xE0..0xF0 => ((first & 0x0F) << 12 | tail(1) << 6 | tail(2), at + 3),
        _ => (
            (first & 0x07) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3),
            at + 4,
        ),
    }
}
