//! Where records and scores say whether the task was done: one table of fields, and what their values mean.

use knowledgepulse_json::{Object, Value};

use crate::{
    event::Fact,
    values::{in_path, numeric_of, object_of, str_of, truth_of},
    words::{is_one, tags, words},
};

/// The least reward that tau counts as a success.
const WHOLE_REWARD: f64 = 1.0 - 1e-6;

/// Returns whether a score of this name says whether the task was done.
pub fn is_verdict(name: &str) -> bool {
    is_one(&name.to_lowercase().replace([' ', '-'], "_"), "verdict")
}

/// Returns what the fields of a record say of its outcome, in the order of the table.
pub fn verdicts_of(record: &Object) -> Vec<Fact> {
    let is_of_run = words("field-of-run").any(|name| record.contains(name));
    let fact = |[path, says]: &[&str; 2]| {
        let value = in_path(record, path)?;
        match *says {
            "verdict" => Some(Fact::Verdict(value.clone())),
            "reward" | "whole" => Some(Fact::Reward(value.clone())),
            "rewards" => {
                let number = |reward: &Value, name| numeric_of(reward.get(name));
                let weighed = |reward| Some(number(reward, "score")? * number(reward, "weight")?);
                let rewards: Vec<_> = object_of(Some(value)).values().filter_map(weighed).collect();
                (!rewards.is_empty()).then(|| Fact::Reward(rewards.iter().sum::<f64>().into()))
            }
            "scores" => result_of(&score_of(object_of(Some(value)).values().next())?),
            says => result_of(value).filter(|_| is_of_run || says == "word"),
        }
    };
    let facts = |row: &[&str; 2]| {
        let fact = fact(row);
        let part = match &fact {
            Some(Fact::Reward(reward)) if row[1] == "whole" => numeric_of(Some(reward)),
            _ => None,
        };
        let is_whole = part.map(|part| Fact::Verdict((part >= WHOLE_REWARD).into()));
        fact.into_iter().chain(is_whole)
    };
    tags("verdict-field").iter().flat_map(facts).collect()
}

/// Returns the value of a score as Inspect's `value_to_float` reads it; as it is, if that could not.
pub fn score_of(score: Option<&Value>) -> Option<Value> {
    let value = score?.get("value").filter(|value| !value.is_null())?;
    Some(match value.as_str() {
        Some("C") => 1.0.into(),
        Some("P") => 0.5.into(),
        Some("I" | "N") => 0.0.into(),
        _ => value.clone(),
    })
}

fn result_of(value: &Value) -> Option<Fact> {
    if numeric_of(Some(value)).is_some_and(|number| (0.0..=1.0).contains(&number)) {
        return Some(Fact::Reward(value.clone()));
    }
    let name = str_of(Some(value)).filter(|name| !name.contains(char::is_whitespace));
    let is_exception = name.is_some_and(|name| name.ends_with("Error") || name.ends_with("Exception"));
    let truth = truth_of(Some(value)).or(is_exception.then_some(false));
    truth.map(|truth| Fact::Verdict(truth.into()))
}

#[cfg(test)]
mod tests {
    use knowledgepulse_json::parse_str;

    use super::*;

    #[test]
    fn verdicts_of_reads_each_field_by_what_it_means() {
        let verdict = |truth: bool| vec![Fact::Verdict(truth.into())];
        let reward = |reward: Value| vec![Fact::Reward(reward)];
        let whole = |reward: f64, truth: bool| vec![Fact::Reward(reward.into()), Fact::Verdict(truth.into())];
        for (record, facts) in [
            (r#"{"reward_info":{"reward":0.4}}"#, whole(0.4, false)),
            (r#"{"reward_info":{"reward":0.9999999}}"#, whole(0.9999999, true)),
            (r#"{"reward":0.4}"#, reward(0.4.into())),
            (r#"{"result":"1.0","trial_name":"a"}"#, reward("1.0".into())),
            (r#"{"result":"AgentTimeoutError","agent":"a"}"#, verdict(false)),
            (r#"{"finalResult":"passed"}"#, verdict(true)),
            (r#"{"utility":false,"security":true}"#, verdict(false)),
            (r#"{"is_correct":false,"id":1}"#, verdict(false)),
            (r#"{"passed":7,"outcome":"It went well."}"#, vec![]),
            (
                r#"{"verifier_result":{"rewards":{"reward":0.5}}}"#,
                reward(0.5.into()),
            ),
            (r#"{"scores":{"depth":{"value":"I"}}}"#, reward(0.0.into())),
            (r#"{"scores":{"depth":{"value":7}}}"#, vec![]),
            (r#"{"result":"1.0"}"#, vec![]),
            (r#"{"result":"It is done.","agent":"a"}"#, vec![]),
            (r#"{"result":42,"agent":"a"}"#, vec![]),
        ] {
            let value = parse_str(record).unwrap();
            assert_eq!(verdicts_of(value.as_object().unwrap()), facts, "{record}");
        }
    }
}
