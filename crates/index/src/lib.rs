//! Memories of vectors and of traces: compare with them, remember, save and load. The modules, in the order in which they build on
//! each other:
//!
//! simd (kernels) → moment (times) → method (how traces are compared) → similarity (formulas) → shared (locks) → room (memory that may be refused) → top (the largest values) → vectors (codes, scan) → traces (words, postings, bounds, join) → memory
//! (either, as a scorer uses it) → persist (files).

pub mod simd;

mod moment;

pub mod method;

pub mod similarity;

pub mod shared;

mod room;

mod top;

pub mod vectors;

pub mod traces;

pub mod memory;

pub mod persist;
