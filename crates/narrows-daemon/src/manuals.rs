//! Manual pages and completions of shells, from what the command line itself says.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap::{Args, Command};
use clap_complete::{Shell, generate_to};

use crate::failure::Failure;

#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// Where to: `man1` and `completions` are made in it
    folder: PathBuf,
}

/// Writes them.
///
/// # Errors
/// Code 1 if a file cannot be written.
pub(crate) fn write(arguments: &Arguments, mut command: Command) -> Result<(), Failure> {
    let (manuals, completions) = (arguments.folder.join("man1"), arguments.folder.join("completions"));
    let mut written = || -> io::Result<()> {
        fs::create_dir_all(&manuals)?;
        fs::create_dir_all(&completions)?;
        // Before completions are made of it, which completes it by commands `help` that need no page.
        clap_mangen::generate_to(without_help(command.clone()), &manuals)?;
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            generate_to(shell, &mut command, "narrowsd", &completions)?;
        }
        Ok(())
    };
    written().map_err(|error| Failure::failed(format!("{}: {error}", arguments.folder.display())))
}

fn without_help(command: Command) -> Command {
    command.disable_help_subcommand(true).mut_subcommands(without_help)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn every_command_that_is_shown_has_a_page() {
        let folder = std::env::temp_dir().join(format!("narrowsd-manuals-{}", std::process::id()));
        write(&Arguments { folder: folder.clone() }, crate::Arguments::command()).unwrap();
        for name in
            ["narrowsd", "narrowsd-cc", "narrowsd-cc-route-add", "narrowsd-bridge-status", "narrowsd-near-source"]
        {
            let text = fs::read_to_string(folder.join(format!("man1/{name}.1"))).expect(name);
            assert!(text.contains(".SH SYNOPSIS"), "{text}");
        }
        let names: Vec<String> = fs::read_dir(folder.join("man1"))
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        assert!(!names.iter().any(|name| name.contains("inside-guest") || name.contains("help")), "{names:?}");
        let bash = fs::read_to_string(folder.join("completions/narrowsd.bash")).unwrap();
        assert!(bash.contains("--dry-run"), "{bash}");
        fs::remove_dir_all(&folder).unwrap();
    }
}
