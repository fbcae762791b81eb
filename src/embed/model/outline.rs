//! A model file without its weights: the graph, and where in the file each large weight is.
//!
//! ONNX Runtime copies the weights of a graph twice while it loads them. Weights that the graph says are in another
//! file it maps instead, and repacks from there. So this writes, in memory, a graph that names the model file itself as
//! that other file: a session is then made in a third of the time, and needs no second copy of the weights meanwhile.
//!
//! What is not repacked would stay mapped, and a process dies when it reads from a mapped file that somebody has
//! truncated. Tables that the graph looks words up in are therefore read here ([`Outline::tables`]), to be given to
//! every session, and other large weights stay in the graph.
//!
//! The format is Protocol Buffers; the messages and numbers are those of `onnx.proto`.

use std::{
    collections::BTreeMap,
    fs::File,
    io::{BufRead, BufReader, Error, ErrorKind, Read, Result, Seek, SeekFrom},
    path::Path,
};

/// Smaller weights than this, in bytes, are not worth the trouble.
const LARGE: u64 = 64 * 1024;

/// A graph without its large weights is much smaller than this, in bytes; otherwise it is something else.
const LARGEST_GRAPH: u64 = 16 << 20;

/// The operators that repack their weights when a session is made, and let go of the original.
const REPACKING: [&str; 4] = ["MatMul", "Gemm", "DynamicQuantizeMatMul", "QAttention"];

/// The operator that looks rows up in a table.
const LOOKUP: &str = "Gather";

/// A model file's graph, with its large weights left in the file.
#[derive(Debug, PartialEq)]
pub struct Outline {
    /// The graph, an ONNX `ModelProto` in which the large weights are external, at their places in the model file.
    pub graph: Vec<u8>,
    /// Those of the external weights that a session must be given.
    pub tables: Vec<Table>,
}

/// A large weight that the graph looks rows up in.
#[derive(Debug, PartialEq, Eq)]
pub struct Table {
    /// Its name in the graph.
    pub name: String,
    /// An ONNX `TensorProto.DataType`.
    pub data_type: u64,
    /// Its dimensions.
    pub shape: Vec<i64>,
    /// Where its values begin in the model file, in bytes.
    pub offset: u64,
    /// How many bytes they are, little-endian.
    pub length: u64,
}

impl Outline {
    /// Reads the outline of the ONNX file in `path`.
    ///
    /// # Errors
    /// Any failure to read the file; [`ErrorKind::InvalidData`] or [`ErrorKind::UnexpectedEof`] if it is no ONNX
    /// file, or one of an unusual make. ONNX Runtime may still load it whole.
    pub fn read(path: &Path) -> Result<Self> {
        let location = path
            .file_name()
            .and_then(|name| name.to_str())
            .ok_or_else(|| malformed("a file name that is not Unicode"))?;
        Self::read_from(BufReader::new(File::open(path)?), location)
    }

    /// As [`Outline::read`], from an ONNX file called `location` that is open already.
    ///
    /// # Errors
    /// As for [`Outline::read`].
    pub fn read_from(mut input: impl BufRead + Seek, location: &str) -> Result<Self> {
        let end = input.seek(SeekFrom::End(0))?;
        input.rewind()?;
        let mut reader = Reader {
            input,
            position: 0,
            end,
            allowance: LARGEST_GRAPH,
        };
        let mut model = Vec::new();
        let mut graph = None;
        while reader.position < reader.end {
            match reader.key()? {
                Key(7, LENGTH_DELIMITED) if graph.is_none() => graph = Some(Graph::read(&mut reader)?),
                Key(7, _) => return Err(malformed("a second graph")),
                key => reader.copy(key, &mut model)?,
            }
        }
        let graph = graph.ok_or_else(|| malformed("no graph"))?;
        let (graph, tables) = graph.without_large_weights(&mut reader, location)?;
        put_message(7, &graph, &mut model);
        Ok(Self { graph: model, tables })
    }
}

