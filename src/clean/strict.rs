//! What the SDK's expressions miss: keys of more providers, private keys, JSON Web Tokens, webhooks, secrets under quoted
//! names, card numbers and IPv6 addresses.
//!
//! Which prefixes, alphabets and lengths keys have is taken from the rules of gitleaks 8.30.1 (MIT licence,
//! <https://github.com/gitleaks/gitleaks>, `config/gitleaks.toml`); the expressions are our own. They differ on purpose: gitleaks reports a key
//! only if it is exactly as long as such keys are, while here a longer one is replaced to its end, because what is left of a
//! secret is still one. It has no rules for Groq, xAI, Replicate, OpenRouter, secrets of Stripe's webhooks, Google's OAuth, what is
//! assigned to names of Azure, and Discord's webhooks: these have the prefixes that the providers give them, and lengths that
//! are our lower bounds. Card numbers have the lengths and first digits that ISO/IEC 7812 gives the networks.

use std::{net::Ipv6Addr, ops::Range, str, sync::LazyLock};

use regex::bytes::Regex;

use super::{
    kinds::{Ranges, expression, skip, stands_alone, value_of},
    text::{is_white_space, is_word},
};

/// Expressions of keys that are told by themselves, most of them by a prefix. Each stands at a word boundary.
const PROVIDER_KEYS: &[&str] = &[
    // OpenAI, Anthropic, OpenRouter: the SDK stops at the second hyphen.
    r"sk-(?:proj|svcacct|admin|ant|or)-[A-Za-z0-9_-]{20,}",
    // GitHub: fine-grained, and the user and refresh tokens of apps.
    r"github_pat_[A-Za-z0-9_]{20,}",
    r"gh[ur]_[A-Za-z0-9]{36,}",
    // GitLab: personal, deploy, runner, trigger, feed, mail, agent, application and others.
    r"gl(?:pat|dt|rt|ptt|ft|imt|agent|oas|soat|cbt|ffct)-[A-Za-z0-9_.-]{20,}",
    // AWS: temporary and other access keys, and Bedrock.
    r"(?:ASIA|ABIA|ACCA|A3T[A-Z0-9])[A-Z2-7]{16}\b",
    r"ABSK[A-Za-z0-9+/]{40,}={0,2}",
    // Google: API keys, OAuth client secrets, access tokens.
    r"AIza[A-Za-z0-9_-]{35,}",
    r"GOCSPX-[A-Za-z0-9_-]{28,}",
    r"ya29\.[A-Za-z0-9_-]{20,}",
    // Azure: client secrets of Entra ID.
    r"[A-Za-z0-9_~.]{3}\dQ~[A-Za-z0-9_~.-]{31,}",
    // Stripe: keys, and secrets of webhooks.
    r"[sr]k_(?:test|live|prod)_[A-Za-z0-9]{10,}",
    r"whsec_[A-Za-z0-9+/]{24,}={0,2}",
    // Slack: app-level and refresh tokens.
    r"(?i:xapp|xoxe(?:\.xox[bp])?)-[A-Za-z0-9-]{10,}",
    // Package registries: npm, PyPI, RubyGems.
    r"npm_[A-Za-z0-9]{36,}",
    r"pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{50,}",
    r"rubygems_[a-f0-9]{48,}",
    // Models: Hugging Face, Groq, xAI, Perplexity, Replicate.
    r"(?:hf|api_org)_[A-Za-z]{34,}",
    r"gsk_[A-Za-z0-9]{40,}",
    r"xai-[A-Za-z0-9]{40,}",
    r"pplx-[A-Za-z0-9]{40,}",
    r"r8_[A-Za-z0-9]{37,}",
    // SendGrid, Twilio, DigitalOcean, Databricks.
    r"SG\.[A-Za-z0-9_-]{16,}\.[A-Za-z0-9_-]{16,}",
    r"SK[0-9a-fA-F]{32}\b",
    r"do[opr]_v1_[a-f0-9]{64}",
    r"dapi[a-f0-9]{32}(?:-\d)?",
    // HashiCorp Vault, Doppler, Shopify, Grafana, Sentry.
    r"hv[sb]\.[A-Za-z0-9_-]{24,}",
    r"dp\.(?:pt|st|ct|sa)\.[A-Za-z0-9_.-]{40,}",
    r"shp(?:at|ca|pa|ss)_[a-fA-F0-9]{32,}",
    r"glsa_[A-Za-z0-9]{32}_[A-Fa-f0-9]{8}",
    r"glc_[A-Za-z0-9+/]{32,}={0,3}",
    r"sntry[su]_[A-Za-z0-9+/=_]{40,}",
    // Linear, Notion, Postman, Atlassian, 1Password, age.
    r"lin_api_[A-Za-z0-9]{40,}",
    r"ntn_[A-Za-z0-9]{40,}",
    r"PMAK-[a-fA-F0-9]{24}-[a-fA-F0-9]{34}",
    r"ATATT3[A-Za-z0-9_=-]{40,}",
    r"ops_eyJ[A-Za-z0-9+/]{40,}={0,3}",
    r"AGE-SECRET-KEY-1[A-Z0-9]{58}",
    // Telegram's bots.
    r"\d{8,10}:AA[A-Za-z0-9_-]{33}\b",
];

