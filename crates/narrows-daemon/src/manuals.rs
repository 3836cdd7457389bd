//! Manual pages and completions of shells, from what the command line itself says. Pages also have examples, files, exit status and
//! other pages.

mod more;

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command};
use clap_complete::{Shell, generate_to};
use clap_mangen::Man;

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
        let mut shown = without_help(command.clone());
        shown.build();
        pages(&shown, None, &manuals)?;
        for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
            generate_to(shell, &mut command, "narrowsd", &completions)?;
        }
        Ok(())
    };
    written().map_err(|error| Failure::failed(format!("{}: {error}", arguments.folder.display())))
}

/// The page of a command, and those of its commands.
fn pages(command: &Command, above: Option<&str>, folder: &Path) -> io::Result<()> {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let below: Vec<&Command> = command.get_subcommands().filter(|below| !below.is_hide_set()).collect();
    let names = below.iter().filter_map(|below| below.get_display_name());
    let mut page = vec![];
    let source = concat!("narrowsd ", env!("CARGO_PKG_VERSION"));
    Man::new(command.clone()).source(source).manual("Narrows").render(&mut page)?;
    more::sections(&name, above.into_iter().chain(names)).to_writer(&mut page)?;
    fs::write(folder.join(format!("{name}.1")), installed(&String::from_utf8_lossy(&page)))?;
    below.into_iter().try_for_each(|below| pages(below, Some(&name), folder))
}

/// Help texts name pages by their places in the sources.
fn installed(page: &str) -> String {
    ["docs/how\\-to", "docs/how-to", "docs/reference"]
        .iter()
        .fold(page.to_owned(), |page, folder| page.replace(folder, "/usr/share/doc/narrowsd"))
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
        for name in &names {
            let text = fs::read_to_string(folder.join("man1").join(name)).unwrap();
            for section in ["EXAMPLES", "FILES", "EXIT STATUS", "SEE ALSO"] {
                assert!(
                    text.contains(&format!(".SH \"{section}\"")) || text.contains(&format!(".SH {section}")),
                    "{name}: {section}"
                );
            }
            assert!(!text.contains("docs/"), "{name} names a page by its place in the sources: {text}");
            let also = text.rsplit_once("SEE ALSO").unwrap().1;
            let pages = also.replace("\\fB", " ").replace("\\fR", "").replace("\\-", "-");
            let mut named = 0;
            for word in pages.split([' ', ',', '\n']).filter(|word| word.ends_with(')')) {
                let (page, section) = word.trim_end_matches(')').split_once('(').expect(word);
                let is_of_another = more::OTHERS.iter().any(|&(other, of)| page == other && section == of.to_string());
                assert!(is_of_another || names.contains(&format!("{page}.{section}")), "{name}: {word}");
                named += 1;
            }
            assert!(named > more::OTHERS.len() || name == "narrowsd.1", "{name}: {also}");
            assert!(pages.contains("ip(8)"), "{name}: {also}");
        }
        assert!(!names.iter().any(|name| name.contains("inside-guest") || name.contains("help")), "{names:?}");
        let bash = fs::read_to_string(folder.join("completions/narrowsd.bash")).unwrap();
        assert!(bash.contains("--dry-run"), "{bash}");
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn examples_are_commands_that_are_understood() {
        for (page, examples) in more::EXAMPLES {
            for (line, _) in *examples {
                let words = line.split_whitespace().filter(|word| *word != "\\");
                let (place, words): (Vec<&str>, Vec<&str>) = words.partition(|word| word.starts_with("--net="));
                let words: Vec<&str> = words.into_iter().skip(usize::from(!place.is_empty())).collect();
                assert_eq!(words[0], "narrowsd", "{line}");
                crate::Arguments::command()
                    .try_get_matches_from(&words)
                    .unwrap_or_else(|error| panic!("{line}: {error}"));
                assert!(words.join("-").starts_with(page), "{line} is no example of {page}");
            }
        }
    }
}
