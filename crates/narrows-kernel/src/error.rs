//! What can go wrong, one variant for each thing that a caller can do about it.

use std::path::PathBuf;

use crate::said;

/// Why a controller could not be loaded, changed or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The kernel does not describe its types.
    #[error("this kernel does not describe its types: there is no /sys/kernel/btf/vmlinux")]
    NoBtf,
    /// The process may not do this.
    #[error("no privilege to {step}")]
    NoPrivileges {
        /// What was refused.
        step: &'static str,
    },
    /// Something that the programs need came later.
    #[error("this kernel is too old: it lacks {lacks}")]
    KernelTooOld {
        /// What it lacks.
        lacks: &'static str,
    },
    /// A controller of this name is there already.
    #[error("a controller named {name} is registered already")]
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
    /// Two values are in the wrong order.
    #[error("{least} = {low} is above {most} = {high}")]
    Disordered {
        /// The parameter that may not be above the other.
        least: &'static str,
        /// The other.
        most: &'static str,
        /// Its value.
        low: String,
        /// The other's.
        high: String,
    },
    /// A rate was left out, and no port of this host tells its own.
    #[error("{parameter} was left out, and no network device of this host states its rate")]
    NoLineRate {
        /// Which parameter.
        parameter: &'static str,
    },
    /// The kernel's verifier or its types refuse the program.
    #[error("the kernel refuses the program of {program}: {}\n{}", said::reason(said).unwrap_or_else(|| source.to_string()), said.join("\n"))]
    Rejected {
        /// Whose program: a controller's name, `connections` or `bridge`.
        program: &'static str,
        /// The first cause.
        source: libbpf_rs::Error,
        /// What libbpf and the verifier said, the last lines.
        said: Vec<String>,
    },
    /// Pins live in a file system of type bpf.
    #[error("{} is not in a bpf file system", folder.display())]
    NoBpfFileSystem {
        /// The folder that was to hold the pins.
        folder: PathBuf,
    },
    /// The folder holds pins already.
    #[error("{} holds pins already", folder.display())]
    AlreadyPinned {
        /// The folder that was to hold the pins.
        folder: PathBuf,
    },
    /// Maps are not as this version makes them.
    #[error("what is loaded of {controller} was made by another version")]
    OtherVersion {
        /// Whose maps.
        controller: &'static str,
    },
    /// A process that lives holds the registration: it ends with that process.
    #[error("{controller} is held by {}", processes(holders))]
    Held {
        /// Whose registration.
        controller: &'static str,
        /// Who holds it.
        holders: Vec<u32>,
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
    /// Processes have other numbers here than in the kernel's own PID namespace.
    #[error("this is a PID namespace of its own, where the processes of the host cannot be found")]
    OtherPids,
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
    /// What to do about it, where that is known: one line.
    pub fn help(&self) -> Option<String> {
        let help = match self {
            Error::NoBtf => "use a kernel that was built with CONFIG_DEBUG_INFO_BTF, as distributions' are",
            Error::NoPrivileges { .. } => {
                "run as root of the host: CAP_BPF and CAP_PERFMON load, CAP_SYS_ADMIN finds what is loaded"
            }
            Error::KernelTooOld { .. } => "Linux 6.1 is the oldest that works",
            Error::NameTaken { .. } => "unload it first",
            Error::NoLineRate { parameter } => return Some(format!("give it: {parameter}=10Gbps")),
            Error::NoBpfFileSystem { .. } => {
                "mount -t bpf bpf /sys/fs/bpf; `ip netns exec` hides it: enter a namespace by `nsenter --net=/run/netns/NAME`"
            }
            Error::AlreadyPinned { .. } => "unload them, or take another folder",
            Error::OtherPids => {
                "run it in the host's PID namespace: docker run --pid=host, or nsenter --target 1 --pid"
            }
            Error::OtherVersion { .. } => "unload it, and load it with this version",
            Error::File { source, .. } if source.kind() == std::io::ErrorKind::DirectoryNotEmpty => {
                "remove what else is in it, and try again"
            }
            Error::Disordered { least, most, .. } => return Some(format!("lower {least} or raise {most}")),
            Error::Held { holders, .. } => return Some(format!("end that process: kill {}", list(holders, " "))),
            _ => return None,
        };
        Some(help.to_owned())
    }

    /// `source` of `step`, told apart where the caller can do something about it.
    pub(crate) fn of(step: &'static str, source: libbpf_rs::Error) -> Error {
        match source.kind() {
            libbpf_rs::ErrorKind::PermissionDenied => Error::NoPrivileges { step },
            _ => Error::Bpf { step, source },
        }
    }

    /// Why the verifier refused a program, if that is what happened and its log says so.
    pub fn reason(&self) -> Option<String> {
        match self {
            Error::Rejected { said, .. } => said::reason(said),
            _ => None,
        }
    }

    /// A program was refused. The verifier answers with a log, and with the same error number as a lack of privileges.
    pub(crate) fn refused(program: &'static str, source: libbpf_rs::Error) -> Error {
        let said = said::lines();
        let has_log = said.iter().any(|line| line.contains("PROG LOAD LOG"));
        if source.kind() == libbpf_rs::ErrorKind::PermissionDenied && !has_log {
            return Error::NoPrivileges { step: "load BPF programs" };
        }
        Error::Rejected { program, source, said }
    }

    pub(crate) fn file(path: &std::path::Path) -> impl FnOnce(std::io::Error) -> Error + use<'_> {
        move |source| Error::File { path: path.to_owned(), source }
    }
}

fn processes(holders: &[u32]) -> String {
    format!("process{} {}", if holders.len() == 1 { "" } else { "es" }, list(holders, ", "))
}

fn list(holders: &[u32], between: &str) -> String {
    holders.iter().map(u32::to_string).collect::<Vec<_>>().join(between)
}