/// A `GraphProto`, taken apart.
#[derive(Default)]
struct Graph {
    /// Everything but the weights, as it was.
    others: Vec<u8>,
    weights: Vec<Weight>,
    /// What each value is used for.
    roles: BTreeMap<String, WeightRole>,
}

/// What a value is used for by the operators that it goes into.
#[derive(Clone, Copy, PartialEq)]
enum WeightRole {
    /// All repack it.
    Repacked,
    /// All look rows up in it.
    Table,
    /// Some do something else with it, or not all the same.
    Other,
}

impl WeightRole {
    fn by(operator: &str) -> Self {
        match operator {
            LOOKUP => Self::Table,
            operator if REPACKING.contains(&operator) => Self::Repacked,
            _ => Self::Other,
        }
    }
}

/// A `TensorProto`, taken apart.
#[derive(Default)]
struct Weight {
    /// Everything but a large `raw_data`, as it was.
    others: Vec<u8>,
    name: String,
    data_type: u64,
    shape: Vec<i64>,
    /// Offset and length of a large `raw_data`.
    large: Option<(u64, u64)>,
}

impl Graph {
    fn read(reader: &mut Reader<impl BufRead + Seek>) -> Result<Self> {
        let mut graph = Self::default();
        let end = reader.message_end()?;
        while reader.position < end {
            match reader.key()? {
                Key(5, LENGTH_DELIMITED) => graph.weights.push(Weight::read(reader)?),
                Key(1, LENGTH_DELIMITED) => {
                    let node = reader.bytes()?;
                    graph.note_inputs(&node)?;
                    put_message(1, &node, &mut graph.others);
                }
                key => reader.copy(key, &mut graph.others)?,
            }
        }
        Ok(graph)
    }

    /// Notes which values the `NodeProto` in `bytes` reads.
    fn note_inputs(&mut self, bytes: &[u8]) -> Result<()> {
        let mut node = Reader::of(bytes);
        let mut inputs = Vec::new();
        let mut operator = String::new();
        while node.position < node.end {
            match node.key()? {
                Key(1, LENGTH_DELIMITED) => inputs.push(node.text()?),
                Key(4, LENGTH_DELIMITED) => operator = node.text()?,
                key => node.copy(key, &mut Vec::new())?,
            }
        }
        let found = WeightRole::by(&operator);
        for input in inputs {
            self.roles
                .entry(input)
                .and_modify(|known| {
                    if *known != found {
                        *known = WeightRole::Other;
                    }
                })
                .or_insert(found);
        }
        Ok(())
    }

    /// The `GraphProto` with its large weights external, in the file `location`, and its tables.
    fn without_large_weights(
        self,
        reader: &mut Reader<impl BufRead + Seek>,
        location: &str,
    ) -> Result<(Vec<u8>, Vec<Table>)> {
        let mut graph = self.others;
        let mut tables = Vec::new();
        for weight in self.weights {
            let Some((offset, length)) = weight.large else {
                put_message(5, &weight.others, &mut graph);
                continue;
            };
            let mut tensor = weight.others;
            match self.roles.get(&weight.name) {
                None | Some(WeightRole::Repacked) => put_external(location, offset, length, &mut tensor),
                Some(WeightRole::Table) => {
                    put_external(location, offset, length, &mut tensor);
                    tables.push(Table {
                        name: weight.name,
                        data_type: weight.data_type,
                        shape: weight.shape,
                        offset,
                        length,
                    });
                }
                Some(WeightRole::Other) => {
                    reader.seek(offset)?;
                    put_message(9, &reader.take(length)?, &mut tensor);
                }
            }
            put_message(5, &tensor, &mut graph);
        }
        Ok((graph, tables))
    }
}