/// Keys that are told by themselves.
pub(super) fn provider_keys(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> =
        LazyLock::new(|| expression(&format!(r"\b(?:{})", PROVIDER_KEYS.join("|"))));
    matches_of(&EXPRESSION, letters)
}

/// Keys that are told by what they are assigned to: an AWS secret access key, and keys and signatures of Azure.
pub(super) fn assigned_keys(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r#"(?i:secret[_-]?(?:access[_-]?)?key\\*["']?[\s\x80]*(?:=>|[=:])[\s\x80]*\\*["']?)([A-Za-z0-9/+]{40,})"#,
            r"|(?:AccountKey|SharedAccessKey)=([A-Za-z0-9+/]{40,}={0,2})",
            r"|[?&]sig=([A-Za-z0-9%+/_-]{40,}=?)",
        ))
    });
    groups_of(&EXPRESSION, letters)
}

/// The password in a URL, and the user and password of HTTP's basic authentication.
pub(super) fn credentials(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r#"://[^\s\x80/:@?#'"`<>\[\]]*:([^\s\x80/@'"`<>\[\]]+)@"#,
            r#"|(?i:authorization\\*["']?[\s\x80]*[=:][\s\x80]*\\*["']?basic[\s\x80]+)([A-Za-z0-9+/]{4,}={0,2})"#,
        ))
    });
    groups_of(&EXPRESSION, letters)
}

/// URLs that let whoever has them write to a channel: of Slack, Discord and Microsoft Teams.
pub(super) fn webhook_urls(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r"(?i:https?://)(?i:hooks\.slack\.com/(?:services|workflows|triggers)/[A-Za-z0-9+/_-]{20,}",
            r"|(?:[a-z]+\.)?discord(?:app)?\.com/api/(?:v\d+/)?webhooks/\d+/[A-Za-z0-9_-]{20,}",
            r"|[a-z0-9-]+\.webhook\.office\.com/webhookb2/[A-Za-z0-9@/_-]{20,})",
        ))
    });
    matches_of(&EXPRESSION, letters)
}

/// JSON Web Tokens: signed ones, whose signature may be empty, and encrypted ones, which have five parts. Their header begins
/// with `{"`, which is `eyJ` in Base64.
pub(super) fn json_web_tokens(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(concat!(
            r"\beyJ[A-Za-z0-9_-]{7,}",
            r"(?:\.[A-Za-z0-9_-]*(?:\.[A-Za-z0-9_-]+){3}|\.eyJ[A-Za-z0-9_-]+\.[A-Za-z0-9_-]*)",
        ))
    });
    matches_of(&EXPRESSION, letters)
}

/// Private keys in PEM and PGP's armour, from their first line to their last. Of one that is cut off, everything that can
/// belong to it.
pub(super) fn private_keys(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> =
        LazyLock::new(|| expression(r"-----(BEGIN|END)[ A-Z0-9_-]{0,100}PRIVATE KEY(?: BLOCK)?-----"));
    // Base64 and its line breaks, also as they stand in a JSON string.
    let of_body = |letter| {
        is_white_space(letter)
            || letter.is_ascii_alphanumeric()
            || matches!(letter, b'+' | b'/' | b'=' | b'\\')
    };
    let mut ranges = Ranges::new();
    let mut begun: Option<Range<usize>> = None;
    let cut_off = |begun: Range<usize>| begun.start..skip(letters, begun.end, of_body);
    for found in EXPRESSION.find_iter(letters) {
        if letters[found.start()..].starts_with(b"-----BEGIN") {
            ranges.extend(begun.replace(found.range()).map(cut_off));
        } else if let Some(begun) = begun.take() {
            ranges.push(begun.start..found.end());
        }
    }
    ranges.extend(begun.map(cut_off));
    ranges
}

