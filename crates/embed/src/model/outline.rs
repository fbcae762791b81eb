//! The outline of an ONNX graph: its weights in other files.
//!
//! ONNX Runtime maps such files. Weights that it transposes, casts or repacks are copied; the others stay mapped, and
//! reading a truncated mapped file kills the process. So these are read here ([`Outline::tables`]) and shared by all
//! sessions: half of the weights are the table of word embeddings.
//!
//! The format is Protocol Buffers; the messages and numbers follow `onnx.proto`.

use std::{
    collections::{BTreeMap, BTreeSet},
    io::{Error, ErrorKind, Result},
};

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
    pub data_type: u64,
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
    /// [`ErrorKind::InvalidData`] or [`ErrorKind::UnexpectedEof`] if it is no ONNX file, or one of an unusual make. ONNX Runtime may
    /// still load it.
    pub fn read(model: &[u8]) -> Result<Self> {
        let mut outline = Self::default();
        for field in fields(model) {
            if let Field(7, Value::Bytes(graph)) = field? {
                outline.read_graph(graph)?;
            }
        }
        Ok(outline)
    }

    /// Reads a `GraphProto`.
    fn read_graph(&mut self, graph: &[u8]) -> Result<()> {
        // For each value, whether all operators that read it copy it.
        let mut copied: BTreeMap<&str, bool> = BTreeMap::new();
        let mut weights = Vec::new();
        for field in fields(graph) {
            match field? {
                Field(1, Value::Bytes(node)) => note_inputs(node, &mut copied)?,
                Field(5, Value::Bytes(tensor)) => weights.extend(external_weight(tensor)?),
                _ => {}
            }
        }
        for weight in weights {
            self.files.insert(weight.file.clone());
            if copied.get(weight.name.as_str()) == Some(&false) {
                self.tables.push(weight);
            }
        }
        Ok(())
    }
}

/// Records the values that the `NodeProto` in `node` reads.
fn note_inputs<'b>(node: &'b [u8], copied: &mut BTreeMap<&'b str, bool>) -> Result<()> {
    let mut inputs = Vec::new();
    let mut copies = false;
    for field in fields(node) {
        match field? {
            Field(1, Value::Bytes(input)) => inputs.push(text(input)?),
            Field(4, Value::Bytes(operator)) => copies = COPYING.contains(&text(operator)?),
            _ => {}
        }
    }
    for input in inputs {
        *copied.entry(input).or_insert(true) &= copies;
    }
    Ok(())
}

/// The `TensorProto` in `tensor`, if its values are in another file.
fn external_weight(tensor: &[u8]) -> Result<Option<Table>> {
    const EXTERNAL: u64 = 1;
    let (mut name, mut file) = ("", "");
    let (mut data_type, mut location) = (0, 0);
    let mut shape = Vec::new();
    let mut place = [0_u64; 2];
    for field in fields(tensor) {
        match field? {
            Field(1, Value::Number(length)) => shape.push(length.cast_signed()),
            Field(1, Value::Bytes(mut lengths)) => {
                while !lengths.is_empty() {
                    shape.push(varint(&mut lengths)?.cast_signed());
                }
            }
            Field(2, Value::Number(number)) => data_type = number,
            Field(8, Value::Bytes(bytes)) => name = text(bytes)?,
            Field(13, Value::Bytes(entry)) => match entry_of(entry)? {
                ("location", value) => file = value,
                ("offset", value) => place[0] = value.parse().map_err(|_| malformed("an offset"))?,
                ("length", value) => place[1] = value.parse().map_err(|_| malformed("a length"))?,
                _ => {}
            },
            Field(14, Value::Number(number)) => location = number,
            _ => {}
        }
    }
    if location != EXTERNAL {
        return Ok(None);
    }
    if file.is_empty() || file.contains(['/', '\\', ':']) || file == ".." {
        return Err(malformed("weights outside of its directory"));
    }
    Ok(Some(Table {
        name: name.to_owned(),
        data_type,
        shape,
        file: file.to_owned(),
        offset: place[0],
        length: place[1],
    }))
}

/// Key and value of a `StringStringEntryProto`.
fn entry_of(entry: &[u8]) -> Result<(&str, &str)> {
    let (mut key, mut value) = ("", "");
    for field in fields(entry) {
        match field? {
            Field(1, Value::Bytes(bytes)) => key = text(bytes)?,
            Field(2, Value::Bytes(bytes)) => value = text(bytes)?,
            _ => {}
        }
    }
    Ok((key, value))
}

// ── Protocol Buffers ────────────────────────────────────────────────────────────────────────────────────────

/// A field's number and its value.
struct Field<'b>(u64, Value<'b>);

enum Value<'b> {
    Number(u64),
    Bytes(&'b [u8]),
    /// A number of fixed length; no field here is one.
    Fixed,
}

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

fn text(bytes: &[u8]) -> Result<&str> {
    std::str::from_utf8(bytes).map_err(|_| malformed("a name that is not Unicode"))
}

/// The fields of a message; an error is the last.
fn fields(mut message: &[u8]) -> impl Iterator<Item = Result<Field<'_>>> {
    std::iter::from_fn(move || {
        if message.is_empty() {
            return None;
        }
        let field = next_field(&mut message);
        if field.is_err() {
            message = &[];
        }
        Some(field)
    })
}

fn next_field<'b>(rest: &mut &'b [u8]) -> Result<Field<'b>> {
    let key = varint(rest)?;
    let value = match key & 7 {
        0 => Value::Number(varint(rest)?),
        1 => take(rest, 8).map(|_| Value::Fixed)?,
        2 => {
            let length = varint(rest)?;
            Value::Bytes(take(rest, length)?)
        }
        5 => take(rest, 4).map(|_| Value::Fixed)?,
        _ => return Err(malformed("an unknown wire type")),
    };
    Ok(Field(key >> 3, value))
}

fn varint(rest: &mut &[u8]) -> Result<u64> {
    let mut value = 0;
    for shift in (0..64).step_by(7) {
        let byte = take(rest, 1)?[0];
        value |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Ok(value);
        }
    }
    Err(malformed("a number of more than 64 bits"))
}

fn take<'b>(rest: &mut &'b [u8], length: u64) -> Result<&'b [u8]> {
    let split = usize::try_from(length)
        .ok()
        .and_then(|length| rest.split_at_checked(length));
    let (taken, others) = split.ok_or_else(|| Error::from(ErrorKind::UnexpectedEof))?;
    *rest = others;
    Ok(taken)
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