impl Weight {
    fn read(reader: &mut Reader<impl BufRead + Seek>) -> Result<Self> {
        let mut weight = Self::default();
        let end = reader.message_end()?;
        while reader.position < end {
            match reader.key()? {
                Key(9, LENGTH_DELIMITED) => {
                    let length = reader.varint()?;
                    if length >= LARGE {
                        weight.large = Some((reader.position, length));
                        reader.seek(reader.after(length)?)?;
                    } else {
                        put_message(9, &reader.take(length)?, &mut weight.others);
                    }
                }
                Key(13 | 14, _) => return Err(malformed("weights in another file")),
                key => {
                    let start = weight.others.len();
                    reader.copy(key, &mut weight.others)?;
                    weight.note(&key, start)?;
                }
            }
        }
        Ok(weight)
    }

    /// Reads the field `key` that has just been copied to `others[start..]`.
    fn note(&mut self, key: &Key, start: usize) -> Result<()> {
        let mut field = Reader::of(&self.others[start..]);
        field.key()?;
        match key {
            Key(1, VARINT) => self.shape.push(field.varint()?.cast_signed()),
            Key(1, LENGTH_DELIMITED) => {
                let end = field.message_end()?;
                while field.position < end {
                    self.shape.push(field.varint()?.cast_signed());
                }
            }
            Key(2, VARINT) => self.data_type = field.varint()?,
            Key(8, LENGTH_DELIMITED) => self.name = field.text()?,
            _ => {}
        }
        Ok(())
    }
}

// ── Protocol Buffers ────────────────────────────────────────────────────────────────────────────────────────

/// A field's number and wire type.
#[derive(Clone, Copy)]
struct Key(u64, u64);

const VARINT: u64 = 0;
const FIXED_64: u64 = 1;
const LENGTH_DELIMITED: u64 = 2;
const FIXED_32: u64 = 5;

fn malformed(what: &str) -> Error {
    Error::new(ErrorKind::InvalidData, what)
}

struct Reader<R = BufReader<File>> {
    input: R,
    position: u64,
    end: u64,
    /// How many bytes may still be read: not those that are passed over.
    allowance: u64,
}

impl<'b> Reader<std::io::Cursor<&'b [u8]>> {
    fn of(bytes: &'b [u8]) -> Self {
        Self {
            input: std::io::Cursor::new(bytes),
            position: 0,
            end: bytes.len() as u64,
            allowance: bytes.len() as u64,
        }
    }
}

impl<R: BufRead + Seek> Reader<R> {
    fn varint(&mut self) -> Result<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            self.spend(1)?;
            let mut byte = [0];
            self.input.read_exact(&mut byte)?;
            self.position += 1;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] < 0x80 {
                return Ok(value);
            }
        }
        Err(malformed("a number of more than 64 bits"))
    }

    fn key(&mut self) -> Result<Key> {
        let key = self.varint()?;
        Ok(Key(key >> 3, key & 7))
    }

    /// Where the message that begins here ends.
    fn message_end(&mut self) -> Result<u64> {
        let length = self.varint()?;
        self.after(length)
    }

    /// The position `length` bytes further on.
    fn after(&self, length: u64) -> Result<u64> {
        self.position
            .checked_add(length)
            .filter(|&position| position <= self.end)
            .ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }

    fn spend(&mut self, bytes: u64) -> Result<()> {
        let left = self.allowance.checked_sub(bytes);
        self.allowance = left.ok_or_else(|| malformed("a graph that is too large"))?;
        Ok(())
    }

    /// The next `length` bytes.
    fn take(&mut self, length: u64) -> Result<Vec<u8>> {
        self.spend(length)?;
        let mut bytes = Vec::new();
        let read = self.input.by_ref().take(length).read_to_end(&mut bytes)? as u64;
        self.position += read;
        if read < length {
            return Err(ErrorKind::UnexpectedEof.into());
        }
        Ok(bytes)
    }

    /// The contents of a length-delimited field.
    fn bytes(&mut self) -> Result<Vec<u8>> {
        let length = self.varint()?;
        self.take(length)
    }

    fn text(&mut self) -> Result<String> {
        String::from_utf8(self.bytes()?).map_err(|_| malformed("a name that is not Unicode"))
    }

    /// Copies the field `key`, whose contents come next, to `output`.
    fn copy(&mut self, key: Key, output: &mut Vec<u8>) -> Result<()> {
        let contents = match key.1 {
            VARINT => {
                let value = self.varint()?;
                let mut bytes = Vec::new();
                put_varint(value, &mut bytes);
                bytes
            }
            FIXED_64 => self.take(8)?,
            FIXED_32 => self.take(4)?,
            LENGTH_DELIMITED => {
                put_message(key.0, &self.bytes()?, output);
                return Ok(());
            }
            _ => return Err(malformed("an unknown wire type")),
        };
        put_varint(key.0 << 3 | key.1, output);
        output.extend(contents);
        Ok(())
    }

    fn seek(&mut self, position: u64) -> Result<()> {
        self.input.seek(SeekFrom::Start(position))?;
        self.position = position;
        Ok(())
    }
}

