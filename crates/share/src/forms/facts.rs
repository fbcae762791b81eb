//! What a manifest tells of a session, beside its words.

use knowledgepulse_formats::trace::{SESSION, UNANSWERED, project_of};
use knowledgepulse_json::{Object, Value, json_object};
use knowledgepulse_trace::facts::Fact;

use super::{
    messages::recorded_tools,
    models_of, text_at,
    turns::{Turn, turns_of},
};
use crate::set::count_of;

/// Returns the facts about a trace, which is not clean yet, and neither are these.
pub(crate) fn facts_of(trace: &Value) -> Object {
    let turns = turns_of(trace);
    let (mut users, mut calls, mut failed) = (0_u64, 0_u64, 0_u64);
    for turn in &turns {
        match turn {
            Turn::User(_) => users += 1,
            Turn::Agent(said) => {
                calls += said.calls.len() as u64;
                let results = said.calls.iter().filter_map(|call| call.result.as_ref());
                failed += results.filter(|answer| answer.failed).count() as u64;
            }
            Turn::Result(answer) => failed += u64::from(answer.failed),
        }
    }
    let is_answer =
        |turn: &Turn| matches!(turn, Turn::Agent(said) if !said.text.is_empty() && said.calls.is_empty());
    let left_out = trace.at(&["metadata", "imported", "left_out"]);
    let left_out = |is_wanted: fn(&str) -> bool| -> u64 {
        let counts = left_out.and_then(Value::as_object).into_iter().flatten();
        let counts = counts.filter(|(name, _)| is_wanted(name));
        counts.map(|(_, count)| count_of(count)).sum()
    };
    let tools = recorded_tools(trace).map_or("inferred", |_| RECORDED);
    let observed = knowledgepulse_trace::facts::facts_of(trace).into_iter();
    let facts = json_object! {
        "session": text_at(trace, &["metadata", "imported", SESSION]),
        "model": models_of(trace),
        "project": project_of(trace),
        "language": language_of(&turns),
        "steps": trace.get("steps").and_then(Value::as_array).map_or(0, <[Value]>::len),
        "user_turns": users,
        "calls": calls,
        "failed_calls": failed,
        "calls_without_result": left_out(|name| name == UNANSWERED),
        "ends_with_answer": turns.last().is_some_and(is_answer),
        "pictures": left_out(|name| name.contains("image")),
        "facts": observed.map(Fact::to_value).collect::<Value>(),
        "tools": (calls > 0).then_some(tools),
        "sample": sample_of(&turns),
    };
    facts.as_object().cloned().unwrap_or_default()
}

/// The language of a text is looked for in so many characters, and told of so many or more.
const MOST_WORDS: usize = 4000;
const LEAST_WORDS: usize = 40;

/// The two letters of languages, each after the three that [`whatlang`] has for it. What is no prose is told to be Latin or Esperanto, so
/// those are not here.
const LANGUAGES: &str = "afr af aka ak amh am ara ar aze az bel be ben bn bul bg cat ca ces cs cmn zh cym cy dan da deu de ell el eng en \
    est et fin fi fra fr guj gu heb he hin hi hrv hr hun hu hye hy ind id ita it jav jv jpn ja kan kn kat ka khm km kor ko lav lv lit lt \
    mal ml mar mr mkd mk mya my nep ne nld nl nob nb ori or pan pa pes fa pol pl por pt ron ro rus ru sin si slk sk slv sl sna sn spa es \
    srp sr swe sv tam ta tel te tgl tl tha th tuk tk tur tr ukr uk urd ur uzb uz vie vi yid yi zul zu";

/// Returns the language that the user writes, as ISO 639-1 has it, if the words tell it.
fn language_of(turns: &[Turn]) -> Option<&'static str> {
    let texts = turns.iter().filter_map(|turn| match turn {
        Turn::User(text) => Some(text.as_str()),
        _ => None,
    });
    let words: String = texts
        .flat_map(|text| text.chars().chain([' ']))
        .take(MOST_WORDS)
        .collect();
    if words.chars().filter(|letter| letter.is_alphabetic()).count() < LEAST_WORDS {
        return None;
    }
    let found = whatlang::detect(&words).filter(whatlang::Info::is_reliable)?;
    let mut codes = LANGUAGES.split_whitespace();
    codes.find(|code| *code == found.lang().code())?;
    codes.next()
}

/// What is told of tools whose definitions the log has.
pub(crate) const RECORDED: &str = "recorded";

/// The field with the first words of the user and of the agent, which only the card shows.
pub(crate) const SAMPLE: &str = "sample";

fn sample_of(turns: &[Turn]) -> Option<Vec<Value>> {
    let user = turns.iter().find_map(|turn| match turn {
        Turn::User(text) => Some(text),
        _ => None,
    });
    let agent = turns.iter().find_map(|turn| match turn {
        Turn::Agent(said) => Some(&said.text).filter(|text| !text.is_empty()),
        _ => None,
    });
    Some(vec![user?.clone().into(), agent?.clone().into()])
}
