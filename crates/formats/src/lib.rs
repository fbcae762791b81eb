//! What agents write, read as traces.
