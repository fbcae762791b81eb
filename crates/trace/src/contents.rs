//! The fingerprint of a trace, which identifies equal traces.
//!
//! It is the XXH3-128 of: `id`; the objective; the number of steps; each step's `type`, `content` and `tool.name`; `metadata.success` as a
//! byte; `metadata.task_domain`; `outcome.confidence`. A text is its length in UTF-16 code units as U64 and the units, at most 2^20 of the
//! objective and contents; a number is an F64; `content`, `tool.name` and `task_domain` follow a byte 1, or are a byte 0 where absent.

use twox_hash::XxHash3_128;

use crate::label::Fingerprint;

/// Hashes the fields of a trace that the scorer reads. The order of keys and other fields do not matter. Each field has its length or
/// presence before it, so different traces hash different bytes.
#[derive(Default)]
pub struct Contents(XxHash3_128);

impl Contents {
    /// Adds a text of `length` UTF-16 code units by its first `units`.
    pub fn text(&mut self, length: usize, units: &[u16]) {
        self.0.write(&(length as u64).to_le_bytes());
        self.0.write(bytemuck::cast_slice(units));
    }

    /// Adds the presence of the next field.
    pub fn presence(&mut self, is_there: bool) {
        self.0.write(&[u8::from(is_there)]);
    }

    /// Adds a number.
    pub fn number(&mut self, number: f64) {
        // Adding 0 turns a negative zero into a plain one.
        self.0.write(&(number + 0.0).to_le_bytes());
    }

    /// Returns the fingerprint.
    #[must_use]
    pub fn fingerprint(&self) -> Fingerprint {
        self.0.finish_128().to_be_bytes()
    }
}
