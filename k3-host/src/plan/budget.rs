//! What the user allows: a budget for all memory, and wishes for parts of it.

use std::fmt;
use std::str::FromStr;

use bytesize::ByteSize;
use clap::ValueEnum;

use super::split::Wishes;
use crate::args::MemoryArgs;

/// Budgets that have names. The machine should have a third more available than a budget.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Preset {
    /// 2 GB: a virtual machine or a single-board computer
    Ultra,
    /// 8 GB
    Laptop,
    /// 32 GB
    Desktop,
    /// 96 GB
    Workstation,
    /// 128 GB: holds all of the released trunk
    Server,
    /// 224 GB
    Max,
    /// What is safe: three quarters of what is available
    Auto,
}

impl Preset {
    /// The budget in bytes; `None` for the one that looks at the machine.
    #[must_use]
    pub fn bytes(self) -> Option<u64> {
        let gigabytes = match self {
            Self::Ultra => 2,
            Self::Laptop => 8,
            Self::Desktop => 32,
            Self::Workstation => 96,
            Self::Server => 128,
            Self::Max => 224,
            Self::Auto => return None,
        };
        Some(gigabytes * 1_000_000_000)
    }

    /// Those of fixed size, the smallest first.
    pub fn fixed() -> impl DoubleEndedIterator<Item = (Self, u64)> {
        let presets = Self::value_variants().iter();
        presets.filter_map(|preset| Some((*preset, preset.bytes()?))).collect::<Vec<_>>().into_iter()
    }
}

impl fmt::Display for Preset {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.to_possible_value().map_or(Ok(()), |value| formatter.write_str(value.get_name()))
    }
}

/// What the user allows.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Budget {
    /// For all memory of the process; `None` leaves it to what is safe.
    pub total: Option<Total>,
    /// For parts of it.
    pub wishes: Wishes,
}

/// A budget for all memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Total {
    /// How much.
    pub bytes: u64,
    /// The flag that said so, as the user might have typed it.
    pub flag: String,
}

impl Budget {
    /// The budget that the arguments name.
    #[must_use]
    pub fn of(args: &MemoryArgs) -> Self {
        let ram = args.ram.map(|bytes| Total { bytes, flag: format!("--ram {}", ByteSize(bytes).display().si()) });
        let preset =
            args.preset.and_then(|preset| Some(Total { bytes: preset.bytes()?, flag: format!("--preset {preset}") }));
        Self {
            total: ram.or(preset),
            wishes: Wishes {
                trunk: args.trunk_gb,
                cache: args.cache_gb,
                packed: args.trunk.is_some(),
                guesses: args.look_ahead.map(usize::from),
            },
        }
    }
}

/// Reads a size: a plain number counts GB of 10⁹ bytes, a number with a unit counts that, as in `500MB` or `1.5GiB`.
///
/// # Errors
/// If it is neither.
pub fn parse_size(text: &str) -> Result<u64, String> {
    let refuse = || format!("{text:?} is not a size such as 16, 500MB or 1.5GiB");
    let is_plain = text.chars().all(|character| character.is_ascii_digit() || character == '.');
    let with_unit = if is_plain { format!("{text}GB") } else { text.to_string() };
    let has_digit = text.starts_with(|character: char| character.is_ascii_digit());
    if !has_digit {
        return Err(refuse());
    }
    ByteSize::from_str(&with_unit).map(|size| size.as_u64()).map_err(|_| refuse())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_gigabytes_unless_said_otherwise() {
        let cases = [
            ("16", 16_000_000_000),
            ("0", 0),
            ("1.5", 1_500_000_000),
            ("500MB", 500_000_000),
            ("2gb", 2_000_000_000),
            ("1.5GiB", 1_610_612_736),
            ("7 GB", 7_000_000_000),
            ("1TB", 1_000_000_000_000),
        ];
        for (text, bytes) in cases {
            assert_eq!(parse_size(text), Ok(bytes), "{text}");
        }
        for text in ["", "-1", "GB", "1.5.2", "inf", "NaN", "1e3", "7 bananas", ".", "-1GB"] {
            assert!(parse_size(text).is_err(), "{text}");
        }
    }

    #[test]
    fn a_size_too_large_for_any_machine_is_not_a_small_one() {
        for text in ["99999999999", "18446744073709551616GB"] {
            assert!(parse_size(text).is_err_or_max(), "{text}: {:?}", parse_size(text));
        }
    }

    trait ErrOrMax {
        fn is_err_or_max(&self) -> bool;
    }

    impl ErrOrMax for Result<u64, String> {
        fn is_err_or_max(&self) -> bool {
            self.as_ref().map_or(true, |bytes| *bytes == u64::MAX)
        }
    }
}
