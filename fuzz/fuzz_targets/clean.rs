//! Any text around a secret: whatever stands before and after its line, the secret goes, and findings are told in their order.

#![no_main]

use knowledgepulse_clean::{CleanOptions, Cleaner, Identities};
use knowledgepulse_share::clean_plain_text;
use libfuzzer_sys::fuzz_target;

const SECRET: &str = "ghp_0123456789abcdefABCDEF0123456789abcd";

fuzz_target!(|text: &str| {
    let middle = (text.len() / 2..).find(|at| text.is_char_boundary(*at));
    let (before, after) = text.split_at(middle.unwrap_or_default());
    let text = format!("{before}\n{SECRET}\n{after}");
    for identifiers in [false, true] {
        let mut cleaner = Cleaner::new(CleanOptions {
            identifiers,
            strict: true,
        });
        let mut identities = Identities::default();
        identities.learn_text(&text);
        identities.finish();
        cleaner.set_identities(identities);
        let clean = clean_plain_text(&mut cleaner, &text);
        assert!(!clean.text.contains(SECRET), "{}", clean.text);
        assert!(
            clean
                .found
                .iter()
                .any(|(_, finding)| finding.excerpt.starts_with("ghp_"))
        );
        assert!(
            clean
                .found
                .is_sorted_by_key(|(lines, finding)| (*lines, finding.start))
        );
    }
});
