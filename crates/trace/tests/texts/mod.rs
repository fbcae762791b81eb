//! Texts for property tests. The tests of other crates include this file.

use proptest::prelude::*;

/// Texts in which every rule of the normaliser and every kind of breaker occurs.
pub fn nasty_text() -> impl Strategy<Value = String> {
    let nasty = prop::sample::select(
        "aAbB1 \t\n'.:^_-[]()!Σσςο\u{301}\u{345}\u{200d}\u{200b}\u{ad}\u{feff}\u{fffd}中国\u{f900}\u{20000}가힣İß👩\u{1f3fd}\u{302e}\u{1d16d}\u{0}\u{b}\u{a0}\u{3000}،۔ا\u{64b}"
            .chars()
            .collect::<Vec<_>>(),
    );
    let piece = prop_oneof![
        8 => nasty.prop_map(String::from),
        1 => prop::sample::select(vec!["[MASK]", "[SEP]", "[CLS]", "[MASK", "hello", "HELLO"]).prop_map(String::from),
        1 => any::<char>().prop_map(String::from),
        1 => (1usize..120).prop_map(|n| "a".repeat(n)),
    ];
    prop::collection::vec(piece, 0..60).prop_map(|pieces| pieces.concat())
}
