//! What a command ends with when it does not succeed.

use std::fmt::{self, Display};
use std::process::ExitCode;

/// Why a command ended without success: a sentence, what to do about it where that is known, and a code as all of
/// Narrows' commands have it.
#[derive(Debug)]
pub(crate) struct Failure {
    code: u8,
    sentence: String,
    help: Option<String>,
}

impl Failure {
    /// From its parts.
    pub(crate) fn new(code: u8, sentence: impl Display, help: Option<&str>) -> Failure {
        Failure { code, sentence: sentence.to_string(), help: help.map(str::to_owned) }
    }

    /// Code, sentence and help.
    pub(crate) fn parts(&self) -> (u8, &str, Option<&str>) {
        (self.code, &self.sentence, self.help.as_deref())
    }

    /// Something failed that might not have.
    pub(crate) fn failed(sentence: impl Display) -> Failure {
        Failure { code: 1, sentence: sentence.to_string(), help: None }
    }

    /// What was given cannot be used.
    pub(crate) fn input(sentence: impl Display) -> Failure {
        Failure { code: 2, ..Failure::failed(sentence) }
    }

    /// The machine lacks something.
    pub(crate) fn environment(sentence: impl Display) -> Failure {
        Failure { code: 3, ..Failure::failed(sentence) }
    }

    /// It was told to stop.
    pub(crate) fn interrupted() -> Failure {
        Failure { code: 130, ..Failure::failed("interrupted; nothing was written") }
    }

    /// With what to do about it.
    #[must_use]
    pub(crate) fn help(mut self, help: impl Display) -> Failure {
        self.help = Some(help.to_string());
        self
    }

    /// Says it on the error stream.
    pub(crate) fn report(self) -> ExitCode {
        eprintln!("error: {self}");
        ExitCode::from(self.code)
    }
}

/// The sentence, and what to do about it on a line of its own.
impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sentence)?;
        self.help.iter().try_for_each(|help| write!(f, "\n  help: {help}"))
    }
}