/// The last words of names under which a value without quotes is a secret too.
const ASSIGNED_NAME: &str = concat!(
    r"(?i:passw(?:or)?d|passphrase|pwd|secret|token",
    r"|(?:api|access|secret|private|signing|encryption|account)[_-]?key|api[_-]?secret)"
);

/// The last words of names under which secrets are kept: strings in quotes, and properties.
fn secret_name() -> String {
    format!("(?:{ASSIGNED_NAME}|(?i:authorization|credentials?))")
}

/// Values of names without quotes, as in `DB_PASSWORD=…`: what the SDK takes for a password, under any name of a secret; and all the rest
/// of a line that begins with one, as those of a call do, `api-key: …`. Not of `authorization`, which has a scheme before its secret that
/// other kinds find, nor of `credentials`, which are an option of `fetch`.
pub(super) fn assigned_names(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(&format!(
            r#"(?m:^)[\w.-]*{ASSIGNED_NAME}: [^\s\x80][^\r\n]+|{ASSIGNED_NAME}[ \t\x80]*[=:][ \t\x80]*(?:\\*"[^"\r\n]*"|\\*'[^'\r\n]*'|[^\s\x80'"`,;)}}\[\]]{{2,}})"#
        ))
    });
    EXPRESSION
        .find_iter(letters)
        .map(|found| value_of(letters, found.range()))
        .filter(|value| !is_marked(letters, value))
        .collect()
}

/// Whether a value is a marker already, perhaps in quotes.
fn is_marked(letters: &[u8], value: &Range<usize>) -> bool {
    let start = skip(letters, value.start, |letter| {
        matches!(letter, b'\\' | b'"' | b'\'')
    });
    letters[start..].starts_with(b"[REDACTED:")
}

/// Whether what stands under this name is a secret: `password`, `db_password`, `GITHUB_TOKEN`, `apiKey`.
#[must_use]
pub fn is_secret_name(name: &str) -> bool {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| expression(&format!("{}$", secret_name())));
    EXPRESSION.is_match(name.as_bytes())
}

/// Strings under quoted names, as in JSON: `"password": "…"`, also within a JSON string, where `\"` stands for a quote.
pub(super) fn quoted_names(letters: &[u8]) -> Ranges {
    static EXPRESSION: LazyLock<Regex> = LazyLock::new(|| {
        expression(&format!(
            r#"{}\\*["'][\s\x80]*[=:][\s\x80]*(\\*["'])"#,
            secret_name()
        ))
    });
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(found) = EXPRESSION.captures_at(letters, from) {
        let Some(opening) = found.get(1) else { break };
        let value = opening.end()..closing_quote(letters, opening.range());
        from = value.end;
        if !value.is_empty() && !is_marked(letters, &value) {
            ranges.push(value);
        }
    }
    ranges
}

/// Where a string ends which has begun with these backslashes and a quote: before its closing quote with its backslashes, or where
/// the line does, if that is cut off.
///
/// A string at depth `d` of JSON in JSON is quoted by `2^d - 1` backslashes and a quote, and each quote or backslash in it has
/// a multiple of `2^(d + 1)` more.
fn closing_quote(letters: &[u8], opening: Range<usize>) -> usize {
    let quote = letters[opening.end - 1];
    let before = opening.len() - 1;
    let mut backslashes = 0;
    for (index, letter) in letters.iter().enumerate().skip(opening.end) {
        match *letter {
            b'\\' => backslashes += 1,
            b'\n' | b'\r' => return index,
            letter if letter == quote && backslashes % (2 * (before + 1)) == before => return index - before,
            _ => backslashes = 0,
        }
    }
    letters.len()
}

