//! The outline of an ONNX graph: its weights in other files.
//!
//! ONNX Runtime maps such files. Weights that it transposes, casts or repacks are copied; the others stay mapped, and
//! reading a truncated mapped file kills the process. So these are read here ([`Outline::tables`]) and shared by all
//! sessions: half of the weights are the table of word embeddings.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Error, ErrorKind, Result},
};

use prost::Message;

/// The largest graph without embedded weights, in bytes.
pub const LARGEST_GRAPH: u64 = 16 << 20;

/// The operators that copy their weights when a session is made.
const COPYING: [&str; 7] = [
    "Cast",
    "DynamicQuantizeMatMul",
    "Gemm",
    "MatMul",
    "MatMulIntegerToFloat",
    "QAttention",
    "Transpose",
];

/// The weights of a graph in other files.
#[derive(Debug, Default, PartialEq)]
pub struct Outline {
    /// The names of the files, in the directory of the graph.
    pub files: BTreeSet<String>,
    /// The weights that must be passed to a session.
    pub tables: Vec<Table>,
}

/// A weight in another file.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name in the graph.
    pub name: String,
    /// An ONNX `TensorProto.DataType`.
    pub data_type: i32,
    /// Its dimensions.
    pub shape: Vec<i64>,
    /// The name of the file that it is in.
    pub file: String,
    /// The position of its values in the file, in bytes.
    pub offset: u64,
    /// Its size in bytes; values are little-endian.
    pub length: u64,
}

impl Outline {
    /// Reads the outline of an ONNX file.
    ///
    /// # Errors
    /// [`ErrorKind::InvalidData`] if it is no ONNX file, or one of an unusual make. ONNX Runtime may still load it.
    pub fn read(model: &[u8]) -> Result<Self> {
        let model = ModelProto::decode(model).map_err(|error| malformed(&error.to_string()))?;
        let graph = model.graph.unwrap_or_default();
        // For each value, whether all operators that read it copy it.
        let mut copied: BTreeMap<&str, bool> = BTreeMap::new();
        for node in &graph.node {
            let copies = COPYING.contains(&node.op_type.as_str());
            for input in &node.input {
                *copied.entry(input).or_insert(true) &= copies;
            }
        }
        let mut outline = Self::default();
        for tensor in graph.initializer {
            let Some(weight) = tensor.external()? else {
                continue;
            };
            outline.files.insert(weight.file.clone());
            if copied.get(weight.name.as_str()) == Some(&false) {
                outline.tables.push(weight);
            }
        }
        Ok(outline)
    }
}

// The messages of `onnx.proto`, with the fields that are read.

#[derive(Clone, PartialEq, Message)]
struct ModelProto {
    #[prost(message, optional, tag = "7")]
    graph: Option<GraphProto>,
}

#[derive(Clone, PartialEq, Message)]
struct GraphProto {
    #[prost(message, repeated, tag = "1")]
    node: Vec<NodeProto>,
    #[prost(message, repeated, tag = "5")]
    initializer: Vec<TensorProto>,
}

#[derive(Clone, PartialEq, Message)]
struct NodeProto {
    #[prost(string, repeated, tag = "1")]
    input: Vec<String>,
    #[prost(string, tag = "4")]
    op_type: String,
}

#[derive(Clone, PartialEq, Message)]
struct TensorProto {
    #[prost(int64, repeated, tag = "1")]
    dims: Vec<i64>,
    #[prost(int32, tag = "2")]
    data_type: i32,
    #[prost(string, tag = "8")]
    name: String,
    #[prost(btree_map = "string, string", tag = "13")]
    external_data: BTreeMap<String, String>,
    #[prost(int32, tag = "14")]
    data_location: i32,
}

