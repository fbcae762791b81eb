//! Values of MessagePack, as LangGraph's checkpoints have them: an object of Python is an extension, whose third element is what makes it.

use knowledgepulse_json::{Object, Value};

/// Values are nested at most so deep.
const MOST_LEVELS: usize = 64;

/// Where an extension has the arguments of an object: behind its module and its class.
const ARGUMENTS: usize = 2;

/// Returns the value of these bytes; `None` if they are something else. Bytes within it are `null`.
pub fn value_of(bytes: &[u8]) -> Option<Value> {
    let mut bytes = Bytes(bytes);
    let value = bytes.value(MOST_LEVELS)?;
    bytes.0.is_empty().then_some(value)
}

struct Bytes<'b>(&'b [u8]);

impl<'b> Bytes<'b> {
    fn take(&mut self, length: usize) -> Option<&'b [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    /// Returns an unsigned number of so many bytes.
    fn number(&mut self, length: usize) -> Option<u64> {
        let bytes = self.take(length)?;
        Some(
            bytes
                .iter()
                .fold(0, |number, byte| number << 8 | u64::from(*byte)),
        )
    }

    /// Returns a length of 1, 2, 4 bytes, as the lowest bits of a kind say.
    fn length(&mut self, power: u8) -> Option<usize> {
        usize::try_from(self.number(1 << power)?).ok()
    }

    #[allow(clippy::cast_precision_loss, clippy::cast_possible_wrap)] // Numbers are doubles.
    fn value(&mut self, levels: usize) -> Option<Value> {
        let kind = *self.take(1)?.first()?;
        Some(match kind {
            0x00..=0x7f => f64::from(kind).into(),
            0x80..=0x8f => self.map(usize::from(kind & 0xf), levels)?,
            0x90..=0x9f => self.list(usize::from(kind & 0xf), levels)?,
            0xa0..=0xbf => self.text(usize::from(kind & 0x1f))?,
            0xc0 => Value::Null,
            0xc2 | 0xc3 => (kind == 0xc3).into(),
            0xc4..=0xc6 => {
                let length = self.length(kind - 0xc4)?;
                self.take(length)?;
                Value::Null
            }
            0xc7..=0xc9 => {
                let length = self.length(kind - 0xc7)?;
                self.extension(length, levels)?
            }
            0xca => f64::from(f32::from_bits(u32::try_from(self.number(4)?).ok()?)).into(),
            0xcb => f64::from_bits(self.number(8)?).into(),
            0xcc..=0xcf => (self.number(1 << (kind - 0xcc))? as f64).into(),
            0xd0..=0xd3 => {
                let length = 1 << (kind - 0xd0);
                let shift = 64 - 8 * length as u32;
                (((self.number(length)? << shift) as i64 >> shift) as f64).into()
            }
            0xd4..=0xd8 => self.extension(1 << (kind - 0xd4), levels)?,
            0xd9..=0xdb => {
                let length = self.length(kind - 0xd9)?;
                self.text(length)?
            }
            0xdc | 0xdd => {
                let length = self.length(kind - 0xdb)?;
                self.list(length, levels)?
            }
            0xde | 0xdf => {
                let length = self.length(kind - 0xdd)?;
                self.map(length, levels)?
            }
            0xe0..=0xff => f64::from(kind as i8).into(),
            0xc1 => return None,
        })
    }

    fn text(&mut self, length: usize) -> Option<Value> {
        Some(String::from_utf8_lossy(self.take(length)?).into_owned().into())
    }

    fn list(&mut self, length: usize, levels: usize) -> Option<Value> {
        let levels = levels.checked_sub(1)?;
        let elements: Option<Vec<Value>> = (0..length).map(|_| self.value(levels)).collect();
        elements.map(Value::from)
    }

    fn map(&mut self, length: usize, levels: usize) -> Option<Value> {
        let levels = levels.checked_sub(1)?;
        let mut fields = Object::new();
        for _ in 0..length {
            let (name, value) = (self.value(levels)?, self.value(levels)?);
            let name = name.as_text().cloned();
            fields.insert(name.unwrap_or_default(), value);
        }
        Some(fields.into())
    }

    /// Returns the arguments of an object of Python.
    fn extension(&mut self, length: usize, levels: usize) -> Option<Value> {
        self.take(1)?;
        let mut inner = Bytes(self.take(length)?);
        let object = inner.value(levels.checked_sub(1)?);
        let arguments = object
            .as_ref()
            .and_then(|object| object.as_array()?.get(ARGUMENTS));
        Some(arguments.cloned().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn value_of_reads_each_kind_and_refuses_what_is_cut() {
        let bytes: &[u8] = b"\x85\xa1a\x01\xa1b\x92\xff\xd1\xff\x00\xa1c\xcb\x3f\xf8\0\0\0\0\0\0\xa1d\xd9\x02\xc3\xa9\xa1e\xc7\x08\x05\x94\xa1m\xa1C\x81\xa1x\xc3\xc0";
        let whole = value_of(bytes).map(|value| value.to_json());
        assert_eq!(whole, None);
        let bytes: &[u8] = b"\x85\xa1a\x01\xa1b\x92\xff\xd1\xff\x00\xa1c\xcb\x3f\xf8\0\0\0\0\0\0\xa1d\xd9\x02\xc3\xa9\xa1e\xc7\x0a\x05\x94\xa1m\xa1C\x81\xa1x\xc3\xc0";
        let whole = value_of(bytes).map(|value| value.to_json());
        assert_eq!(
            whole.as_deref(),
            Some(r#"{"a":1,"b":[-1,-256],"c":1.5,"d":"é","e":{"x":true}}"#)
        );
        for length in 0..bytes.len() {
            assert_eq!(value_of(&bytes[..length]), None, "{length}");
        }
        assert_eq!(value_of(&[0x91; 1000]), None);
        assert_eq!(value_of(b"\xdd\xff\xff\xff\xff\xc0"), None);
    }
}
