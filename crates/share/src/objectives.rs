//! Objectives as a list of sessions has them.

use knowledgepulse_json::Text;
use knowledgepulse_trace::words::is_in_word;
use unicode_width::UnicodeWidthStr;

/// The room for an objective where nothing else decides it, in columns of a terminal.
pub const USUAL_ROOM: usize = 60;

/// The fewest objectives, and the shortest beginning in characters, that are cut: a few common words still say what a session is about.
const LEAST_ALIKE: usize = 3;
const LEAST_BEGINNING: usize = 20;

/// Returns the objectives of a list so that they tell its sessions apart: `…` stands for a beginning that at least half of them, and at
/// least three, share to the end of a word, if one of them does not fit in the room, in columns of a terminal. An objective that is
/// nothing more stays whole.
#[must_use]
pub fn told_apart(objectives: &[impl AsRef<str>], room: usize) -> Vec<Text> {
    let objectives = || objectives.iter().map(AsRef::as_ref);
    let pieces: Vec<_> = objectives().map(pieces_of).collect();
    let mut sorted: Vec<&[&str]> = pieces.iter().map(Vec::as_slice).collect();
    sorted.sort_unstable();
    let least = pieces.len().div_ceil(2).max(LEAST_ALIKE);
    // What the first and the last of sorted objectives share, all between them share.
    let shared = sorted.windows(least).map(|alike| {
        let both = alike[0].iter().zip(alike[least - 1]);
        &alike[0][..both.take_while(|(one, other)| one == other).count()]
    });
    let is_long = |shared: &&[&str]| shared.concat().trim().chars().count() >= LEAST_BEGINNING;
    let mut beginnings: Vec<_> = shared.filter(is_long).collect();
    beginnings.dedup();
    let is_wide = |objective: &str| objective.width() > room;
    beginnings.retain(|shared| {
        let mut both = objectives().zip(&pieces);
        both.any(|(objective, pieces)| pieces.starts_with(shared) && is_wide(objective))
    });
    let has_words = |rest: &&[&str]| rest.iter().any(|piece| piece.contains(char::is_alphanumeric));
    let shown = objectives().zip(&pieces).map(|(objective, pieces)| {
        let rests = beginnings
            .iter()
            .filter_map(|shared| pieces.strip_prefix(*shared));
        let rest = rests.filter(has_words).min_by_key(|rest| rest.len());
        rest.map_or_else(
            || objective.into(),
            |rest| format!("… {}", rest.concat().trim_start()).into(),
        )
    });
    shown.collect()
}

/// Returns the words of a text and the characters between them.
fn pieces_of(text: &str) -> Vec<&str> {
    // An apostrophe and the joiners of Persian and Indic scripts stand within words.
    let is_inner = |c: char| is_in_word(c) || matches!(c, '\'' | '’' | '\u{200c}' | '\u{200d}');
    let characters: Vec<_> = text.char_indices().collect();
    let pieces = characters.chunk_by(|(_, one), (_, next)| is_inner(*one) && is_inner(*next));
    let pieces = pieces.filter_map(|piece| {
        let ((start, _), (end, last)) = (piece.first()?, piece.last()?);
        text.get(*start..end + last.len_utf8())
    });
    pieces.collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const ISSUE: &str = "We're currently solving the following issue:\n";

    #[test]
    fn told_apart_cuts_a_beginning_that_half_of_three_or_more_share() {
        let [one, two, three] = ["Café", "cafe 'x'", "…"].map(|rest| format!("{ISSUE}{rest}"));
        assert_eq!(
            told_apart(&[&one, &two, &one, "Sort the list", "Draw a map", &two], 0),
            [
                "… Café",
                "… cafe 'x'",
                "… Café",
                "Sort the list",
                "Draw a map",
                "… cafe 'x'"
            ]
        );
        // Two, fewer than half, and too few characters.
        let others = [&*one, &two, &one, "a", "b", "c", "d"];
        let short = [
            "Fix the failing one",
            "Fix the failing two",
            "Fix the failing six",
        ];
        for whole in [
            &[&*one, &two][..],
            &[&*one, &two, "Sort the list"],
            &others,
            &short,
        ] {
            assert_eq!(told_apart(whole, 0), whole);
        }
        // Nothing but the beginning.
        assert_eq!(
            told_apart(&[&one, ISSUE, &three, &two], 0),
            ["… Café", ISSUE, &three, "… cafe 'x'"]
        );
        assert_eq!(told_apart(&[&*one; 4], 0), [&*one; 4]);
        // All of each fits, and not all of one.
        let alike = [&*one, &two, &one];
        assert_eq!(told_apart(&alike, 53), alike);
        assert_eq!(told_apart(&alike, 52), ["… Café", "… cafe 'x'", "… Café"]);
    }

    #[test]
    fn told_apart_cuts_at_the_end_of_a_word_of_any_script() {
        for (beginning, rests) in [
            ("Fix the tests of the module ", ["parse", "parser", "parsing"]),
            ("Look why the server of mine ", ["don't", "don", "done"]),
            (
                "Corrige le défaut du module ",
                ["été", "étage", "e\u{301}te\u{301}"],
            ),
            (
                "请修复我们正在处理的仓库里的以下这一个问题：",
                ["登录失败", "登录超时", "登录"],
            ),
            (
                "이 저장소에서 다음 문제를 해결해 주세요: ",
                ["로그인", "로그", "로그아웃"],
            ),
            ("कृपया इस भंडार की यह समस्या ठीक करें: ", ["कि", "की", "क्या"]),
        ] {
            let objectives = rests.map(|rest| format!("{beginning}{rest}"));
            let objectives: Vec<&str> = objectives.iter().map(String::as_str).collect();
            assert_eq!(told_apart(&objectives, 0), rests.map(|rest| format!("… {rest}")));
        }
    }

    proptest! {
        #[test]
        fn told_apart_shows_an_end_of_each_objective(
            objectives in prop::collection::vec("(the same beginning of all )?[a-c é語\u{301}'.]{0,9}", 0..9),
        ) {
            let objectives: Vec<&str> = objectives.iter().map(String::as_str).collect();
            let shown = told_apart(&objectives, 0);
            prop_assert_eq!(shown.len(), objectives.len());
            for (shown, whole) in shown.iter().zip(objectives) {
                let rest = shown.strip_prefix("… ");
                prop_assert!(rest.map_or(shown == whole, |rest| whole.ends_with(rest) && !rest.is_empty()));
            }
        }
    }
}
