//! Each controller has its page, each citation of controllers and queues its reference, each deviation its test.

use narrows_core::cc::SPECS;
use narrows_core::queue::aqm;
use std::fs;
use std::path::{Path, PathBuf};

fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn page(name: &str) -> String {
    read(&repository().join("docs/reference/algorithms").join(name).with_extension("md"))
}

/// Every file below `folder`, in order.
fn files_below(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder") {
            let path = entry.expect("a readable entry").path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// Where formulas stand: controllers, AQMs and schedulers.
fn algorithms() -> Vec<PathBuf> {
    ["cc", "queue"]
        .iter()
        .flat_map(|part| files_below(&repository().join("crates/narrows-core/src").join(part)))
        .collect()
}

/// A file of `docs/` as TOML.
fn table(name: &str) -> toml::Table {
    let path = repository().join("docs").join(name);
    read(&path).parse().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Whether the entry has this field, and a text in it.
fn says(entry: &toml::Value, field: &str) -> bool {
    entry.get(field).and_then(toml::Value::as_str).is_some_and(|text| !text.is_empty())
}

/// Citations such as `RFC 9438 §4.2`: what stands in brackets, is no link, and begins like a name.
fn citations(text: &str) -> Vec<String> {
    let mut found = Vec::new();
    for (position, _) in text.match_indices('[') {
        let Some(length) = text[position..].find(']') else { continue };
        let inner = &text[position + 1..position + length];
        let is_link = text[position + length + 1..].starts_with('(');
        let is_name = inner.starts_with(|c: char| c.is_uppercase()) || inner.starts_with("draft-");
        if is_name && !is_link && !inner.contains('[') {
            let pieces = inner.split([',', ';']).map(str::trim).filter(|piece| !piece.starts_with('§'));
            found.extend(pieces.map(str::to_owned));
        }
    }
    found
}

/// The comments of a source.
fn comments(source: &str) -> String {
    let spoken = source.lines().map(str::trim).filter(|line| line.starts_with("//"));
    spoken.map(|line| line.trim_start_matches(['/', '!']).trim()).collect::<Vec<_>>().join(" ")
}

#[test]
fn every_citation_resolves() {
    let references = table("references.toml");
    let check = |citation: &str, place: &str| {
        let known = references.keys().filter_map(|key| citation.strip_prefix(key.as_str()));
        assert!(known.into_iter().any(|rest| rest.is_empty() || rest.starts_with(' ')), "{place} cites {citation}");
    };
    for spec in SPECS {
        let page = page(spec.name);
        assert!(!citations(&page).is_empty(), "{}.md cites nothing", spec.name);
        let of_parameters = spec.parameters.iter().flat_map(|parameter| citations(parameter.about));
        let of_page = citations(&page).into_iter().chain(of_parameters);
        of_page.chain(spec.source.split(", ").map(str::to_owned)).for_each(|citation| check(&citation, spec.name));
    }
    for spec in aqm::SPECS {
        assert!(!citations(spec.source).is_empty(), "{} cites nothing", spec.name);
        let of_parameters = spec.parameters.iter().flat_map(|parameter| citations(parameter.about));
        citations(spec.source).into_iter().chain(of_parameters).for_each(|citation| check(&citation, spec.name));
    }
    for source in algorithms() {
        for citation in citations(&comments(&read(&source))) {
            check(&citation, &source.display().to_string());
        }
    }
}

#[test]
fn every_reference_says_what_and_where() {
    for (key, entry) in &table("references.toml") {
        for field in ["title", "authors", "where"] {
            assert!(says(entry, field), "{key}: no {field}");
        }
        assert!(entry.get("year").is_some_and(toml::Value::is_integer), "{key}: no year");
    }
}

#[test]
fn every_controller_has_a_page_that_names_its_parameters() {
    for spec in SPECS {
        let page = page(spec.name);
        assert!(page.starts_with(&format!("# {}\n", spec.title)), "{}", spec.name);
        for parameter in spec.parameters {
            assert!(page.contains(&format!("| `{}` |", parameter.name)), "{}: {}", spec.name, parameter.name);
        }
        let rows = page.lines().filter(|line| line.starts_with("| `")).count();
        assert_eq!(rows, spec.parameters.len(), "{}: the table has a row for each parameter and no other", spec.name);
    }
}

#[test]
fn every_deviation_is_pinned_by_a_test() {
    let table = table("deviations.toml");
    let crates = files_below(&repository().join("crates"));
    let code: String =
        crates.iter().filter(|path| path.extension().is_some_and(|e| e == "rs")).map(|p| read(p)).collect();
    for entry in table["deviation"].as_array().expect("a list of deviations") {
        for field in ["source", "difference", "reason", "test"] {
            assert!(says(entry, field), "no {field}: {entry}");
        }
        let test = entry["test"].as_str().expect("looked at above");
        // A script of packets is a test of its name.
        let is_script = crates.iter().any(|path| path.ends_with(format!("{test}.txt")));
        assert!(is_script || code.contains(&format!("fn {test}(")), "no test {test}");
    }
}
