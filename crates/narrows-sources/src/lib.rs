//! For build scripts: digests of the sources that results depend on, one of the engine and one of each component, so that
//! an edited controller makes stale only the results that used it. The module `code` says which edits count.
#![forbid(unsafe_code)]

mod code;
mod lock;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// What of a crate decides results: its code, and what its build script makes of that.
const PARTS: [&str; 2] = ["src", "build.rs"];
/// The files among these that count.
const EXTENSIONS: [&str; 3] = ["rs", "c", "h"];

/// Which sources. A path begins behind `crates/narrows-`: `core/src/cc`.
#[derive(Debug)]
pub struct Sources<'a> {
    /// Crates that make a run, without `narrows-`. The external crates that these name for use at run time count by their
    /// versions; what these use in turn does not.
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

/// A component's own digest, and the modules that its code names: one that names another depends on it.
#[derive(Default)]
struct Component {
    digest: Digest,
    modules: BTreeSet<String>,
}

/// The digest of these files, whole; Cargo is told to look at them again when they change.
///
/// # Panics
/// If one cannot be read.
pub fn of_files(files: &[&str]) -> String {
    let mut digest = Digest::default();
    for file in files {
        digest.add(&read(Path::new(file)));
    }
    digest.text()
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
        let lock = read(&crates.join("../Cargo.lock"));
        for name in self.crates {
            let package = format!("narrows-{name}");
            let manifest = read(&crates.join(&package).join("Cargo.toml"));
            lock::externals(&package, &manifest, &lock).iter().for_each(|external| engine.add(external));
            for part in PARTS.map(|part| crates.join(&package).join(part)) {
                // Cargo takes what is watched and is not there for changed, each time.
                if part.exists() {
                    println!("cargo::rerun-if-changed={}", part.display());
                    self.add(crates, files(&part), &mut engine, &mut components);
                }
            }
        }
        let digests = components.keys().map(|name| (name.clone(), with_dependencies(name, &components))).collect();
        (engine.text(), digests)
    }

    /// Adds these files, each to what it belongs to.
    fn add(
        &self,
        crates: &Path,
        files: Vec<PathBuf>,
        engine: &mut Digest,
        components: &mut BTreeMap<String, Component>,
    ) {
        for file in files {
            let path = file.strip_prefix(crates).expect("it was found there").display().to_string().replace('\\', "/");
            let path = path.strip_prefix("narrows-").expect("each crate's folder begins so");
            let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
            if !EXTENSIONS.contains(&extension) || is_below(path, self.without) && !is_below(path, self.but) {
                continue;
            }
            let words = code::words(path, &fs::read_to_string(&file).expect("a source file can be read"));
            let add = |digest: &mut Digest| {
                [path].into_iter().chain(words.iter().map(|word| &**word)).for_each(|word| digest.add(word))
            };
            match self.component(path) {
                None => add(engine),
                Some(name) => {
                    let component = components.entry(name).or_default();
                    add(&mut component.digest);
                    component.modules.extend(code::modules(&words).into_iter().map(str::to_owned));
                }
            }
        }
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
        let modules = &components[next].modules;
        for other in components.keys() {
            let stem = other.rsplit('/').next().expect("a split has a last part");
            if modules.contains(stem) && found.insert(other) {
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

/// A file that Cargo is to look at again when it changes.
fn read(path: &Path) -> String {
    println!("cargo::rerun-if-changed={}", path.display());
    fs::read_to_string(path).unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()))
}

/// A file, or every one of a folder that is no test's, sorted.
fn files(path: &Path) -> Vec<PathBuf> {
    if !path.is_dir() {
        return vec![path.to_owned()];
    }
    let entries = fs::read_dir(path).expect("a folder can be read");
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.expect("a folder can be read").path()).collect();
    paths.sort();
    paths.retain(|path| path.file_stem().is_none_or(|stem| stem != "tests"));
    paths.iter().flat_map(|path| files(path)).collect()
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
