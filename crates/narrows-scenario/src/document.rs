//! The text as a tree of located values, and dotted paths into it.
//!
//! An arm is the file with some values replaced, so replacing happens here, before anything is judged: what stands at a
//! path then goes through the same reading as if it had been written there, and an error in it points at the place that
//! set it.

use std::borrow::Cow;
use std::ops::Range;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::error::{Judged, Problem};
use crate::experiment::File;
use crate::experiment::quantity::HELP;

/// A value of the text and where it stands.
pub(crate) type Value<'i> = Spanned<DeValue<'i>>;

/// A path as written, and where.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    pub(crate) text: String,
    pub(crate) span: Range<usize>,
}

/// A whole experiment file.
#[derive(Clone, Debug)]
pub(crate) struct Document<'i> {
    root: Value<'i>,
}

/// Keys of the file that a path may begin with; any other beginning is looked up in the topology.
const ROOTS: &[&str] = &["topology", "traffic", "event", "run", "sample", "cc", "ecn", "routing"];

/// Keys whose value is one component of several, by its name.
const COMPONENTS: &[&str] = &["cc", "aqm", "scheduler", "routing"];

fn key<'i>(text: &str, span: &Range<usize>) -> Spanned<Cow<'i, str>> {
    Spanned::new(span.clone(), Cow::Owned(text.to_owned()))
}

fn child<'a, 'i>(value: &'a Value<'i>, name: &str) -> Option<&'a Value<'i>> {
    match value.get_ref() {
        DeValue::Table(table) => table.get(name),
        _ => None,
    }
}

impl<'i> Document<'i> {
    /// Reads TOML.
    pub(crate) fn parse(text: &'i str) -> Judged<Document<'i>> {
        let root = DeTable::parse(text).map_err(|error| syntax(&error, text))?;
        let root = Spanned::new(root.span(), DeValue::Table(root.into_inner()));
        printable(&root)?;
        Ok(Document { root })
    }

    /// The file's shape, checked.
    pub(crate) fn file(&self) -> Judged<File> {
        let DeValue::Table(table) = self.root.get_ref().clone() else { unreachable!("a document is a table") };
        let deserializer = toml::Deserializer::from(Spanned::new(self.root.span(), table));
        serde::Deserialize::deserialize(deserializer).map_err(|error| translate(&error))
    }

    /// The value at these keys.
    pub(crate) fn value(&self, keys: &[&str]) -> Option<&Value<'i>> {
        keys.iter().try_fold(&self.root, |value, name| child(value, name))
    }

    /// The entries of the table at these keys, in the order of the text.
    pub(crate) fn entries(&self, keys: &[&str]) -> Vec<(Path, Value<'i>)> {
        self.value(keys).map(entries).unwrap_or_default()
    }

    /// The elements of the array at this key.
    pub(crate) fn elements(&self, name: &str) -> Vec<Value<'i>> {
        match self.value(&[name]).map(Spanned::get_ref) {
            Some(DeValue::Array(array)) => array.iter().cloned().collect(),
            _ => vec![],
        }
    }

    /// Takes the file's own keys with these names away.
    pub(crate) fn take_away(&mut self, names: &[&str]) {
        if let DeValue::Table(root) = self.root.get_mut() {
            for name in names {
                root.remove(*name);
            }
        }
    }

    /// Bytes of keys and values of the whole file.
    pub(crate) fn bytes(&self) -> u64 {
        bytes(&self.root)
    }

    /// Puts a value at a dotted path as `set` writes it: into the topology, or from one of the file's own keys.
    pub(crate) fn set(&mut self, path: &Path, value: &Value<'i>) -> Judged<()> {
        let segments: Vec<&str> = path.text.split('.').map(str::trim).collect();
        if segments.iter().any(|segment| segment.is_empty()) || segments.len() > 12 {
            let sentence = format!("`{}` is not a dotted path", path.text);
            return Err(Problem::new(sentence, "write it like \"fabric.aqm.threshold.mark-at\"").at(&path.span));
        }
        let (place, rest, what) = if ROOTS.contains(&segments[0]) {
            (&mut self.root, &segments[..], "the file".to_owned())
        } else {
            // The topology is a table of one entry, the named topology.
            let place = match self.root.get_mut() {
                DeValue::Table(root) => root.get_mut("topology"),
                _ => None,
            };
            let named = place.and_then(|topology| match topology.get_mut() {
                DeValue::Table(table) if table.len() == 1 => table.iter_mut().next(),
                _ => None,
            });
            match named {
                Some((name, place)) => {
                    let what = format!("[topology.{}]", name.get_ref());
                    (place, &segments[..], what)
                }
                // The file has no usable topology: say so where the topology should be.
                None => return Ok(()),
            }
        };
        descend(place, rest, what, path, value)
    }

    /// The keys that lead from the file's root to what the path sets.
    pub(crate) fn keys_of(&self, path: &Path) -> Vec<String> {
        let segments: Vec<&str> = path.text.split('.').map(str::trim).collect();
        let mut keys = vec![];
        if !ROOTS.contains(&segments[0])
            && let Some(DeValue::Table(table)) = self.value(&["topology"]).map(Spanned::get_ref)
        {
            keys.push("topology".to_owned());
            keys.extend(table.keys().map(|named| named.get_ref().to_string()));
        }
        keys.extend(segments.into_iter().map(str::to_owned));
        keys
    }

    /// Whether the path goes into a controller, an AQM, a scheduler or a routing policy other than the one that stands there: then
    /// it does not apply.
    /// Where none stands, a controller and a routing policy are another, and what a port has is made.
    pub(crate) fn is_of_another_component(&self, path: &Path) -> bool {
        let keys = self.keys_of(path);
        let is_place = |at: &usize| COMPONENTS.contains(&&*keys[*at]) && (*at == 0 || keys[at - 1] != "traffic");
        let Some(at) = (0..keys.len()).find(is_place) else { return false };
        let Some(wanted) = keys.get(at + 1) else { return false };
        let mut place = &self.root;
        let mut of = "";
        for segment in &keys[..=at] {
            let next = match place.get_ref() {
                DeValue::Array(array) => element(array.iter(), of, segment).and_then(|index| array.get(index)),
                _ => child(place, segment),
            };
            of = segment;
            match next {
                Some(next) => place = next,
                None => return matches!(&*keys[at], "cc" | "routing"),
            }
        }
        match place.get_ref() {
            DeValue::String(name) => name != wanted,
            DeValue::Table(table) => !table.contains_key(&**wanted),
            _ => false,
        }
    }

    /// Gives every traffic that arrives at random `exact = true`.
    pub(crate) fn make_exact(&mut self, span: &Range<usize>, value: bool) {
        let DeValue::Table(root) = self.root.get_mut() else { return };
        let Some(DeValue::Array(traffic)) = root.get_mut("traffic").map(Spanned::get_mut) else { return };
        for entry in traffic.iter_mut() {
            if let DeValue::Table(entry) = entry.get_mut()
                && entry.contains_key("arrivals")
            {
                entry.insert(key("exact", span), Spanned::new(span.clone(), DeValue::Boolean(value)));
            }
        }
    }
}

