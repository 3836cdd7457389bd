//! What of a source file can change a result: its code, without comments, tests, messages, and the lists of components.
//!
//! Dropped of Rust: comments and documentation; items under `#[cfg(test)]`; `#[error]`, `#[expect]` and `#[allow]`; the texts of
//! assertions, panics and `.expect`; the texts of descriptions (fields `title`, `about` and `source`, and what `parameters!` and
//! `row!` are given); `mod name;`; what a macro called `registry` is given. Dropped of C: comments. All else counts, layout aside.

use std::collections::BTreeSet;
use std::str::FromStr;

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// Macros whose texts are for people.
const MESSAGES: [&str; 10] = [
    "assert",
    "assert_eq",
    "assert_ne",
    "debug_assert",
    "debug_assert_eq",
    "debug_assert_ne",
    "panic",
    "todo",
    "unimplemented",
    "unreachable",
];
/// Fields of a description that are for people.
const DESCRIPTIONS: [&str; 3] = ["title", "about", "source"];
/// Macros that declare parameters or columns: each declaration is a list that ends with its description, or with that and `=`.
const DECLARATIONS: [&str; 2] = ["parameters", "row"];
/// Attributes that change no code.
const INERT: [&str; 4] = ["doc", "error", "expect", "allow"];

/// The words of a file that count.
///
/// # Panics
/// If it is Rust and does not parse.
pub(crate) fn words(path: &str, text: &str) -> Vec<String> {
    let mut found = vec![];
    if path.ends_with(".rs") {
        let tokens = TokenStream::from_str(text).unwrap_or_else(|error| panic!("{path} is no Rust: {error}"));
        rust(&tokens.into_iter().collect::<Vec<_>>(), &mut found);
    } else {
        found.extend(without_comments(text).split_whitespace().map(str::to_owned));
    }
    found
}

/// The modules and headers that these words may name: what stands in `use` or before `::`, and what C includes.
pub(crate) fn modules(words: &[String]) -> BTreeSet<&str> {
    let mut found = BTreeSet::new();
    let mut is_in_use = false;
    for (at, word) in words.iter().enumerate() {
        let (before, after) = (at.checked_sub(1).map_or("", |before| &words[before]), &words[at + 1..]);
        match word.as_str() {
            "use" => is_in_use = true,
            ";" => is_in_use = false,
            header if before == "#include" => found.extend(header.trim_matches('"').split('.').next()),
            name if is_in_use || after.starts_with(&[":".to_owned(), ":".to_owned()]) => {
                found.insert(name);
            }
            _ => {}
        }
    }
    found
}

fn rust(tokens: &[TokenTree], found: &mut Vec<String>) {
    let mut at = 0;
    while at < tokens.len() {
        let after = skip(tokens, at);
        if after > at {
            at = after;
            continue;
        }
        match &tokens[at] {
            TokenTree::Group(group) => {
                let (open, close) = match group.delimiter() {
                    Delimiter::Parenthesis => ("(", ")"),
                    Delimiter::Brace => ("{", "}"),
                    Delimiter::Bracket => ("[", "]"),
                    Delimiter::None => ("", ""),
                };
                found.push(open.into());
                let called =
                    |macros: &[&str]| at >= 2 && is_punct(&tokens[at - 1], '!') && is_ident(&tokens[at - 2], macros);
                let is_expect = at >= 2 && is_punct(&tokens[at - 2], '.') && is_ident(&tokens[at - 1], &["expect"]);
                let mut inside: Vec<TokenTree> = group.stream().into_iter().collect();
                let has_message = called(&MESSAGES) || is_expect;
                if has_message {
                    inside.retain(|token| !is_text(token));
                } else if called(&DECLARATIONS) {
                    inside = without_descriptions(&inside);
                }
                // A last comma is layout, but for a tuple of one.
                let is_comma = |token: &TokenTree| is_punct(token, ',');
                let is_one = open == "(" && !has_message && inside.iter().filter(|token| is_comma(token)).count() == 1;
                while !is_one && inside.last().is_some_and(is_comma) {
                    inside.pop();
                }
                rust(&inside, found);
                found.push(close.into());
            }
            other => found.push(other.to_string()),
        }
        at += 1;
    }
}

/// Where to go on behind what begins at `at` and does not count; `at` where it counts.
fn skip(tokens: &[TokenTree], at: usize) -> usize {
    let is = |offset: usize, mark: char| tokens.get(at + offset).is_some_and(|token| is_punct(token, mark));
    let named = |offset: usize, names: &[&str]| tokens.get(at + offset).is_some_and(|token| is_ident(token, names));
    if is(0, '#') {
        let inner = usize::from(is(1, '!'));
        let Some(TokenTree::Group(attribute)) = tokens.get(at + 1 + inner) else { return at };
        let words: Vec<TokenTree> = attribute.stream().into_iter().collect();
        if words.first().is_some_and(|word| is_ident(word, &INERT)) {
            return at + 2 + inner;
        }
        if attribute.stream().to_string().replace(' ', "") == "cfg(test)" {
            return end_of_item(tokens, at + 2 + inner);
        }
        return at;
    }
    if named(0, &["registry"]) && is(1, '!') && matches!(tokens.get(at + 2), Some(TokenTree::Group(_))) {
        return at + 3;
    }
    let visibility = usize::from(named(0, &["pub"]))
        + usize::from(named(0, &["pub"]) && matches!(tokens.get(at + 1), Some(TokenTree::Group(_))));
    if named(visibility, &["mod"]) && is(visibility + 2, ';') {
        return at + visibility + 3;
    }
    if named(0, &DESCRIPTIONS) && is(1, ':') && tokens.get(at + 2).is_some_and(is_text) {
        return at + 3;
    }
    at
}

/// Declarations without the text that ends each.
fn without_descriptions(tokens: &[TokenTree]) -> Vec<TokenTree> {
    let ends = |token: &TokenTree| is_punct(token, ';') || is_punct(token, '=');
    let is_description = |at: usize| {
        is_text(&tokens[at])
            && at.checked_sub(1).is_some_and(|before| is_punct(&tokens[before], ','))
            && tokens.get(at + 1).is_some_and(ends)
    };
    (0..tokens.len()).filter(|&at| !is_description(at)).map(|at| tokens[at].clone()).collect()
}

/// Behind an item: its further attributes, then up to its block or semicolon.
fn end_of_item(tokens: &[TokenTree], from: usize) -> usize {
    let ends = |token: &TokenTree| {
        is_punct(token, ';') || matches!(token, TokenTree::Group(group) if group.delimiter() == Delimiter::Brace)
    };
    tokens[from..].iter().position(ends).map_or(tokens.len(), |length| from + length + 1)
}

fn is_punct(token: &TokenTree, mark: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == mark)
}

fn is_ident(token: &TokenTree, names: &[&str]) -> bool {
    matches!(token, TokenTree::Ident(ident) if names.iter().any(|name| ident == name))
}

fn is_text(token: &TokenTree) -> bool {
    matches!(token, TokenTree::Literal(literal) if literal.to_string().ends_with('"'))
}

/// C without comments. Its texts hold no comment signs in our sources; one that did would only count too little of itself.
fn without_comments(text: &str) -> String {
    let mut kept = String::new();
    let mut rest = text;
    while let Some(begin) = rest.find("/*").into_iter().chain(rest.find("//")).min() {
        kept.push_str(&rest[..begin]);
        kept.push(' ');
        let (end, length) = if rest[begin..].starts_with("/*") { ("*/", 2) } else { ("\n", 1) };
        rest = rest[begin..].find(end).map_or("", |at| &rest[begin + at + length..]);
    }
    kept + rest
}
