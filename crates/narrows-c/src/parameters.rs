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
type Name = unsafe extern "C-unwind" fn(u32) -> *const c_char;
type Value = unsafe extern "C-unwind" fn(u32, *mut c_char);

/// Writes the values of constants into the library or object that was compiled, before it is loaded; gives back the parameters that are none of these.
///
/// # Errors
/// If a value does not fit.
pub fn set_constants<'a>(source: &'a Source, bytes: &mut [u8]) -> Result<BTreeMap<&'a str, &'a str>, Error> {
    let places = constants(source, bytes);
    let mut others = BTreeMap::new();
    for (name, value) in &source.parameters {
        let Some(place) = places.get(name) else {
            others.insert(name.as_str(), value.as_str());
            continue;
        };
        let number =
            integer(value, place.len()).ok_or_else(|| no_value(source, name, value, "a whole number that fits"))?;
        bytes[place.clone()].copy_from_slice(&number.to_le_bytes()[..place.len()]);
    }
    Ok(others)
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
                known.extend(constant_names(source));
                known.sort();
                let (file, name) = (source.name.clone(), (*name).to_owned());
                return Err(Error::NoParameter { file, name, known: known.join(", ") });
            }
            _ => return Err(no_value(source, name, value, "")),
        }
    }
    Ok(())
}

/// All parameters with their values, in the order of names; of constants, of which only the file knows the type, as numbers
/// without a sign.
///
/// # Errors
/// If the library has not what tells them.
pub(crate) fn all(source: &Source, shared: &Shared, bytes: &[u8]) -> Result<Vec<(String, String)>, Error> {
    let mut found = of_module(source, shared)?;
    found.extend(constants(source, bytes).into_iter().map(|(name, place)| {
        let mut number = [0; 8];
        number[..place.len()].copy_from_slice(&bytes[place]);
        (name, u64::from_le_bytes(number).to_string())
    }));
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

/// A whole number, decimal, hexadecimal, `true` or `false`, that fits into as many bytes, with or without a sign.
fn integer(text: &str, bytes: usize) -> Option<i128> {
    let number = match text {
        "true" => 1,
        "false" => 0,
        _ => match text.strip_prefix("0x") {
            Some(digits) => i128::from_str_radix(digits, 16).ok()?,
            None => text.parse().ok()?,
        },
    };
    let bits = 8 * bytes;
    (-(1i128 << (bits - 1))..1i128 << bits).contains(&number).then_some(number)
}

/// The names of global constants that the compiler must read where they stand.
fn constant_names(source: &Source) -> impl Iterator<Item = String> {
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let declared = move |line: &str| {
        let line = line.trim_start();
        let is_constant = ["const volatile ", "volatile const "].iter().any(|start| line.starts_with(start));
        let before = line.split(['=', ';']).next().filter(|_| is_constant)?.trim_end();
        let name = before.rsplit(|letter| !is_part(letter)).next()?;
        (!name.is_empty()).then(|| name.to_owned())
    };
    let texts = std::iter::once(&source.text).chain(source.others.values());
    texts.flat_map(|text| text.lines()).filter_map(declared).collect::<Vec<_>>().into_iter()
}

/// Where they are in the library's file, by name. One that its compiler may have read already is none: `volatile` forbids that.
fn constants(source: &Source, bytes: &[u8]) -> BTreeMap<String, Range<usize>> {
    let Ok(file) = object::File::parse(bytes) else { return BTreeMap::new() };
    let place = |name: String| {
        let symbol = file.symbols().find(|symbol| symbol.name() == Ok(&name) && symbol.is_global())?;
        let section = file.section_by_index(symbol.section_index()?).ok()?;
        let is_held = matches!(section.kind(), SectionKind::ReadOnlyData | SectionKind::Data);
        let (start, _) = section.file_range().filter(|_| is_held && [1, 2, 4, 8].contains(&symbol.size()))?;
        let start = usize::try_from(start + symbol.address().checked_sub(section.address())?).ok()?;
        let end = start + usize::try_from(symbol.size()).ok()?;
        (end <= bytes.len()).then_some((name, start..end))
    };
    constant_names(source).filter_map(place).collect()
}