/// Bytes of a value's keys and values in the text: no blank space, no comments.
pub(crate) fn bytes(value: &Value<'_>) -> u64 {
    match value.get_ref() {
        DeValue::Table(table) => table.iter().map(|(key, value)| key.span().len() as u64 + bytes(value)).sum(),
        DeValue::Array(array) => array.iter().map(bytes).sum(),
        _ => value.span().len() as u64,
    }
}

/// The entries of a table, in the order of the text.
pub(crate) fn entries<'i>(value: &Value<'i>) -> Vec<(Path, Value<'i>)> {
    let DeValue::Table(table) = value.get_ref() else { return vec![] };
    let mut entries: Vec<_> = table
        .iter()
        .map(|(key, value)| (Path { text: key.get_ref().to_string(), span: key.span() }, value.clone()))
        .collect();
    entries.sort_by_key(|(path, _)| path.span.start);
    entries
}

/// Position of the element of an array that a segment names: by its `name`, or, of `traffic` for instance, `traffic-3` for the
/// third without one.
fn element<'a, 'i: 'a>(items: impl Iterator<Item = &'a Value<'i>>, of: &str, segment: &str) -> Option<usize> {
    let mut by_place = None;
    for (index, item) in items.enumerate() {
        match child(item, "name").map(Spanned::get_ref) {
            Some(DeValue::String(name)) if name == segment => return Some(index),
            Some(_) => {}
            None if segment == format!("{of}-{}", index + 1) => by_place = Some(index),
            None => {}
        }
    }
    by_place
}

fn descend<'i>(
    mut place: &mut Value<'i>,
    segments: &[&str],
    mut what: String,
    path: &Path,
    value: &Value<'i>,
) -> Judged<()> {
    for (depth, segment) in segments.iter().enumerate() {
        // `cc = "gemini"` and `cc = { gemini = {} }` are the same, as are `file = "a.c"` of it and `file = { path = "a.c" }`; a path
        // goes through the second.
        if let DeValue::String(text) = place.get_ref() {
            let entry = match &segments[..depth] {
                [.., "cc" | "routing"] => Some((key(text, &place.span()), DeValue::Table(DeTable::new()))),
                [.., "cc", "file"] => Some((key("path", &place.span()), DeValue::String(text.clone()))),
                _ => None,
            };
            if let Some((name, within)) = entry {
                let mut table = DeTable::new();
                table.insert(name, Spanned::new(place.span(), within));
                *place.get_mut() = DeValue::Table(table);
            }
        }
        if let DeValue::Array(array) = place.get_ref() {
            let of = depth.checked_sub(1).map_or("", |before| segments[before]);
            let Some(index) = element(array.iter(), of, segment) else {
                let name = |(index, item): (usize, &Value<'i>)| match child(item, "name").map(Spanned::get_ref) {
                    Some(DeValue::String(name)) => name.to_string(),
                    _ => format!("{of}-{}", index + 1),
                };
                let known = array.iter().enumerate().map(name).collect();
                return Err(Problem::unknown_path(&path.text, &what, segment, known).at(&path.span));
            };
            let DeValue::Array(array) = place.get_mut() else { unreachable!("seen above") };
            place = array.get_mut(index).expect("the position of one of its elements");
        } else {
            if !matches!(place.get_ref(), DeValue::Table(_)) {
                return Err(Problem::unknown_path(&path.text, &what, segment, vec![]).at(&path.span));
            }
            let DeValue::Table(table) = place.get_mut() else { unreachable!("seen above") };
            place = table
                .entry(key(segment, &path.span))
                .or_insert_with(|| Spanned::new(path.span.clone(), DeValue::Table(DeTable::new())));
        }
        what = format!("`{segment}`");
    }
    *place = value.clone();
    Ok(())
}

