//! Parameters of a controller in C: what its module declares by `module_param`, or its BPF program as global `const volatile`
//! numbers, which loaders of BPF set before a program is loaded.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::ops::Range;

use libloading::os::unix::Library as Shared;
use object::{Object, ObjectSection, ObjectSymbol, SectionKind};

use crate::{Error, Source};

const ENOENT: c_int = 2;
/// Memory for a value's text: `PAGE_SIZE` of Linux.
const PAGE: usize = 4_096;

type Set = unsafe extern "C-unwind" fn(*const c_char, *const c_char) -> c_int;
type KindOf = unsafe extern "C-unwind" fn(*const c_char) -> u32;
type Name = unsafe extern "C-unwind" fn(u32) -> *const c_char;
type Value = unsafe extern "C-unwind" fn(u32, *mut c_char);

/// Writes the values of constants into the library or object that was compiled, before it is loaded; gives back the parameters
/// that are none of these.
///
/// # Errors
/// If a value does not fit.
pub fn set_constants<'a>(source: &'a Source, bytes: &mut [u8]) -> Result<BTreeMap<&'a str, &'a str>, Error> {
    let places = constants(source, bytes);
    let mut others = BTreeMap::new();
    for (name, value) in &source.parameters {
        let Some((kind, place)) = places.get(name) else {
            others.insert(name.as_str(), value.as_str());
            continue;
        };
        let number = kind.bytes(value, place.len()).ok_or_else(|| no_value(source, name, value, kind.takes()))?;
        bytes[place.clone()].copy_from_slice(&number[..place.len()]);
    }
    Ok(others)
}

/// What a constant is, by the words before its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Unsigned,
    Signed,
    Switch,
    Real,
}

impl Kind {
    /// Of `__u32`, `unsigned int`, `bool`, `double`; nothing of pointers and what the file has a name for.
    fn of(words: &str) -> Option<Kind> {
        const REAL: [&str; 2] = ["double", "float"];
        const SIGNED: [&str; 13] = [
            "char", "short", "int", "long", "signed", "s8", "s16", "s32", "s64", "int8_t", "int16_t", "int32_t",
            "int64_t",
        ];
        const UNSIGNED: [&str; 11] =
            ["unsigned", "u8", "u16", "u32", "u64", "uint", "size_t", "uint8_t", "uint16_t", "uint32_t", "uint64_t"];
        let words: Vec<&str> = words.split_whitespace().map(|word| word.trim_start_matches("__")).collect();
        let is_one = |of: &[&str]| words.iter().any(|word| of.contains(word));
        let known = |word: &&str| {
            REAL.contains(word) || SIGNED.contains(word) || UNSIGNED.contains(word) || ["bool", "_Bool"].contains(word)
        };
        match () {
            () if words.is_empty() || !words.iter().all(known) => None,
            () if is_one(&["bool", "_Bool"]) => Some(Kind::Switch),
            () if is_one(&REAL) => Some(Kind::Real),
            () if is_one(&UNSIGNED) => Some(Kind::Unsigned),
            () => Some(Kind::Signed),
        }
    }

    fn takes(self) -> &'static str {
        match self {
            Kind::Unsigned => "a whole number, 0 or more, that fits",
            Kind::Signed => "a whole number that fits",
            Kind::Switch => "true or false",
            Kind::Real => "a number",
        }
    }

    /// The value in `size` bytes, the low ones first.
    fn bytes(self, text: &str, size: usize) -> Option<[u8; 16]> {
        let mut bytes = [0; 16];
        if self == Kind::Real {
            let number: f64 = text.parse().ok().filter(|number: &f64| number.is_finite())?;
            #[expect(clippy::cast_possible_truncation, reason = "the nearest of the smaller type")]
            match size {
                4 => bytes[..4].copy_from_slice(&(number as f32).to_le_bytes()),
                _ => bytes[..8].copy_from_slice(&number.to_le_bytes()),
            }
            return Some(bytes);
        }
        let number: i128 = match (self, text) {
            (Kind::Switch, "true") => 1,
            (Kind::Switch, "false") => 0,
            _ => match text.strip_prefix("0x") {
                Some(digits) => i128::from_str_radix(digits, 16).ok()?,
                None => text.parse().ok()?,
            },
        };
        let bits = 8 * size;
        let fits = match self {
            Kind::Switch => (0..2).contains(&number),
            Kind::Unsigned => (0..1i128 << bits).contains(&number),
            _ => (-(1i128 << (bits - 1))..1i128 << (bits - 1)).contains(&number),
        };
        fits.then(|| number.to_le_bytes())
    }

    /// What these bytes are, as text.
    fn text(self, bytes: &[u8]) -> String {
        let mut wide = [0; 8];
        wide[..bytes.len()].copy_from_slice(bytes);
        let (number, spare) = (u64::from_le_bytes(wide), 64 - 8 * bytes.len());
        match (self, bytes.len()) {
            (Kind::Unsigned, _) => number.to_string(),
            (Kind::Signed, _) => ((number << spare).cast_signed() >> spare).to_string(),
            (Kind::Switch, _) => (number != 0).to_string(),
            (Kind::Real, 4) => f32::from_le_bytes([wide[0], wide[1], wide[2], wide[3]]).to_string(),
            (Kind::Real, _) => f64::from_bits(number).to_string(),
        }
    }
}

