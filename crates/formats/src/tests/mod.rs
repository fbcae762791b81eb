//! Tests of the whole reader, by recordings and by what holds of any input.

mod recordings;
mod records;
mod sessions;
mod spans;
mod trials;