fn put_varint(mut value: u64, output: &mut Vec<u8>) {
    while value >= 0x80 {
        output.push(value.to_le_bytes()[0] | 0x80);
        value >>= 7;
    }
    output.push(value.to_le_bytes()[0]);
}

fn put_message(field: u64, message: &[u8], output: &mut Vec<u8>) {
    put_varint(field << 3 | LENGTH_DELIMITED, output);
    put_varint(message.len() as u64, output);
    output.extend(message);
}

/// Adds to a `TensorProto` that its values are in the file `location`.
fn put_external(location: &str, offset: u64, length: u64, tensor: &mut Vec<u8>) {
    let entries = [
        ("location", location.to_owned()),
        ("offset", offset.to_string()),
        ("length", length.to_string()),
    ];
    for (key, value) in entries {
        let mut entry = Vec::new();
        put_message(1, key.as_bytes(), &mut entry);
        put_message(2, value.as_bytes(), &mut entry);
        put_message(13, &entry, tensor);
    }
    put_varint(14 << 3 | VARINT, tensor);
    put_varint(1, tensor); // EXTERNAL
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The bytes of a field that holds `contents`.
    fn message(field: u64, contents: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_message(field, contents, &mut bytes);
        bytes
    }

    fn number(field: u64, value: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        put_varint(field << 3 | VARINT, &mut bytes);
        put_varint(value, &mut bytes);
        bytes
    }

    fn node(operator: &str, inputs: &[&str]) -> Vec<u8> {
        let inputs = inputs.iter().map(|input| message(1, input.as_bytes()));
        let fields: Vec<_> = inputs.chain([message(4, operator.as_bytes())]).collect();
        message(1, &fields.concat())
    }

    /// An int8 weight.
    fn weight(name: &str, values: &[u8]) -> Vec<u8> {
        let fields = [
            number(1, values.len() as u64),
            number(1, 1),
            number(2, 3),
            message(8, name.as_bytes()),
            message(9, values),
        ];
        message(5, &fields.concat())
    }

    fn external(name: &str, offset: usize, length: usize) -> Vec<u8> {
        let entry = |key: &str, value: &str| {
            message(
                13,
                &[message(1, key.as_bytes()), message(2, value.as_bytes())].concat(),
            )
        };
        let fields = [
            number(1, length as u64),
            number(1, 1),
            number(2, 3),
            message(8, name.as_bytes()),
            entry("location", "model.onnx"),
            entry("offset", &offset.to_string()),
            entry("length", &length.to_string()),
            number(14, 1),
        ];
        message(5, &fields.concat())
    }

    /// Writes `bytes` as `model.onnx` and reads its outline.
    fn read(bytes: &[u8]) -> Result<Outline> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("model.onnx");
        std::fs::write(&path, bytes).unwrap();
        Outline::read(&path)
    }

    const SIZE: usize = 100_000;

    /// A model with a weight of each kind, after which a field of the model follows.
    fn model() -> Vec<u8> {
        let graph = [
            node("Gather", &["words", "ids"]),
            node("MatMul", &["x", "dense"]),
            node("Slice", &["positions"]),
            node("Add", &["y", "bias"]),
            weight("words", &[1; SIZE]),
            weight("dense", &[2; SIZE]),
            weight("positions", &[3; SIZE]),
            weight("bias", &[4; 10]),
        ];
        [number(1, 9), message(7, &graph.concat()), message(2, b"producer")].concat()
    }

    fn position(haystack: &[u8], needle: &[u8]) -> usize {
        let found = haystack.windows(needle.len()).position(|window| window == needle);
        found.unwrap()
    }

    #[test]
    fn large_weights_stay_in_the_file() {
        let model = model();
        let outline = read(&model).unwrap();
        let words = position(&model, &[1; SIZE]);
        let dense = position(&model, &[2; SIZE]);
        let graph = [
            node("Gather", &["words", "ids"]),
            node("MatMul", &["x", "dense"]),
            node("Slice", &["positions"]),
            node("Add", &["y", "bias"]),
            external("words", words, SIZE),
            external("dense", dense, SIZE),
            weight("positions", &[3; SIZE]),
            weight("bias", &[4; 10]),
        ];
        let expected = [number(1, 9), message(2, b"producer"), message(7, &graph.concat())].concat();
        assert!(outline.graph == expected);
        let table = Table {
            name: "words".into(),
            data_type: 3,
            shape: vec![100_000, 1],
            offset: words as u64,
            length: SIZE as u64,
        };
        assert_eq!(outline.tables, [table]);
    }

    #[test]
    fn a_weight_that_is_used_in_two_ways_stays_in_the_graph() {
        let graph = [
            node("Gather", &["words", "ids"]),
            node("MatMul", &["x", "words"]),
            weight("words", &[1; SIZE]),
        ];
        let model = message(7, &graph.concat());
        let outline = read(&model).unwrap();
        assert!(outline.graph == model);
        assert!(outline.tables.is_empty());
    }

    #[test]
    fn half_a_model_is_an_error() {
        let model = model();
        let middle_of_a_weight = position(&model, &[2; SIZE]) + SIZE / 2;
        for length in [0, 1, 3, 40, middle_of_a_weight, model.len() - 1] {
            assert!(read(&model[..length]).is_err(), "{length}");
        }
    }

    #[test]
    fn a_graph_that_is_no_outline_is_not_read_to_its_end() {
        let fields = message(2, &[0; 1 << 20]).repeat(17);
        let error = read(&[fields, model()].concat()).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn an_operator_is_noted_once_for_all_its_inputs() {
        // Its name for each of them would be 25 GB.
        let operator = "o".repeat(1 << 18);
        let inputs: Vec<_> = (0..100_000).map(|input| input.to_string()).collect();
        let inputs: Vec<_> = inputs.iter().map(String::as_str).collect();
        let model = message(7, &node(&operator, &inputs));
        assert_eq!(read(&model).unwrap().graph, model);
    }

    #[test]
    fn weights_that_are_elsewhere_already_are_left_to_onnx_runtime() {
        let model = message(7, &external("dense", 0, SIZE));
        assert_eq!(read(&model).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    proptest! {
        #[test]
        fn nonsense_is_an_error_or_an_outline(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
            let _ = read(&message(7, &bytes));
            let _ = read(&message(7, &message(5, &bytes)));
        }

        #[test]
        fn damage_anywhere_is_an_error_or_an_outline(place in any::<prop::sample::Index>(), byte in any::<u8>()) {
            let mut model = model();
            let place = place.index(model.len().min(300));
            model[place] = byte;
            let _ = read(&model);
        }
    }
}
