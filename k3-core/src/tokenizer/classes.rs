//! The classes of code points that the piece pattern tells apart.
//!
//! The pattern speaks of overlapping sets: a mark may be part of a word, a word's leading character, or punctuation.
//! Here every code point has exactly one [`Class`], chosen so that each set of the pattern is a union of classes. A class
//! is then a bit and a set a mask.

use super::unicode::{BLOCK_OF, BLOCKS};

/// The class of one code point, as a set of one: a bit with the number that `scripts/unicode_tables.py` gives the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Class(u16);

impl Class {
    /// None of the others: punctuation, symbols, controls, unassigned.
    pub(super) const OTHER: Class = Class(1 << 0);
    /// `\s` apart from CR and LF.
    pub(super) const SPACE: Class = Class(1 << 1);
    /// CR and LF.
    pub(super) const NEWLINE: Class = Class(1 << 2);
    /// `\p{Lu}` and `\p{Lt}`.
    pub(super) const UPPER: Class = Class(1 << 3);
    /// `\p{Ll}`.
    pub(super) const LOWER: Class = Class(1 << 4);
    /// `\p{Lm}` and `\p{Lo}` outside Han.
    pub(super) const CASELESS: Class = Class(1 << 5);
    /// `\p{M}` outside Han.
    pub(super) const MARK: Class = Class(1 << 6);
    /// `\p{N}` outside Han.
    pub(super) const NUMBER: Class = Class(1 << 7);
    /// `\p{Han}` and `\p{L}`.
    pub(super) const HAN_LETTER: Class = Class(1 << 8);
    /// `\p{Han}` and `\p{N}`.
    pub(super) const HAN_NUMBER: Class = Class(1 << 9);
    /// `\p{Han}`, neither letter nor number.
    pub(super) const HAN_OTHER: Class = Class(1 << 10);
    /// Not a code point: the end of the text. In no set.
    pub(super) const END: Class = Class(0);
}

/// A set of classes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Set(u16);

impl Set {
    /// `\p{Han}`
    pub(super) const HAN: Set = Set::of(&[Class::HAN_LETTER, Class::HAN_NUMBER, Class::HAN_OTHER]);
    /// `[^\r\n\p{L}\p{N}]`: what may stand before a word and belong to it.
    pub(super) const LEADING: Set = Set::of(&[Class::OTHER, Class::SPACE, Class::MARK, Class::HAN_OTHER]);
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
            bits |= classes[i].0;
            i += 1;
        }
        Set(bits)
    }

    /// Whether `class` is in the set.
    #[inline]
    pub(super) const fn has(self, class: Class) -> bool {
        self.0 & class.0 != 0
    }
}

/// The class of a code point.
#[inline]
pub(super) const fn class_of(point: u32) -> Class {
    let block = BLOCK_OF[(point >> 7) as usize] as usize;
    let word = BLOCKS[block * 8 + (point >> 4 & 7) as usize];
    Class(1 << (word >> (4 * (point & 15)) & 15))
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
#[inline(always)]
pub(super) fn step(text: &str, at: usize) -> (Class, usize) {
    match text.as_bytes().get(at) {
        None => (Class::END, at),
        Some(&first) if first < 0x80 => (ASCII[usize::from(first)], at + 1),
        Some(_) => {
            let (point, next) = step_point(text, at);
            (class_of(point), next)
        }
    }
}

/// The code point of two to four bytes that begins at byte `at` of `text`, and where the next one begins. The form is
/// known to be good, for `text` is a `str`.
#[inline]
pub(super) fn step_point(text: &str, at: usize) -> (u32, usize) {
    let bytes = &text.as_bytes()[at..];
    let inner = |i: usize| u32::from(bytes[i] & 0x3F);
    let first = u32::from(bytes[0]);
    match first {
        0..0xE0 => ((first & 0x1F) << 6 | inner(1), at + 2),
        0xE0..0xF0 => ((first & 0x0F) << 12 | inner(1) << 6 | inner(2), at + 3),
        _ => ((first & 0x07) << 18 | inner(1) << 12 | inner(2) << 6 | inner(3), at + 4),
    }
}
