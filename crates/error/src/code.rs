//! The codes of errors: one for each thing that a caller can do about an error.

named! {
    /// What a caller can do about an error. Its name is part of the public interface, and stays the same between versions.
    pub enum Code {
        /// Correct the trace.
        InvalidTrace = "ERR_INVALID_TRACE",
        /// Correct the argument: a text, a vector, messages or the input of a reader.
        InvalidInput = "ERR_INVALID_INPUT",
        /// Correct the option, or give it before the first use.
        InvalidOption = "ERR_INVALID_OPTION",
        /// Leave out the record, or correct it.
        InvalidRecord = "ERR_INVALID_RECORD",
        /// Install a model.
        ModelNotFound = "ERR_MODEL_NOT_FOUND",
        /// Reinstall the model, or use another one.
        ModelUnusable = "ERR_MODEL_UNUSABLE",
        /// Install ONNX Runtime, or another version of it.
        RuntimeUnusable = "ERR_RUNTIME_UNUSABLE",
        /// Begin with an empty memory, or correct the path.
        MemoryNotFound = "ERR_MEMORY_NOT_FOUND",
        /// Restore the file of the memory, or begin with an empty one.
        MemoryDamaged = "ERR_MEMORY_DAMAGED",
        /// Use a memory of the same method and model.
        MemoryMismatch = "ERR_MEMORY_MISMATCH",
        /// Look at the path, its permissions and the disk.
        Io = "ERR_IO",
        /// Free memory, or use less.
        OutOfMemory = "ERR_OUT_OF_MEMORY",
        /// Try the store again later.
        StoreUnavailable = "ERR_STORE_UNAVAILABLE",
        /// Name another table, or create what the store needs.
        StoreSchema = "ERR_STORE_SCHEMA",
        /// Score the traces again that the store must have.
        StoreDropped = "ERR_STORE_DROPPED",
        /// Look at the driver's error.
        Store = "ERR_STORE",
        /// Reinstall the package.
        AddonLoad = "ERR_ADDON_LOAD",
        /// Report a bug.
        Internal = "ERR_INTERNAL",
    }
}
