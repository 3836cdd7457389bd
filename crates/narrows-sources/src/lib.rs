//! For build scripts: digests of the sources that results depend on, one of the engine and one of each component, so that
//! an edited controller makes stale only the results that used it. The module `code` says which edits count.
#![forbid(unsafe_code)]

mod code;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What of a crate decides results, by folder: code, and distributions of sizes.
const COUNTS: [(&str, &[&str]); 2] = [("src", &["rs", "c", "h"]), ("data", &["cdf"])];

/// Which sources. A path begins behind `crates/narrows-`: `core/src/cc`.
#[derive(Debug)]
pub struct Sources<'a> {
    /// Crates that make a run, without `narrows-`.
    pub crates: &'a [&'a str],
    /// Folders that decide nothing.
    pub without: &'a [&'a str],
    /// Files of these folders that do.
    pub but: &'a [&'a str],
    /// Folders in which each file, or folder, is a component, but for `mod.rs` and `shared`: (name, path). Components are called
    /// `name/stem`: `cc/cubic`.
    pub folders: &'a [(&'a str, &'a str)],
    /// Stems in these folders that belong to the engine.
    pub shared: &'a [&'a str],
    /// Single components, by name, and the path of their file or folder without an extension.
    pub single: &'a [(&'a str, &'a str)],
}

/// A component's own digest, and the words of its code: one that names another depends on it.
#[derive(Default)]
struct Component {
    digest: Digest,
    words: BTreeSet<String>,
}

impl Sources<'_> {
    /// Writes `sources.rs` into `OUT_DIR`: an expression `("engine's digest", &[("cc/cubic", "digest"), …])`, by name; the engine's
    /// digest is `NARROWS_ENGINE` for the compiler, too. Cargo is told to look at the sources again when they change.
    ///
    /// # Panics
    /// If a source cannot be read or parsed, or outside of a build script of one of the project's crates.
    pub fn write(&self) {
        let (engine, components) = self.digests(Path::new(".."));
        let out = PathBuf::from(std::env::var("OUT_DIR").expect("Cargo sets it")).join("sources.rs");
        fs::write(out, format!("({engine:?}, &{components:?})")).expect("Cargo's folder can be written");
        println!("cargo::rustc-env=NARROWS_ENGINE={engine}");
    }

    /// The engine's digest, and each component's by name; `crates` is the folder that holds the crates.
    fn digests(&self, crates: &Path) -> (String, Vec<(String, String)>) {
        let mut engine = Digest::default();
        let mut components: BTreeMap<String, Component> = BTreeMap::new();
        for (name, (part, extensions)) in self.crates.iter().flat_map(|name| COUNTS.map(|counts| (name, counts))) {
            let folder = crates.join(format!("narrows-{name}")).join(part);
            println!("cargo::rerun-if-changed={}", folder.display());
            for file in files(&folder) {
                let below = file.strip_prefix(&folder).expect("it was found there").display().to_string();
                let path = format!("{name}/{part}/{}", below.replace('\\', "/"));
                let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
                if !extensions.contains(&extension) || is_below(&path, self.without) && !is_below(&path, self.but) {
                    continue;
                }
                let words = code::words(&path, &fs::read_to_string(&file).expect("a source file can be read"));
                let add = |digest: &mut Digest| [&path].into_iter().chain(&words).for_each(|word| digest.add(word));
                match self.component(&path) {
                    None => add(&mut engine),
                    Some(name) => {
                        let component = components.entry(name).or_default();
                        add(&mut component.digest);
                        component.words.extend(words);
                    }
                }
            }
        }
        let digests = components.keys().map(|name| (name.clone(), with_dependencies(name, &components))).collect();
        (engine.text(), digests)
    }

    /// The component that a file belongs to; `None` for the engine's.
    fn component(&self, path: &str) -> Option<String> {
        let single = self
            .single
            .iter()
            .find(|(_, place)| path.strip_prefix(place).is_some_and(|rest| rest.starts_with(['/', '.'])));
        if let Some((name, _)) = single {
            return Some((*name).to_owned());
        }
        self.folders.iter().find_map(|(name, folder)| {
            let stem = path.strip_prefix(folder)?.strip_prefix('/')?.split(['/', '.']).next()?;
            (stem != "mod" && !self.shared.contains(&stem)).then(|| format!("{name}/{stem}"))
        })
    }
}

/// The digest of a component and of all that it names, and these name.
fn with_dependencies(name: &str, components: &BTreeMap<String, Component>) -> String {
    let mut found = BTreeSet::from([name]);
    let mut open = vec![name];
    while let Some(next) = open.pop() {
        let words = &components[next].words;
        for other in components.keys() {
            let stem = other.rsplit('/').next().expect("a split has a last part");
            if words.contains(stem) && found.insert(other) {
                open.push(other);
            }
        }
    }
    let mut digest = Digest::default();
    found.iter().for_each(|name| digest.add(&components[*name].digest.text()));
    digest.text()
}

fn is_below(path: &str, places: &[&str]) -> bool {
    places.iter().any(|place| path == *place || path.strip_prefix(place).is_some_and(|rest| rest.starts_with('/')))
}

/// Every file of a folder that is no test's, sorted.
fn files(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(folder) else { return vec![] };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    paths.retain(|path| path.file_stem().is_none_or(|stem| stem != "tests"));
    paths.into_iter().flat_map(|path| if path.is_dir() { files(&path) } else { vec![path] }).collect()
}

/// FNV-1a: it tells versions apart, it guards nothing.
struct Digest(u64);

impl Default for Digest {
    fn default() -> Digest {
        Digest(0xcbf2_9ce4_8422_2325)
    }
}

impl Digest {
    /// Adds a word, and its end.
    fn add(&mut self, word: &str) {
        for byte in word.bytes().chain([0]) {
            self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }

    /// Eight hexadecimal digits.
    fn text(&self) -> String {
        format!("{:08x}", self.0 >> 32)
    }
}

#[cfg(test)]
mod tests;
