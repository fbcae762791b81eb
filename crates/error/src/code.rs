//! The codes of errors: one for each thing that a caller can do about an error.

/// What a caller can do about an error. Its [name](Code::name) is part of the public interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Code {
    /// Correct the trace.
    InvalidTrace,
    /// Correct the vector.
    InvalidVector,
    /// Correct the argument: a text, messages or the input of a reader.
    InvalidInput,
    /// Correct the option.
    InvalidOption,
    /// Leave out the record, or correct it.
    InvalidRecord,
    /// Configure the embedder before its first use.
    AlreadyConfigured,
    /// Install a model.
    ModelNotFound,
    /// Reinstall the model, or look at the permissions of its files.
    ModelDamaged,
    /// Use another model or engine.
    ModelUnsupported,
    /// Install ONNX Runtime.
    RuntimeNotFound,
    /// Use another ONNX Runtime.
    RuntimeUnusable,
    /// Begin with an empty memory, or correct the path.
    MemoryNotFound,
    /// Restore the file of the memory, or begin with an empty one.
    MemoryDamaged,
    /// Use a memory of the same method and model.
    MemoryMismatch,
    /// Look at the path, its permissions and the disk.
    MemoryIo,
    /// Free memory, or use less.
    OutOfMemory,
    /// Try the store again later.
    StoreUnavailable,
    /// Name another table, or create what the store needs.
    StoreSchema,
    /// Score the traces again that the store must have.
    StoreDropped,
    /// Look at the driver's error.
    Store,
    /// Reinstall the package.
    AddonLoad,
    /// Report a bug.
    Internal,
    /// Nothing: the caller has cancelled the call, and gets the signal's reason instead.
    Aborted,
}

impl Code {
    /// Every code that a user can see.
    pub const PUBLIC: [Self; 22] = [
        Self::InvalidTrace,
        Self::InvalidVector,
        Self::InvalidInput,
        Self::InvalidOption,
        Self::InvalidRecord,
        Self::AlreadyConfigured,
        Self::ModelNotFound,
        Self::ModelDamaged,
        Self::ModelUnsupported,
        Self::RuntimeNotFound,
        Self::RuntimeUnusable,
        Self::MemoryNotFound,
        Self::MemoryDamaged,
        Self::MemoryMismatch,
        Self::MemoryIo,
        Self::OutOfMemory,
        Self::StoreUnavailable,
        Self::StoreSchema,
        Self::StoreDropped,
        Self::Store,
        Self::AddonLoad,
        Self::Internal,
    ];

    /// Returns the name, which stays the same between versions.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::InvalidTrace => "ERR_INVALID_TRACE",
            Self::InvalidVector => "ERR_INVALID_VECTOR",
            Self::InvalidInput => "ERR_INVALID_INPUT",
            Self::InvalidOption => "ERR_INVALID_OPTION",
            Self::InvalidRecord => "ERR_INVALID_RECORD",
            Self::AlreadyConfigured => "ERR_ALREADY_CONFIGURED",
            Self::ModelNotFound => "ERR_MODEL_NOT_FOUND",
            Self::ModelDamaged => "ERR_MODEL_DAMAGED",
            Self::ModelUnsupported => "ERR_MODEL_UNSUPPORTED",
            Self::RuntimeNotFound => "ERR_RUNTIME_NOT_FOUND",
            Self::RuntimeUnusable => "ERR_RUNTIME_UNUSABLE",
            Self::MemoryNotFound => "ERR_MEMORY_NOT_FOUND",
            Self::MemoryDamaged => "ERR_MEMORY_DAMAGED",
            Self::MemoryMismatch => "ERR_MEMORY_MISMATCH",
            Self::MemoryIo => "ERR_MEMORY_IO",
            Self::OutOfMemory => "ERR_OUT_OF_MEMORY",
            Self::StoreUnavailable => "ERR_STORE_UNAVAILABLE",
            Self::StoreSchema => "ERR_STORE_SCHEMA",
            Self::StoreDropped => "ERR_STORE_DROPPED",
            Self::Store => "ERR_STORE",
            Self::AddonLoad => "ERR_ADDON_LOAD",
            Self::Internal => "ERR_INTERNAL",
            Self::Aborted => "ERR_ABORTED",
        }
    }
}
