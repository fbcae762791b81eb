//! Memories of vectors and of traces: compare with them, remember, save and load. The modules, in the order in which they build on
//! each other:
//!
//! moment (times) → method (how traces are compared) → options (bounds, origins) → similarity (formulas) → room (memory that may be refused) →
//! top (the largest values) → scaled, rows (vectors, and a queue of them) → scan (search among them) → document (a remembered trace) → persist
//! (files) → shared (what memories have in common, locks) → vectors → traces (words, postings, candidates, join) → memory (either, as a scorer
//! uses it).

mod moment;

pub mod method;

pub mod options;

pub mod similarity;

mod room;

mod top;

pub mod scaled;

mod rows;

pub mod scan;

mod document;

pub mod persist;

pub mod shared;

pub mod vectors;

pub mod traces;

pub mod memory;
