//! Which versions of external crates a crate of ours is built with.

use std::collections::BTreeSet;

/// `name version` of each external crate that `package` names in its `manifest` for use at run time, by `Cargo.lock`, which lists
/// those of its tests and build script too.
///
/// # Panics
/// If the lock file does not have the package, or one that it depends on.
pub(crate) fn externals(package: &str, manifest: &str, lock: &str) -> Vec<String> {
    let named = at_run_time(manifest);
    let of = |name: &str, version: Option<&str>| {
        let mut all = lock.split("[[package]]").skip(1);
        all.find(|one| field(one, "name") == Some(name) && (version.is_none() || field(one, "version") == version))
            .unwrap_or_else(|| panic!("Cargo.lock has no {name}"))
    };
    let depends = of(package, None).lines().filter_map(|line| line.strip_prefix(" \"")?.strip_suffix("\","));
    // `name`, and where there are several versions `name version`.
    let depends =
        depends.map(|line| line.split_once(' ').map_or((line, None), |(name, version)| (name, Some(version))));
    depends
        .filter(|(name, _)| named.contains(name) && !name.starts_with("narrows-"))
        .map(|(name, version)| format!("{name} {}", field(of(name, version), "version").expect("Cargo writes it")))
        .collect()
}

/// The names below `[dependencies]` and `[target.….dependencies]`.
fn at_run_time(manifest: &str) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut is_dependencies = false;
    for line in manifest.lines() {
        if line.starts_with('[') {
            is_dependencies = line == "[dependencies]" || line.ends_with(".dependencies]");
        } else if is_dependencies {
            found.extend(line.split(['.', ' ', '=', '#']).next().filter(|name| !name.is_empty()));
        }
    }
    found
}

/// A text of an entry of `Cargo.lock`.
fn field<'a>(entry: &'a str, key: &str) -> Option<&'a str> {
    entry.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(" = \"")?.strip_suffix('"'))
}
