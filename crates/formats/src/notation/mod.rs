//! The notations of data that formats are written in, JSON and EDN, read into one flat [`Form`].

pub(crate) mod edn;
mod form;
pub(crate) mod json;
pub(crate) mod quoted;
mod stream;

pub(crate) use form::{Form, Item, Notation, Shape};
pub(crate) use stream::Values;

/// How deep values may be nested. Real histories, stack traces included, stay below ten.
const MAX_DEPTH: usize = 128;

/// A whole number, if it has at most 64 bits.
fn whole_number(token: &str) -> Option<Item<'_>> {
    let small = token.parse().map(Item::Int).ok();
    small.or_else(|| token.parse().map(Item::Uint).ok())
}

/// What follows these tokens, if the text begins with them, blanks between them aside: what sniffers
/// of JSON formats look for.
pub(crate) fn after_tokens<'a>(text: &'a str, tokens: &[&str]) -> Option<&'a str> {
    tokens.iter().try_fold(text, |rest, token| rest.trim_ascii_start().strip_prefix(token))
}
