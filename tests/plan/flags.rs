//! Which flags count.

use clap::Parser;
use k3_host::args::EngineArgs;
use k3_host::plan::{Budget, Wishes};

use super::GB;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    engine: EngineArgs,
}

fn budget(line: &str) -> Budget {
    let words = std::iter::once("test").chain(line.split_whitespace());
    Budget::of(&Flags::try_parse_from(words).unwrap().engine.memory)
}

#[test]
fn the_last_budget_counts() {
    let cases = [
        ("", None),
        ("--ram 16", Some(16 * GB)),
        ("--preset laptop", Some(8 * GB)),
        ("--preset laptop --ram 16", Some(16 * GB)),
        ("--ram 16 --preset laptop", Some(8 * GB)),
        ("--ram 1 --preset max --ram 500MB", Some(GB / 2)),
        ("--ram 1 --ram 2", Some(2 * GB)),
        ("--preset max --preset ultra", Some(2 * GB)),
        ("--ram 16 --preset auto", None),
    ];
    for (line, expected) in cases {
        assert_eq!(budget(line).total.map(|total| total.bytes), expected, "{line}");
    }
}

#[test]
fn wishes_for_parts_stand_beside_a_budget() {
    for line in ["--trunk-gb 10 --preset laptop", "--preset laptop --trunk-gb 5 --trunk-gb 10"] {
        let Budget { total, wishes } = budget(line);
        assert_eq!(total.unwrap().flag, "--preset laptop");
        assert_eq!(wishes, Wishes { trunk: Some(10 * GB), cache: None, packed: false, guesses: None });
    }
    assert_eq!(
        budget("--cache-gb 1.5GiB --cache-gb 0").wishes,
        Wishes { trunk: None, cache: Some(0), packed: false, guesses: None }
    );
}

#[test]
fn what_is_no_size_is_refused() {
    for line in ["--ram -1", "--ram many", "--trunk-gb 1e9", "--cache-gb", "--preset huge"] {
        let words = std::iter::once("test").chain(line.split_whitespace());
        assert!(Flags::try_parse_from(words).is_err(), "{line}");
    }
}
