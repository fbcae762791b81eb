//! The fingerprint of a trace, by which the same trace is known again.

use twox_hash::XxHash3_128;

use crate::label::Fingerprint;

/// Hashes the fields of a trace that the scorer reads, as they are read: the order of keys and whatever else a trace has do not
/// matter. Each field comes with its length or its presence, so that no two traces hash the same bytes.
#[derive(Default)]
pub struct Contents(XxHash3_128);

impl Contents {
    /// Adds a text of `length` UTF-16 code units, of which `units` are the first.
    pub fn text(&mut self, length: usize, units: &[u16]) {
        self.0.write(&(length as u64).to_le_bytes());
        self.0.write(bytemuck::cast_slice(units));
    }

    /// Adds whether the next field is there.
    pub fn presence(&mut self, is_there: bool) {
        self.0.write(&[u8::from(is_there)]);
    }

    /// Adds a number.
    pub fn number(&mut self, number: f64) {
        // Adding 0 turns a negative zero into a plain one.
        self.0.write(&(number + 0.0).to_le_bytes());
    }

    /// The fingerprint of everything that was added.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.finish_128().to_be_bytes()
    }
}
