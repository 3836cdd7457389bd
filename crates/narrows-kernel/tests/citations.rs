//! What the sources here cite stands in `docs/references.toml`.

use std::fs;
use std::path::Path;

/// The keys in the brackets of a line: names begin with a capital, links and indices do not stand in comments so.
fn citations(line: &str) -> impl Iterator<Item = &str> {
    let brackets = line.split('[').skip(1).filter_map(|rest| rest.split_once(']')).map(|(inner, _)| inner);
    let sources = brackets.filter(|inner| inner.starts_with(|first: char| first.is_ascii_uppercase()));
    sources.flat_map(|inner| inner.split(", ")).filter(|source| !source.starts_with('§'))
}

fn is_comment(line: &str) -> bool {
    ["//", "/*", "* "].iter().any(|mark| line.starts_with(mark)) || line.contains("/* ")
}

#[test]
fn every_citation_resolves() {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let references =
        fs::read_to_string(crate_folder.join("../../docs/references.toml")).expect("it is in the repository");
    let keys: Vec<&str> = references.lines().filter_map(|line| line.strip_prefix("[\"")?.strip_suffix("\"]")).collect();
    let mut found = 0;
    for folder in ["src", "src/bpf"] {
        for entry in fs::read_dir(crate_folder.join(folder)).expect("a folder of this crate") {
            let path = entry.expect("a folder of this crate").path();
            let Ok(text) = fs::read_to_string(&path) else { continue };
            for line in text.lines().map(str::trim).filter(|line| is_comment(line)) {
                for citation in citations(line) {
                    let known = keys.iter().filter_map(|key| citation.strip_prefix(key));
                    let resolves = known.into_iter().any(|rest| rest.is_empty() || rest.starts_with(' '));
                    assert!(resolves, "{} cites {citation}", path.display());
                    found += 1;
                }
            }
        }
    }
    assert!(found > 30, "only {found} citations were seen");
}