/// Numbers of payment cards: as long as their network makes them, in one piece or in groups with a space or a hyphen between
/// them, with a valid check digit.
pub(super) fn card_numbers(letters: &[u8]) -> Ranges {
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(start) = letters.iter().skip(from).position(u8::is_ascii_digit) {
        let start = from + start;
        from = match card_at(letters, start) {
            Some(range) => {
                ranges.push(range.clone());
                range.end
            }
            None => skip(letters, start, |letter| letter.is_ascii_digit()),
        };
    }
    ranges
}

const MOST_CARD_DIGITS: usize = 19;

/// The longest card number that begins with the group of digits at `start`.
fn card_at(letters: &[u8], start: usize) -> Option<Range<usize>> {
    // Part of a word, or of the fraction of a number.
    let before = letters[..start].last().copied().unwrap_or(b' ');
    if is_word(before) || before == b'.' {
        return None;
    }
    let mut digits: Vec<u8> = Vec::with_capacity(MOST_CARD_DIGITS);
    let mut longest = None;
    let mut index = start;
    while let Some(letter) = letters.get(index) {
        if !letter.is_ascii_digit() || digits.len() == MOST_CARD_DIGITS {
            break;
        }
        digits.push(letter - b'0');
        index += 1;
        let next = letters.get(index).copied().unwrap_or(b' ');
        if !is_word(next) && is_card(&digits) {
            longest = Some(start..index);
        }
        let follows_digit = letters.get(index + 1).is_some_and(u8::is_ascii_digit);
        if matches!(next, b' ' | b'-') && follows_digit {
            index += 1;
        }
    }
    longest
}

fn is_card(digits: &[u8]) -> bool {
    if !(13..=MOST_CARD_DIGITS).contains(&digits.len()) {
        return false;
    }
    let first = digits[..4]
        .iter()
        .fold(0, |number: u32, digit| number * 10 + u32::from(*digit));
    let lengths = match first {
        // Visa
        4000..=4999 => 13..=19,
        // Mastercard
        5100..=5599 | 2221..=2720 => 16..=16,
        // American Express
        3400..=3499 | 3700..=3799 => 15..=15,
        // Diners Club
        3000..=3059 | 3095 | 3600..=3699 | 3800..=3999 => 14..=19,
        // Discover, UnionPay, Maestro
        6000..=6999 => 13..=19,
        // JCB
        3528..=3589 => 16..=19,
        _ => return false,
    };
    lengths.contains(&digits.len()) && has_luhn_check_digit(digits)
}

/// The formula of Luhn, ISO/IEC 7812-1, annex B.
fn has_luhn_check_digit(digits: &[u8]) -> bool {
    let doubled = |digit: u8| if digit > 4 { 2 * digit - 9 } else { 2 * digit };
    let sum: u32 = digits
        .iter()
        .rev()
        .enumerate()
        .map(|(index, digit)| u32::from(if index % 2 == 1 { doubled(*digit) } else { *digit }))
        .sum();
    sum.is_multiple_of(10)
}

/// The longest text of an IPv6 address: `ffff:ffff:ffff:ffff:ffff:ffff:255.255.255.255`.
const MOST_IPV6_LETTERS: usize = 45;

/// IPv6 addresses. One needs a digit or more than two groups, because `a::b` and `Add::Ad` are names in programs; `::` says nothing.
pub(super) fn ipv6_addresses(letters: &[u8]) -> Ranges {
    let of_address = |letter: u8| letter.is_ascii_hexdigit() || matches!(letter, b':' | b'.');
    let mut ranges = Ranges::new();
    let mut from = 0;
    while let Some(colon) = letters.iter().skip(from).position(|letter| *letter == b':') {
        let colon = from + colon;
        let before = letters[from..colon].iter().rev();
        let start = colon - before.take_while(|letter| of_address(**letter)).count();
        let run_end = skip(letters, colon, of_address);
        from = run_end;
        let mut range = start..run_end;
        // What ends a sentence.
        while letters[range.clone()].ends_with(b".")
            || (letters[range.clone()].ends_with(b":") && !letters[range.clone()].ends_with(b"::"))
        {
            range.end -= 1;
        }
        if stands_alone(letters, &(start..run_end)) && is_ipv6_address(&letters[range.clone()]) {
            ranges.push(range);
        }
    }
    ranges
}

