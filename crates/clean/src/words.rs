//! Lists of words.

use std::sync::OnceLock;

/// No list has longer words.
const MOST_LETTERS: usize = 16;

/// A list of words in small letters, which are compared as numbers.
pub(super) struct Words {
    text: &'static str,
    /// In order.
    numbers: OnceLock<Vec<u128>>,
}

impl Words {
    /// Creates the list of the words of a text.
    pub(super) const fn new(text: &'static str) -> Self {
        let numbers = OnceLock::new();
        Self { text, numbers }
    }

    /// Returns the words.
    pub(super) fn iter(&self) -> impl Iterator<Item = &'static str> {
        self.text.split_ascii_whitespace()
    }

    /// Returns whether a word is in the list, in any case.
    pub(super) fn has(&self, word: &[u8]) -> bool {
        let numbers = self.numbers.get_or_init(|| {
            let mut numbers: Vec<_> = self.iter().map(|word| number(word.as_bytes())).collect();
            numbers.sort_unstable();
            numbers
        });
        // A number does not tell a word from one with zeros behind it.
        let is_possible = word.len() <= MOST_LETTERS && !word.ends_with(&[0]);
        is_possible && numbers.binary_search(&number(word)).is_ok()
    }
}

/// Returns the number of a word of at most [`MOST_LETTERS`], the same in any case.
fn number(word: &[u8]) -> u128 {
    let mut letters = [0; MOST_LETTERS];
    letters[..word.len()].copy_from_slice(word);
    letters.make_ascii_lowercase();
    u128::from_le_bytes(letters)
}

/// Accounts, folders and machines that are the same everywhere, and words that stand for a name in examples.
pub(crate) static NOBODY: Words = Words::new(
    "root corp app ubuntu debian node admin administrator user users username home homes runner runneradmin vscode codespace \
     gitpod vagrant docker circleci travis vsts jenkins jovyan coder ec2-user azureuser opc ansible deploy git github \
     gitlab www-data nobody daemon postgres mysql redis nginx guest public default agent sandbox openhands linuxbrew \
     work workspace workspaces testbed project projects repo repos src code build builder test tests tester testuser name \
     yourname your you me myuser someone somebody anonymous localhost localdomain local host hostname server container \
     desktop laptop machine dev prod staging actions bot noreply no-reply info support contact hello mail team service \
     services system staff wheel sudo bin lib opt tmp var usr etc srv mnt claude codex cursor copilot gemini anthropic \
     openai datasets dataset models checkpoints cache shared share downloads documents example sample demo appuser \
     swe-agent sweagent kasm-user adm apache developer everyone games httpd man nogroup none sys redacted reviewer pull request nonroot daytona all personal jwt oauth2 kubernetes minikube param params returns \
     throws anybody nixbld dependabot renovate",
);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_has_its_words_whole_and_in_any_case() {
        static WORDS: Words = Words::new("token aws4-hmac-sha256 b");
        for word in ["token", "ToKeN", "aws4-hmac-sha256", "B"] {
            assert!(WORDS.has(word.as_bytes()), "{word}");
        }
        for word in ["", "toke", "tokens", "aws4-hmac-sha2567", "a", "b\0"] {
            assert!(!WORDS.has(word.as_bytes()), "{word}");
        }
    }
}
