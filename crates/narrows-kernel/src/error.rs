//! What can go wrong, one variant for each thing that a caller can do about it.

use std::path::PathBuf;

/// Why a controller could not be loaded, changed or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel does not describe its types.
    #[error(
        "this kernel has no /sys/kernel/btf/vmlinux: it was built without CONFIG_DEBUG_INFO_BTF; use a distribution's kernel"
    )]
    NoBtf,
    /// The process may not do this.
    #[error("no privilege to {step}: run as root, or with CAP_BPF, CAP_PERFMON and CAP_NET_ADMIN")]
    NoPrivileges {
        /// What was refused.
        step: &'static str,
    },
    /// Something that the programs need came later.
    #[error("this kernel is too old: it lacks {lacks}; Linux 6.1 is the oldest that works")]
    KernelTooOld {
        /// What it lacks.
        lacks: &'static str,
    },
    /// A controller of this name is there already.
    #[error("a controller named {name} is registered already: unload it first")]
    NameTaken {
        /// The registered name.
        name: &'static str,
    },
    /// There is no such controller.
    #[error("no controller `{name}`; there are {}", known.join(", "))]
    UnknownController {
        /// As given.
        name: String,
        /// All there are.
        known: Vec<&'static str>,
    },
    /// The controller has no such parameter.
    #[error("{controller} has no parameter `{name}`; it has {}", if known.is_empty() { "none".to_owned() } else { known.join(", ") })]
    UnknownParameter {
        /// Whose.
        controller: &'static str,
        /// As given.
        name: String,
        /// All it has.
        known: Vec<&'static str>,
    },
    /// The value is of another kind than the parameter.
    #[error("{parameter} takes {takes}")]
    WrongKind {
        /// Which parameter.
        parameter: &'static str,
        /// What it takes.
        takes: &'static str,
    },
    /// The value is outside the parameter's range.
    #[error("{parameter} = {value} is out of range: {least} to {most}")]
    OutOfRange {
        /// Which parameter.
        parameter: &'static str,
        /// The value with its unit.
        value: String,
        /// The least allowed.
        least: String,
        /// The greatest allowed.
        most: String,
    },
    /// A rate was left out, and no port of this host tells its own.
    #[error("{parameter} was left out, and no network device of this host states its rate: give it")]
    NoLineRate {
        /// Which parameter.
        parameter: &'static str,
    },
    /// The kernel's verifier or its types refuse the program.
    #[error("the kernel refuses the program of {controller}: {source}\n{}", said.join("\n"))]
    Rejected {
        /// Whose program.
        controller: &'static str,
        /// The first cause.
        source: libbpf_rs::Error,
        /// What libbpf and the verifier said, the last lines.
        said: Vec<String>,
    },
    /// Pins live in a file system of type bpf.
    #[error("{} is not in a bpf file system: mount -t bpf bpf /sys/fs/bpf", folder.display())]
    NoBpfFileSystem {
        /// The folder that was to hold the pins.
        folder: PathBuf,
    },
    /// The folder holds pins already.
    #[error("{} holds pins already: unload them, or take another folder", folder.display())]
    AlreadyPinned {
        /// The folder that was to hold the pins.
        folder: PathBuf,
    },
    /// Maps are not as this version makes them.
    #[error("what is loaded of {controller} was made by another version: unload it with that one")]
    OtherVersion {
        /// Whose maps.
        controller: &'static str,
    },
    /// There is nothing pinned here.
    #[error("nothing of {controller} is pinned in {}", folder.display())]
    NotPinned {
        /// Whose pins were sought.
        controller: &'static str,
        /// Where.
        folder: PathBuf,
    },
    /// A file could not be read, made or removed.
    #[error("{}: {source}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why.
        source: std::io::Error,
    },
    /// Another call to BPF failed.
    #[error("cannot {step}: {source}")]
    Bpf {
        /// What was tried.
        step: &'static str,
        /// Why it failed.
        source: libbpf_rs::Error,
    },
}

impl Error {
    /// `source` of `step`, told apart where the caller can do something about it.
    pub(crate) fn of(step: &'static str, source: libbpf_rs::Error) -> Error {
        match source.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => Error::NoPrivileges { step },
            _ => Error::Bpf { step, source },
        }
    }

    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error + use<'_> {
        move |source| Error::File { path: path.to_owned(), source }
    }
}