impl TensorProto {
    /// Returns the weight, if its values are in another file.
    fn external(mut self) -> Result<Option<Table>> {
        const EXTERNAL: i32 = 1;
        if self.data_location != EXTERNAL {
            return Ok(None);
        }
        let file = self.external_data.remove("location").unwrap_or_default();
        if file.is_empty() || file.contains(['/', '\\', ':']) || file == ".." {
            return Err(malformed("weights outside of its directory"));
        }
        let number = |name| {
            let number = self.external_data.get(name).map_or(Ok(0), |text| text.parse());
            number.map_err(|_| malformed("an offset or a length"))
        };
        Ok(Some(Table {
            offset: number("offset")?,
            length: number("length")?,
            name: self.name,
            data_type: self.data_type,
            shape: self.dims,
            file,
        }))
    }
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn put_varint(mut value: u64, output: &mut Vec<u8>) {
        while value >= 0x80 {
            output.push(value.to_le_bytes()[0] | 0x80);
            value >>= 7;
        }
        output.push(value.to_le_bytes()[0]);
    }

    /// The bytes of a field that holds `contents`.
    fn message(field: u64, contents: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_varint(field << 3 | 2, &mut bytes);
        put_varint(contents.len() as u64, &mut bytes);
        [&bytes, contents].concat()
    }

    fn number(field: u64, value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_varint(field << 3, &mut bytes);
        put_varint(value, &mut bytes);
        bytes
    }

    fn node(operator: &str, inputs: &[&str]) -> Vec<u8> {
        let inputs = inputs.iter().map(|input| message(1, input.as_bytes()));
        let fields: Vec<_> = inputs.chain([message(4, operator.as_bytes())]).collect();
        message(1, &fields.concat())
    }

    /// A weight of floats, in the file `file`.
    fn external(name: &str, file: &str, offset: u64, length: u64) -> Vec<u8> {
        let entry = |key: &str, value: &str| {
            message(
                13,
                &[message(1, key.as_bytes()), message(2, value.as_bytes())].concat(),
            )
        };
        let fields = [
            number(1, length / 4),
            message(1, &[1]),
            number(2, 1),
            message(8, name.as_bytes()),
            entry("location", file),
            entry("offset", &offset.to_string()),
            entry("length", &length.to_string()),
            number(14, 1),
        ];
        message(5, &fields.concat())
    }

    fn model() -> Vec<u8> {
        let inside = [message(8, b"inside"), message(9, &[1; 40])].concat();
        let graph = [
            node("Gather", &["words", "ids"]),
            node("MatMul", &["x", "dense"]),
            node("Gather", &["both", "ids"]),
            node("MatMul", &["y", "both"]),
            node("Add", &["z", "inside"]),
            external("words", "weights", 8, 400),
            external("dense", "weights", 408, 40),
            external("both", "others", 0, 80),
            message(5, &inside),
        ];
        [number(1, 9), message(7, &graph.concat()), message(2, b"producer")].concat()
    }

    #[test]
    fn mapped_weights_become_tables() {
        let table = |name: &str, file: &str, offset: u64, length: u64| Table {
            name: name.into(),
            data_type: 1,
            shape: vec![(length / 4).cast_signed(), 1],
            file: file.into(),
            offset,
            length,
        };
        let outline = Outline::read(&model()).unwrap();
        assert_eq!(
            outline.tables,
            [table("words", "weights", 8, 400), table("both", "others", 0, 80)]
        );
        assert_eq!(outline.files, ["others".to_owned(), "weights".to_owned()].into());
    }

    #[test]
    fn weights_outside_of_the_directory_are_left_to_onnx_runtime() {
        for file in ["", "..", "../weights", "/weights", "c:weights", "a\\b"] {
            let model = message(7, &external("dense", file, 0, 4));
            assert!(Outline::read(&model).is_err(), "{file}");
        }
    }

    #[test]
    fn half_a_model_is_an_error() {
        let model = model();
        for length in [1, 3, 40, model.len() - 1] {
            assert!(Outline::read(&model[..length]).is_err(), "{length}");
        }
    }

    proptest! {
        #[test]
        fn nonsense_is_an_error_or_an_outline(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = Outline::read(&bytes);
            let _ = Outline::read(&message(7, &bytes));
            let _ = Outline::read(&message(7, &message(5, &bytes)));
        }

        #[test]
        fn damage_anywhere_is_an_error_or_an_outline(place in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut model = model();
            let place = place.index(model.len());
            model[place] = byte;
            let _ = Outline::read(&model);
        }
    }
}
