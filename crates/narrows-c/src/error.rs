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
    /// It has no complete controller.
    #[error("`{0}` has no controller")]
    NoController(String),
    /// It has one that lacks something.
    #[error("the controller `{name}` of `{file}` lacks {lacks}")]
    Incomplete {
        /// As it was given.
        file: String,
        /// The controller's name.
        name: String,
        /// What it must have.
        lacks: &'static str,
    },
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
    /// It has no parameter of this name.
    #[error("`{file}` has no parameter `{name}`: it has {}", if known.is_empty() { "none" } else { known })]
    NoParameter {
        /// As it was given.
        file: String,
        /// The name that was asked for.
        name: String,
        /// Those that there are.
        known: String,
    },
    /// This is no value of the parameter.
    #[error("`{value}` is no value of the parameter `{name}` of `{file}`{}", if expected.is_empty() { String::new() } else { format!(", which is {expected}") })]
    NoValue {
        /// As it was given.
        file: String,
        /// The parameter's.
        name: String,
        /// As one wrote it.
        value: String,
        /// What values it has; empty if only the file knows.
        expected: &'static str,
    },
    /// It cannot be read.
    #[error("cannot read {file}: {error}")]
    Unreadable {
        /// As it was given.
        file: String,
        /// Why.
        error: std::io::Error,
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
                "`docs/how-to/controllers-in-c.md` lists what there is for BPF and modules of Linux: a field that a structure \
                 does not have is one that the simulator does not have; `controllers-in-plain-c.md`, what <narrows.h> has"
            }
            Error::Incomplete { .. } => {
                "`docs/how-to/controllers-in-c.md` and `controllers-in-plain-c.md` show whole ones"
            }
            Error::NoController(_) => {
                "write a `struct tcp_congestion_ops` in SEC(\".struct_ops\"), with ssthresh, undo_cwnd, and cong_avoid or \
                 cong_control; or NARROWS_CONTROLLER of <narrows.h>, with on_ack and on_congestion"
            }
            Error::NoPython(_) => "run it with `narrows run`, or as `narrows.run` in Python",
            Error::Python(_) => "`docs/how-to/controllers-in-python.md` shows one",
            Error::Several { .. } | Error::Unknown { .. } => {
                "say which: cc = { file = { path = \"…\", name = \"…\" } }"
            }
            Error::NoParameter { .. } => {
                "parameters are: in a module, `module_param`; in BPF, global `const volatile` numbers; with <narrows.h>, \
                 NARROWS_PARAMETER; in Python, attributes of the class that are numbers, true or false, or text"
            }
            Error::NoValue { .. } => "give a value of the type that the file declares",
            Error::Unreadable { .. } => "give the path of a file in C or Python",
            Error::Loading { .. } => "`docs/how-to/controllers-in-c.md` says what a file may do while it is loaded",
            Error::Io { .. } => "the variable XDG_CACHE_HOME says where it is made",
        }
    }
}
