//! Checks that an engine computes the network that a model's files describe. Otherwise a model with another pooling or activation would
//! load and give wrong embeddings.

use std::path::Path;

use knowledgepulse_encoder::{HEAD_WIDTH, LAYER_NORM_EPSILON, Shape};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use knowledgepulse_error::Result;

use super::{DIMENSIONS, parse, parse_optional, read};
use crate::{damaged, unsupported};

const CONFIG: &str = "config.json";

/// The files of sentence-transformers for the pooling and for the steps after the network.
const POOLING: &str = "1_Pooling/config.json";
const MODULES: &str = "modules.json";

/// `config.json`.
#[derive(Debug, Clone, PartialEq, Deserialize)]
pub(super) struct Config {
    hidden_size: usize,
    pub(super) max_position_embeddings: usize,
    #[serde(flatten)]
    fields: Map<String, Value>,
}

/// A step of `modules.json`.
#[derive(Deserialize)]
struct Module {
    r#type: String,
}

impl Config {
    /// Reads the description of the network in `directory`. The files of sentence-transformers are optional.
    ///
    /// # Errors
    /// `ERR_MODEL_UNUSABLE`, also for models that neither engine computes.
    pub(super) fn read(directory: &Path) -> Result<Self> {
        let path = directory.join(CONFIG);
        let config: Self = parse(&path, &read(&path)?)?;
        if config.hidden_size != DIMENSIONS {
            let reason = format!(
                "its embeddings have {} dimensions instead of {DIMENSIONS}",
                config.hidden_size
            );
            return Err(unsupported(&path, reason));
        }
        require_mean(directory)?;
        require_nothing_more(directory)?;
        Ok(config)
    }

    /// Fails unless the built-in engine computes this network. `has_graph` says whether ONNX Runtime could instead.
    ///
    /// # Errors
    /// `ERR_MODEL_UNUSABLE`.
    pub(super) fn require_builtin(&self, directory: &Path, has_graph: bool) -> Result<()> {
        let computed = [
            ("model_type", json!("bert")),
            ("num_attention_heads", json!(DIMENSIONS / HEAD_WIDTH)),
            ("hidden_act", json!("gelu")),
            ("layer_norm_eps", json!(LAYER_NORM_EPSILON)),
            ("position_embedding_type", json!("absolute")),
            ("type_vocab_size", json!(2)),
            ("is_decoder", json!(false)),
        ];
        let Some((field, found, expected)) = unlike(&self.fields, computed) else {
            return Ok(());
        };
        let graph = if has_graph {
            "which runs its model.onnx as it is"
        } else {
            "with a model.onnx of it"
        };
        Err(unsupported(
            &directory.join(CONFIG),
            format!(
                "`{field}` is {found}, and the engine builtin computes {expected}; choose the engine onnxruntime \
                 (`engine: 'onnxruntime'`, `--engine onnxruntime`), {graph}"
            ),
        ))
    }

    /// Fails if the weights have other sizes than the config says.
    ///
    /// # Errors
    /// `ERR_MODEL_UNUSABLE`.
    pub(super) fn require_sizes(&self, directory: &Path, shape: Shape) -> Result<()> {
        let sizes = [
            ("num_hidden_layers", json!(shape.layers)),
            ("intermediate_size", json!(shape.inner)),
            ("vocab_size", json!(shape.vocabulary)),
        ];
        match unlike(&self.fields, sizes) {
            None => Ok(()),
            Some((field, found, expected)) => Err(damaged(
                &directory.join(CONFIG),
                format!("`{field}` is {found}, and the weights have {expected}"),
            )),
        }
    }
}