fn is_ipv6_address(letters: &[u8]) -> bool {
    let says_something = letters.iter().any(u8::is_ascii_digit)
        || letters.iter().filter(|letter| **letter == b':').count() > 3;
    let text = str::from_utf8(letters).unwrap_or_default();
    letters.len() <= MOST_IPV6_LETTERS && says_something && text.parse::<Ipv6Addr>().is_ok()
}

fn matches_of(expression: &Regex, letters: &[u8]) -> Ranges {
    expression.find_iter(letters).map(|found| found.range()).collect()
}

/// In each match, the group of the alternative that has matched.
fn groups_of(expression: &Regex, letters: &[u8]) -> Ranges {
    expression
        .captures_iter(letters)
        .filter_map(|found| found.iter().skip(1).flatten().next())
        .map(|group| group.range())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::{Options, tests::cleaned};
    use super::*;

    const STRICT: Options = Options {
        identifiers: true,
        strict: true,
    };

    /// `count` letters of an alphabet in turn. Keys are put together here, so that nobody takes them for real ones.
    fn some(alphabet: &str, count: usize) -> String {
        alphabet.chars().cycle().take(count).collect()
    }

    fn mixed(count: usize) -> String {
        some("aB3dE5fG7h", count)
    }

    fn hex(count: usize) -> String {
        some("0a1b2c3d4e5f", count)
    }

    /// For each expression of [`PROVIDER_KEYS`] what it finds, and what resembles that.
    fn provider_samples() -> Vec<(String, String)> {
        let (mixed, hex) = (mixed as fn(usize) -> String, hex as fn(usize) -> String);
        let of = |prefix: &str, rest: fn(usize) -> String, count: usize| {
            (
                format!("{prefix}{}", rest(count)),
                format!("{prefix}{}", rest(count - 1)),
            )
        };
        vec![
            of("sk-proj-", mixed, 20),
            of("github_pat_", mixed, 20),
            of("ghu_", mixed, 36),
            of("glpat-", mixed, 20),
            of("ASIA", |count| some("ABCD2345", count), 16),
            of("ABSK", mixed, 40),
            of("AIza", mixed, 35),
            of("GOCSPX-", mixed, 28),
            of("ya29.", mixed, 20),
            of("aB38Q~", mixed, 31),
            of("sk_live_", mixed, 10),
            of("whsec_", mixed, 24),
            of("xapp-", mixed, 10),
            of("npm_", mixed, 36),
            of("pypi-AgEIcHlwaS5vcmc", mixed, 50),
            of("rubygems_", hex, 48),
            of("hf_", |count| some("aBcDeF", count), 34),
            of("gsk_", mixed, 40),
            of("xai-", mixed, 40),
            of("pplx-", mixed, 40),
            of("r8_", mixed, 37),
            of(&format!("SG.{}.", mixed(16)), mixed, 16),
            of("SK", hex, 32),
            of("dop_v1_", hex, 64),
            of("dapi", hex, 32),
            of("hvs.", mixed, 24),
            of("dp.pt.", mixed, 40),
            of("shpat_", hex, 32),
            of(&format!("glsa_{}_", mixed(32)), hex, 8),
            of("glc_", mixed, 32),
            of("sntrys_", mixed, 40),
            of("lin_api_", mixed, 40),
            of("ntn_", mixed, 40),
            of(&format!("PMAK-{}-", hex(24)), hex, 34),
            of("ATATT3", mixed, 40),
            of("ops_eyJ", mixed, 40),
            of("AGE-SECRET-KEY-1", |count| some("QPZRY9X8", count), 58),
            of("12345678:AA", mixed, 33),
        ]
    }

    #[test]
    fn each_provider_has_a_key_and_what_resembles_one() {
        let samples = provider_samples();
        assert_eq!(samples.len(), PROVIDER_KEYS.len());
        for (pattern, (key, other)) in PROVIDER_KEYS.iter().zip(samples) {
            let found = expression(pattern)
                .find(key.as_bytes())
                .map(|found| found.range());
            assert_eq!(found, Some(0..key.len()), "{pattern} on {key}");
            assert_eq!(
                cleaned(&format!("({key})"), STRICT),
                "([REDACTED:api_key])",
                "{key}"
            );
            assert_eq!(cleaned(&other, STRICT), other, "{pattern} on {other}");
            // At a word boundary only.
            let within = format!("x{key}");
            assert!(
                !provider_keys(within.as_bytes()).contains(&(1..within.len())),
                "{within}"
            );
        }
    }

    #[test]
    fn keys_that_are_longer_go_whole() {
        for prefix in ["sk-ant-api03-", "sk-proj-", "github_pat_", "npm_"] {
            assert_eq!(
                cleaned(&format!("{prefix}{}", mixed(200)), STRICT),
                "[REDACTED:api_key]"
            );
        }
    }

    /// What is found, what the text becomes, and a text that resembles it.
    #[test]
    fn each_kind_has_texts_that_it_finds_and_texts_that_it_leaves() {
        let (key, jwt) = (mixed(40), format!("eyJ{}.eyJ{}", mixed(20), mixed(30)));
        let pem = format!("-----BEGIN RSA PRIVATE KEY-----\n{}\n", mixed(64));
        let found = [
            (format!("{jwt}.{}.", mixed(43)), "[REDACTED:jwt]."),
            (format!("{jwt}. "), "[REDACTED:jwt] "),
            (format!("eyJ{}..{key}.{key}.{key}", mixed(20)), "[REDACTED:jwt]"),
            (format!("{pem}-----END RSA PRIVATE KEY----- x"), "[REDACTED:private_key] x"),
            (format!("{pem}-----BEGIN CERTIFICATE-----"), "[REDACTED:private_key]-----BEGIN CERTIFICATE-----"),
            (format!("{pem}{pem}-----END RSA PRIVATE KEY-----"), "[REDACTED:private_key][REDACTED:private_key]"),
            (
                "-----BEGIN PGP PRIVATE KEY BLOCK-----\nVersion: 1\n\nabc=\n-----END PGP PRIVATE KEY BLOCK-----".into(),
                "[REDACTED:private_key]",
            ),
            (format!("https://hooks.slack.com/services/T0/B0/{key}."), "[REDACTED:webhook_url]."),
            (format!("https://discord.com/api/webhooks/123/{key}"), "[REDACTED:webhook_url]"),
            (format!("https://x.webhook.office.com/webhookb2/{key}"), "[REDACTED:webhook_url]"),
            (format!("AWS_SECRET_ACCESS_KEY={key}"), "AWS_SECRET_ACCESS_KEY=[REDACTED:api_key]"),
            (format!("{{\\\"secretAccessKey\\\": \\\"{key}\\\"}}"), "{\\\"secretAccessKey\\\": \\\"[REDACTED:api_key]\\\"}"),
            (format!("AccountKey={}==;x", mixed(86)), "AccountKey=[REDACTED:api_key];x"),
            (format!("?sv=1&sig={key}%3D&x"), "?sv=1&sig=[REDACTED:api_key]&x"),
            ("ftp://bob:hunter2@host/x".into(), "ftp://bob:[REDACTED:password]@host/x"),
            ("Authorization: Basic dXNlcjpwYXNz".into(), "Authorization: Basic [REDACTED:password]"),
            (r#"{"password": "a\"b\\", "x": 1}"#.into(), r#"{"password": "[REDACTED:password]", "x": 1}"#),
            (r#"{\"dbPassword\":\"a\\\"b\",\"x\":1}"#.into(), r#"{\"dbPassword\":\"[REDACTED:password]\",\"x\":1}"#),
            ("{'api-key': 'abc'}".into(), "{'api-key': '[REDACTED:password]'}"),
            ("DB_PASSWORD=hunter2 x".into(), "DB_PASSWORD=[REDACTED:password] x"),
            ("f\napi-key: abc\nclient_secret: de f\r\n".into(), "f\napi-key: [REDACTED:password]\nclient_secret: [REDACTED:password]\r\n"),
            ("password: a b\nDB_PASSWORD:  \n x_token: de f".into(), "password: [REDACTED:password]\nDB_PASSWORD:  \n x_token: [REDACTED:password] f"),
            ("export X_TOKEN=\"it's, all\" y".into(), "export X_TOKEN=[REDACTED:password] y"),
            (r#"{"run":"A_TOKEN=\"ab\" B_PWD=cd"}"#.into(), r#"{"run":"A_TOKEN=[REDACTED:password] B_PWD=[REDACTED:password]"}"#),
            ("AccountKey=short".into(), "AccountKey=[REDACTED:password]"),
            (format!("GITHUB_TOKEN=ghp_{key}"), "GITHUB_TOKEN=[REDACTED:api_key]"),
            (format!("GITHUB_TOKEN='ghu_{key}'"), "GITHUB_TOKEN='[REDACTED:api_key]'"),
            (r#"["C:\\Users\\bob\\my.txt", 1] C:\\\\Users\\\\al\\\\x"#.into(), r#"["[REDACTED:filepath]", 1] [REDACTED:filepath]"#),
            ("\"token\": \"cut off\n\"x\"".into(), "\"token\": \"[REDACTED:password]\n\"x\""),
            ("fe80::1%eth0, ::ffff:10.0.0.1".into(), "[REDACTED:ip]%eth0, [REDACTED:ip]"),
            ("[2001:db8::ff00:42:8329]:443.".into(), "[[REDACTED:ip]]:443."),
            ("at dead:beef:cafe:babe:dead:beef:cafe:babe:".into(), "at [REDACTED:ip]:"),
        ];
        for (text, expected) in found {
            assert_eq!(cleaned(&text, STRICT), expected, "{text}");
        }
        for text in [
            "eyJhbGci.eyJ",
            "eyeglasses.frames.size and eyJ.x.y",
            "-----BEGIN PUBLIC KEY-----\nabc\n-----END PUBLIC KEY-----",
            "-----END PRIVATE KEY-----",
            "https://hooks.slack.com/services/",
            "https://discord.com/channels/1/2",
            "https://webhook.office.com/",
            "secret_access_key is a name",
            "?sig=short",
            "http://host:8080/a@b",
            "Authorization: Basic",
            r#"{"tokens": "17", "password": "", "password_hint": "none"}"#,
            "max_tokens=17 password_hint: none, fetch(url, { credentials: include }) api-key: a",
            r"C:\\Program Files\\x",
            "std::vec a::b Add::Ad :: 12:30:45 00:1b:44:11:3a:b7 1:2:3:4:5:6:7:8:9 x::1",
            "4111 1111 1111 1112",
        ] {
            assert_eq!(cleaned(text, STRICT), text);
        }
    }

    #[test]
    fn card_numbers_are_those_of_networks_with_a_valid_check_digit() {
        // Numbers that the networks publish for tests.
        for number in [
            "4111111111111111",
            "4222222222222",
            "5555 5555 5555 4444",
            "2223-0031-2200-3222",
            "378282246310005",
            "3782 822463 10005",
            "30569309025904",
            "6011111111111117",
            "3566002020360505",
            "6200000000000005",
        ] {
            assert_eq!(
                cleaned(&format!("({number}),"), STRICT),
                "([REDACTED:card_number]),"
            );
            assert_eq!(
                cleaned(&format!("order 12 {number} 7"), STRICT),
                "order 12 [REDACTED:card_number] 7"
            );
            let number = number.replace([' ', '-'], "");
            for text in [
                format!("0.{number}"),
                format!("x{number}"),
                format!("{number}0x"),
                format!("{number}123"),
            ] {
                assert!(!cleaned(&text, STRICT).contains("card"), "{text}");
            }
            // Every other last digit is wrong.
            let (front, last) = number.split_at(number.len() - 1);
            for digit in ('0'..='9').filter(|digit| !last.starts_with(*digit)) {
                assert!(card_numbers(format!("{front}{digit}").as_bytes()).is_empty());
            }
        }
        // Valid check digits, but of no network: a time in milliseconds, say.
        assert!(card_numbers(b"1700000000009").is_empty() && card_numbers(b"0000000000000000").is_empty());
    }

    #[test]
    fn names_of_secrets_are_told_by_their_last_words() {
        for name in [
            "password",
            "DB_PASSWORD",
            "apiKey",
            "x-api-key",
            "accessToken",
            "client_secret",
            "pwd",
        ] {
            assert!(is_secret_name(name), "{name}");
        }
        for name in [
            "",
            "tokens",
            "max_tokens",
            "password_hint",
            "key",
            "keyboard",
            "secretary",
        ] {
            assert!(!is_secret_name(name), "{name}");
        }
    }
}
