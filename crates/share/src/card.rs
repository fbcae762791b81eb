//! The dataset card: what a folder holds, for the people and the programs that load it.

use std::{collections::BTreeMap, fmt::Write};

use knowledgepulse_json::Value;

use crate::{CARD, Form, MANIFEST, Manifest, Settings};

/// The columns of the sessions, which `datasets` would else guess by the first file. Those of [`Form::Native`] make it load the files as
/// agent traces.
fn columns(form: Form) -> &'static [(&'static str, &'static str)] {
    match form {
        Form::Native => &[
            ("harness", "dtype: string"),
            ("session_id", "dtype: string"),
            ("prompt", "dtype: string"),
            ("messages", "list: json"),
            ("tools", "list: json"),
            ("metadata", "dtype: json"),
            ("sent_at", "dtype: string"),
            ("num_user_messages", "dtype: int64"),
            ("num_tool_calls", "dtype: int64"),
            ("trace", "dtype: json"),
            ("file_path", "dtype: string"),
        ],
        Form::Messages => &[
            ("id", "dtype: string"),
            ("created_at", "dtype: string"),
            ("messages", "list: json"),
            ("tools", "list: json"),
            ("success", "dtype: bool"),
            ("confidence", "dtype: float64"),
        ],
        Form::Atif => &[
            ("schema_version", "dtype: string"),
            ("session_id", "dtype: string"),
            ("agent", "dtype: json"),
            ("steps", "list: json"),
        ],
        Form::Knowledgepulse => &[
            ("'@context'", "dtype: string"),
            ("'@type'", "dtype: string"),
            ("id", "dtype: string"),
            ("metadata", "dtype: json"),
            ("task", "dtype: json"),
            ("steps", "list: json"),
            ("outcome", "dtype: json"),
            ("source_skill", "dtype: string"),
        ],
    }
}

/// Returns the text of the card.
pub(crate) fn card(manifest: &Manifest, settings: &Settings) -> String {
    let form = settings.form;
    let data = form.file().unwrap_or(if form == Form::Atif {
        "sessions/*.json"
    } else {
        "sessions/*.jsonl"
    });
    let mut card = String::from(
        "---\n# Fill in the licence, such as cc-by-4.0.\nlicense: unknown\ntags:\n- agent-traces\n- kp-score\n",
    );
    // Writing to a string does not fail.
    let _ = write!(
        card,
        "configs:\n- config_name: default\n  data_files: {data}\n- config_name: manifest\n  data_files: {MANIFEST}\n\
         dataset_info:\n- config_name: default\n  features:\n"
    );
    for (name, kind) in columns(form) {
        let _ = writeln!(card, "  - name: {name}\n    {kind}");
    }
    card.push_str("---\n\n");
    let count = manifest.entries.len();
    let _ = writeln!(
        card,
        "# {count} agent {}\n",
        if count == 1 { "session" } else { "sessions" }
    );
    let _ = writeln!(card, "{}\n", what(form));
    let mut agents: BTreeMap<&str, u64> = BTreeMap::new();
    for entry in &manifest.entries {
        let agent = entry.about.get("agent").and_then(Value::as_str);
        *agents.entry(agent.unwrap_or("unknown")).or_default() += 1;
    }
    card.push_str("| agent | sessions |\n| --- | ---: |\n");
    for (agent, count) in agents {
        let _ = writeln!(card, "| {agent} | {count} |");
    }
    let outcomes = manifest.entries.iter().filter_map(|entry| entry.outcome);
    let known = outcomes.count();
    let _ = writeln!(
        card,
        "\nThe outcome of {known} of {count} is known.\n\n## How they were chosen\n\n{}.\n",
        settings.chosen
    );
    let cleaned = if settings.identifiers {
        (
            "secrets, e-mail addresses, telephone numbers, IP addresses, and the names of each session's user and machine",
            "`[REDACTED:email-1]` and `user-1`",
        )
    } else {
        ("secrets alone", "`[REDACTED:api_key-1]`")
    };
    let _ = writeln!(
        card,
        "`{MANIFEST}` has a line for each: its rank, the reason, how many sessions it stands for, its outcome, what was redacted, and the \
         places to review.\n\n## How they were cleaned\n\n{} replaced {} by markers such as {}.\n",
        settings.program, cleaned.0, cleaned.1
    );
    let redactions = manifest.redactions();
    if !redactions.is_empty() {
        card.push_str("| kind | replaced |\n| --- | ---: |\n");
        for (kind, count) in redactions {
            let _ = writeln!(card, "| {kind} | {count} |");
        }
        card.push('\n');
    }
    let places = match manifest.review().count() {
        0 => String::new(),
        1 => " 1 place looks like a name or an address: `review` in the manifest names it.".into(),
        count => {
            format!(" {count} places look like names or addresses: `review` in the manifest names them.")
        }
    };
    let _ = writeln!(
        card,
        "Not looked for: names of other people, street addresses, what is in pictures, and the secrets of a business.{places} Look at the \
         sessions before you publish them.\n\n## Licence\n\nTo be filled in, here and at the top of `{CARD}`.\n"
    );
    let extra = if form == Form::Native { " teich" } else { "" };
    let _ = write!(
        card,
        "## Loading\n\n```python\n# pip install datasets{extra}\nfrom datasets import load_dataset\n\nsessions = load_dataset(\".\", split=\"train\")\n```\n"
    );
    card
}

fn what(form: Form) -> &'static str {
    match form {
        Form::Native => {
            "Sessions of Claude Code, Codex, Pi, Droid and Hermes are in their own format, others in the Session Trace Simple Format. A \
             session's sub-agents are in the folder of its name."
        }
        Form::Messages => {
            "A line for each session: `messages` of OpenAI's chat API, and the `tools` that are called, with parameters by the arguments of \
             the calls."
        }
        Form::Atif => "Each file is a trajectory in the Agent Trajectory Interchange Format.",
        Form::Knowledgepulse => "A line for each session: a unit for a registry of KnowledgePulse.",
    }
}