/// Refuses texts with control characters: names and titles end up on terminals.
fn printable(value: &Value<'_>) -> Judged<()> {
    let judge = |text: &str, span: Range<usize>| {
        let bad = text.chars().any(|character| character.is_control() && !"\n\t".contains(character));
        let problem = || Problem::new("a text holds a control character", "take it out, escapes such as \\u001b too");
        if bad { Err(problem().at(&span)) } else { Ok(()) }
    };
    match value.get_ref() {
        DeValue::String(text) => judge(text, value.span()),
        DeValue::Array(array) => array.iter().try_for_each(printable),
        DeValue::Table(table) => table.iter().try_for_each(|(key, value)| {
            judge(key.get_ref(), key.span())?;
            printable(value)
        }),
        _ => Ok(()),
    }
}

/// What is not TOML. The reader may point between two characters: one of them is shown.
fn syntax(error: &toml::de::Error, text: &str) -> Box<crate::error::Fault> {
    let span = error.span().unwrap_or(0..0);
    let start = span.start.min(text.len().saturating_sub(1));
    let sentence = error.message().lines().next().unwrap_or_default().trim_end_matches(':');
    let help = match sentence.contains("must be quoted") {
        true => "put texts and quantities in quotes: \"10s\"",
        false => "write TOML: `key = value` under `[tables]`, texts and quantities in quotes",
    };
    Problem::new(sentence, help).at(&(start..span.end.max(start + 1)))
}

/// The reader's error as a problem. Serde carries text only: the sentences about unknown keys and names are its own and
/// stable (`serde::de::Error::unknown_field`), ours separate sentence and help by [`HELP`].
fn translate(error: &toml::de::Error) -> Box<crate::error::Fault> {
    let span = error.span().unwrap_or(0..0);
    let message = error.message();
    let quoted = |text: &str| -> Vec<String> { text.split('`').skip(1).step_by(2).map(str::to_owned).collect() };
    if let Some((sentence, help)) = message.split_once(HELP) {
        return Problem::new(sentence, help).at(&span);
    }
    for (start, is_key) in [("unknown field `", true), ("unknown variant `", false)] {
        let Some((name, rest)) = message.strip_prefix(start).and_then(|rest| rest.split_once('`')) else { continue };
        return match is_key {
            true => Problem::unknown_key(name, quoted(rest)),
            false => Problem::unknown_name("choice", name, quoted(rest)),
        }
        .at(&span);
    }
    let sentence = message.lines().next().unwrap_or_default().trim_end_matches(':');
    if let Some(field) = sentence.strip_prefix("missing field ") {
        return Problem::new(format!("{field} is missing"), format!("add {field}")).at(&span);
    }
    let sentence = if let Some((found, expected)) =
        sentence.strip_prefix("invalid type: ").and_then(|rest| rest.split_once(", expected "))
    {
        format!("{} stands where {} belongs", plainly(found), plainly(expected))
    } else if let Some((found, expected)) =
        sentence.strip_prefix("invalid value: ").and_then(|rest| rest.split_once(", expected "))
    {
        format!("{} is out of range where {} belongs", plainly(found), plainly(expected))
    } else {
        sentence.to_owned()
    };
    Problem::malformed(sentence).at(&span)
}

/// Serde's words for kinds of values, in a user's words.
fn plainly(words: &str) -> String {
    match words {
        "u8" | "u16" | "u32" | "u64" | "i64" => "a whole number".to_owned(),
        "a boolean" => "true or false".to_owned(),
        "a string" => "a text".to_owned(),
        "a sequence" => "a list".to_owned(),
        "a map" | "map" => "a table".to_owned(),
        "sequence" => "a list".to_owned(),
        "unit variant" => "a name alone".to_owned(),
        "newtype variant" => "a name with its parameters, `{ name = { … } }`,".to_owned(),
        _ => match words.split_once(' ') {
            Some(("string", value)) => format!("the text {value}"),
            Some(("integer" | "boolean", value)) => value.to_owned(),
            Some(("floating", value)) => value.strip_prefix("point ").unwrap_or(value).to_owned(),
            Some(("struct", _)) => "a table".to_owned(),
            _ => words.to_owned(),
        },
    }
}
