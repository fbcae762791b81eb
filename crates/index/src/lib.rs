//! Memories of vectors and of traces: compare with them, remember, save and load. The modules, in the order in which they build on
//! each other:
//!
//! simd (kernels) → moment (times) → method (how traces are compared) → similarity (formulas) → room (memory that may be refused) → top
//! (the largest values) → vectors (codes, scan) → traces (words, postings, bounds, join) → persist (files) → shared (what memories have in
//! common, locks) → memory (either, as a scorer uses it).

pub mod simd;

mod moment;

pub mod method;

pub mod similarity;

mod room;

mod top;

pub mod vectors;

pub mod traces;

pub mod persist;

pub mod shared;

pub mod memory;