/// Sets the parameters of a module, as `insmod` does.
///
/// # Errors
/// If there is none of a name, or a value is not one of it.
pub(crate) fn set(source: &Source, shared: &Shared, values: &BTreeMap<&str, &str>) -> Result<(), Error> {
    // SAFETY: `runtime.c` has it, of this type.
    let Ok(set) = (unsafe { shared.get::<Set>(b"narrows_set_parameter") }) else { return Err(lacks(source)) };
    for (name, value) in values {
        let text = |text: &str| CString::new(text.replace('\0', " ")).expect("it has no zero byte");
        let (c_name, c_value) = (text(name), text(value));
        // SAFETY: texts that end with zero.
        match unsafe { set(c_name.as_ptr(), c_value.as_ptr()) } {
            0 => {}
            error if error == -ENOENT => {
                let mut known: Vec<String> = of_module(source, shared)?.into_iter().map(|(name, _)| name).collect();
                known.extend(declared(source).into_iter().map(|(name, _)| name));
                known.sort();
                let (file, name) = (source.name.clone(), (*name).to_owned());
                return Err(Error::NoParameter { file, name, known: known.join(", ") });
            }
            _ => {
                // SAFETY: `runtime.c` has it, of this type, and the name ends with zero.
                let kind = unsafe { shared.get::<KindOf>(b"narrows_parameter_kind").map(|kind| kind(c_name.as_ptr())) };
                let takes = match kind {
                    Ok(0) => Kind::Unsigned.takes(),
                    Ok(1) => Kind::Signed.takes(),
                    Ok(2) => Kind::Switch.takes(),
                    Ok(3 | 4) => Kind::Real.takes(),
                    _ => "",
                };
                return Err(no_value(source, name, value, takes));
            }
        }
    }
    Ok(())
}

/// All parameters with their values, in the order of names.
///
/// # Errors
/// If the library has not what tells them.
pub(crate) fn all(source: &Source, shared: &Shared, bytes: &[u8]) -> Result<Vec<(String, String)>, Error> {
    let mut found = of_module(source, shared)?;
    found.extend(constants(source, bytes).into_iter().map(|(name, (kind, place))| (name, kind.text(&bytes[place]))));
    found.sort();
    Ok(found)
}

fn of_module(source: &Source, shared: &Shared) -> Result<Vec<(String, String)>, Error> {
    // SAFETY: `runtime.c` has both, of these types.
    let found =
        unsafe { (shared.get::<Name>(b"narrows_parameter_name"), shared.get::<Value>(b"narrows_parameter_value")) };
    let (Ok(name_of), Ok(value_of)) = found else { return Err(lacks(source)) };
    let mut parameters = vec![];
    for number in 0.. {
        // SAFETY: names are texts of the library; behind the last is none.
        let name = unsafe { name_of(number) };
        if name.is_null() {
            break;
        }
        let mut page: [c_char; PAGE] = [0; PAGE];
        // SAFETY: there is a parameter of this number, and its text ends with zero within a page, as the kernel asks.
        let text = |pointer| unsafe { CStr::from_ptr(pointer) }.to_string_lossy().into_owned();
        unsafe { value_of(number, page.as_mut_ptr()) };
        parameters.push((text(name), text(page.as_ptr())));
    }
    Ok(parameters)
}

fn lacks(source: &Source) -> Error {
    Error::Loading { file: source.name.clone(), message: "it has not the functions of `runtime.c`".to_owned() }
}

fn no_value(source: &Source, name: &str, value: &str, expected: &'static str) -> Error {
    Error::NoValue { file: source.name.clone(), name: name.to_owned(), value: value.to_owned(), expected }
}

/// Global constants that the compiler must read where they stand: names and kinds.
fn declared(source: &Source) -> Vec<(String, Kind)> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let of_line = |line: &str| {
        let line = line.trim_start();
        let rest = ["const volatile ", "volatile const "].iter().find_map(|start| line.strip_prefix(start))?;
        let before = rest.split(['=', ';']).next()?.trim_end();
        let name = before.rsplit(|letter| !is_part(letter)).next().filter(|name| !name.is_empty())?;
        Some((name.to_owned(), Kind::of(before.strip_suffix(name)?)?))
    };
    let texts = std::iter::once(&source.text).chain(source.others.values());
    texts.flat_map(|text| text.lines()).filter_map(of_line).collect()
}

/// Where they are in the library's file, by name. One that its compiler may have read already is none: `volatile` forbids that.
fn constants(source: &Source, bytes: &[u8]) -> BTreeMap<String, (Kind, Range<usize>)> {
    let Ok(file) = object::File::parse(bytes) else { return BTreeMap::new() };
    let place = |(name, kind): (String, Kind)| {
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(&name) && symbol.is_global())?;
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        let is_held = matches!(section.kind(), SectionKind::ReadOnlyData | SectionKind::Data);
        let (start, _) = section.file_range().filter(|_| is_held && [1, 2, 4, 8].contains(&symbol.size()))?;
        let start = usize::try_from(start + symbol.address().checked_sub(section.address())?).ok()?;
        let end = start + usize::try_from(symbol.size()).ok()?;
        (end <= bytes.len()).then_some((name, (kind, start..end)))
    };
    declared(source).into_iter().filter_map(place).collect()
}