/// Returns the first field with an unexpected value. An absent or null field has BERT's value.
fn unlike<'f, const COUNT: usize>(
    fields: &'f Map<String, Value>,
    expected: [(&'static str, Value); COUNT],
) -> Option<(&'static str, &'f Value, Value)> {
    expected.into_iter().find_map(|(field, expected)| {
        let found = fields.get(field).filter(|found| !found.is_null())?;
        (*found != expected).then_some((field, found, expected))
    })
}

/// Fails unless the pooling is the mean of the tokens' vectors, which both engines compute and which is the default.
fn require_mean(directory: &Path) -> Result<()> {
    let path = directory.join(POOLING);
    let pooling: Map<String, Value> = parse_optional(&path)?.unwrap_or_default();
    let is_other = |(field, value): &(&String, &Value)| match field.as_str() {
        "pooling_mode_mean_tokens" => **value != json!(true),
        "pooling_mode" => **value != json!("mean"),
        field => field.starts_with("pooling_mode_") && **value != json!(false),
    };
    match pooling.iter().find(is_other) {
        None => Ok(()),
        Some((field, value)) => Err(unsupported(
            &path,
            format!("`{field}` is {value}, and both engines compute the mean of the tokens; {OTHER_MODEL}"),
        )),
    }
}

/// Fails if a step after the pooling changes the direction of an embedding.
fn require_nothing_more(directory: &Path) -> Result<()> {
    let path = directory.join(MODULES);
    let modules: Vec<Module> = parse_optional(&path)?.unwrap_or_default();
    let is_computed = |module: &Module| {
        let name = module.r#type.rsplit('.').next().unwrap_or_default();
        ["Transformer", "Pooling", "Normalize"].contains(&name)
    };
    match modules.into_iter().find(|module| !is_computed(module)) {
        None => Ok(()),
        Some(module) => Err(unsupported(
            &path,
            format!(
                "it has the module {}, which neither engine computes; {OTHER_MODEL}",
                module.r#type
            ),
        )),
    }
}

/// The remedy if no engine computes the model.
const OTHER_MODEL: &str =
    "use a model whose embedding is that mean, such as @knowledgepulse/all-minilm-l6-v2";

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    /// Reads the description of MiniLM in which these files have these contents.
    fn config(files: &[(&str, &str)]) -> Result<Config> {
        let directory = tempfile::tempdir().unwrap();
        let bert = r#"{"hidden_size":384,"max_position_embeddings":512}"#;
        fs::create_dir(directory.path().join("1_Pooling")).unwrap();
        for (name, contents) in [(CONFIG, bert)].iter().chain(files) {
            fs::write(directory.path().join(name), contents).unwrap();
        }
        Config::read(directory.path())
    }

    /// Reads `config.json` with one more field.
    fn config_with(field: &str) -> Config {
        let text = format!(r#"{{"hidden_size":384,"max_position_embeddings":512,{field}}}"#);
        config(&[(CONFIG, &text)]).unwrap()
    }

    fn assert_refused<T>(result: Result<T>, code: &str, parts: &[&str]) {
        let error = result.err().unwrap();
        assert_eq!(error.code(), code);
        for part in parts {
            assert!(error.to_string().contains(part), "{error}");
        }
    }

    #[test]
    fn require_builtin_refuses_other_networks_and_names_onnx_runtime() {
        for field in [
            r#""model_type":"roberta""#,
            r#""num_attention_heads":6"#,
            r#""hidden_act":"gelu_new""#,
            r#""hidden_act":"relu""#,
            r#""layer_norm_eps":0.00001"#,
            r#""position_embedding_type":"relative_key""#,
            r#""type_vocab_size":1"#,
            r#""is_decoder":true"#,
        ] {
            let refused = config_with(field).require_builtin(Path::new(""), true);
            let (name, value) = field.split_once(':').unwrap();
            let value = serde_json::from_str::<Value>(value).unwrap();
            let told = format!("`{}` is {value}", name.trim_matches('"'));
            assert_refused(refused, "ERR_MODEL_UNUSABLE", &[&told, "engine: 'onnxruntime'"]);
        }
        for field in [
            r#""model_type":"bert""#,
            r#""hidden_act":null"#,
            r#""layer_norm_eps":1e-12"#,
        ] {
            config_with(field).require_builtin(Path::new(""), false).unwrap();
        }
    }

    #[test]
    fn require_sizes_refuses_weights_of_other_sizes() {
        let shape = Shape {
            layers: 6,
            inner: 1536,
            vocabulary: 30_522,
            hidden: 384,
            positions: 512,
        };
        for field in [
            r#""num_hidden_layers":12"#,
            r#""intermediate_size":1024"#,
            r#""vocab_size":30000"#,
        ] {
            let refused = config_with(field).require_sizes(Path::new(""), shape);
            let (name, _) = field.split_once(':').unwrap();
            assert_refused(refused, "ERR_MODEL_UNUSABLE", &[name.trim_matches('"')]);
        }
        config_with(r#""vocab_size":30522"#)
            .require_sizes(Path::new(""), shape)
            .unwrap();
    }

    #[test]
    fn read_refuses_another_pooling_and_further_modules() {
        let unsupported = "ERR_MODEL_UNUSABLE";
        let dense = r#"[{"type":"sentence_transformers.models.Transformer"},{"type":"sentence_transformers.models.Dense"}]"#;
        for (file, contents, code, part) in [
            (
                POOLING,
                r#"{"pooling_mode_cls_token":true,"pooling_mode_mean_tokens":false}"#,
                unsupported,
                "pooling_mode",
            ),
            (
                POOLING,
                r#"{"pooling_mode_max_tokens":true,"pooling_mode_mean_tokens":true}"#,
                unsupported,
                "max_tokens",
            ),
            (
                POOLING,
                r#"{"pooling_mode":"cls"}"#,
                unsupported,
                r#"`pooling_mode` is "cls""#,
            ),
            (MODULES, dense, unsupported, "sentence_transformers.models.Dense"),
            (POOLING, "{", "ERR_MODEL_UNUSABLE", ""),
            (MODULES, "{", "ERR_MODEL_UNUSABLE", ""),
        ] {
            let path = Path::new(file).to_string_lossy().into_owned();
            assert_refused(config(&[(file, contents)]), code, &[&path, part]);
        }
        let pooling = r#"{"word_embedding_dimension":384,"pooling_mode_cls_token":false,"pooling_mode_mean_tokens":true}"#;
        config(&[
            (POOLING, pooling),
            (
                MODULES,
                r#"[{"type":"a.Transformer"},{"type":"a.Pooling"},{"type":"a.Normalize"}]"#,
            ),
        ])
        .unwrap();
    }
}
