//! What can be wrong with a controller in C.

/// Why a file is no controller that can be run.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// No compiler is installed.
    #[error("a controller in C needs a C compiler: {0} does not answer")]
    NoCompiler(String),
    /// The compiler refuses it; its messages have file and line.
    #[error("`{file}` does not compile:\n{messages}")]
    DoesNotCompile {
        /// As it was given.
        file: String,
        /// What the compiler says.
        messages: String,
    },
    /// Nobody in this process runs Python.
    #[error("`{0}` is in Python, which only the `narrows` command and library run")]
    NoPython(String),
    /// It is no controller in Python, or fails while it is loaded.
    #[error("{0}")]
    Python(String),
    /// It has no complete `struct tcp_congestion_ops`.
    #[error("`{0}` has no controller")]
    NoController(String),
    /// It has several.
    #[error("`{file}` has several controllers: {names}")]
    Several {
        /// As it was given.
        file: String,
        /// Their names.
        names: String,
    },
    /// It has none of this name.
    #[error("`{file}` has no controller called `{name}`: it has {names}")]
    Unknown {
        /// As it was given.
        file: String,
        /// The name that was asked for.
        name: String,
        /// Those that there are.
        names: String,
    },
    /// A folder or a file cannot be written or read.
    #[error("cannot compile `{file}`: {error}")]
    Io {
        /// As it was given.
        file: String,
        /// Why.
        error: std::io::Error,
    },
    /// The library cannot be loaded.
    #[error("cannot load what was made of `{file}`: {message}")]
    Loading {
        /// As it was given.
        file: String,
        /// Why.
        message: String,
    },
}

/// What a controller in C did while it ran, with its file and, where it is known, the line: the payload with which a run unwinds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Misbehaved(pub String);

impl Error {
    /// What to do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Error::NoCompiler(_) => "install one, such as Debian's package clang, or name one in the variable CC",
            Error::DoesNotCompile { .. } => {
                "a field that a structure does not have is one that the simulator does not have; \
                 `docs/how-to/controllers-in-c.md` lists what there is"
            }
            Error::NoController(_) => {
                "write a `struct tcp_congestion_ops` in SEC(\".struct_ops\"), with ssthresh, undo_cwnd, and cong_avoid or \
                 cong_control"
            }
            Error::NoPython(_) => "run it with `narrows run`, or as `narrows.run` in Python",
            Error::Python(_) => "`docs/how-to/controllers-in-python.md` shows one",
            Error::Several { .. } | Error::Unknown { .. } => {
                "say which: cc = { file = { path = \"…\", name = \"…\" } }"
            }
            Error::Io { .. } | Error::Loading { .. } => "the variable XDG_CACHE_HOME says where it is made",
        }
    }
}
