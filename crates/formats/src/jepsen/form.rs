//! One value of an EDN or JSON text, flattened: its nodes in the order they were written.
//!
//! A reader fills the same [`Form`] again for every operation of a file, so that reading allocates
//! next to nothing, and a collection costs a node and not a box.

use std::ops::Range;

use isolario_model::ValueRef;
use rustc_hash::FxHashMap;

use super::quoted;

/// How a text writes its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Notation {
    Edn,
    Json,
}

impl Notation {
    /// A name that the format itself defines, as this notation writes it.
    pub(super) fn word(self, word: &str) -> String {
        match self {
            Notation::Edn => format!(":{word}"),
            Notation::Json => format!("\"{word}\""),
        }
    }

    /// A field and its value.
    pub(super) fn field(self, name: &str, value: &str) -> String {
        match self {
            Notation::Edn => format!(":{name} {value}"),
            Notation::Json => format!("\"{name}\": {value}"),
        }
    }
}

/// Something malformed, by its byte in the input.
#[derive(Debug)]
pub(super) struct Fault {
    pub(super) at: usize,
    pub(super) expected: String,
    pub(super) found: String,
}

impl Fault {
    pub(super) fn new(at: usize, expected: impl Into<String>, found: impl Into<String>) -> Fault {
        Fault { at, expected: expected.into(), found: found.into() }
    }

    /// A fault about whatever stands at a byte of the input.
    pub(super) fn here(input: &str, at: usize, expected: impl Into<String>) -> Fault {
        let found = match input.get(at..).unwrap_or("").chars().next() {
            Some(c) => format!("{c:?}"),
            None => "the end of the input".to_owned(),
        };
        Fault::new(at, expected, found)
    }
}

/// The collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shape {
    List,
    Vector,
    Set,
    Map,
}

impl Shape {
    fn brackets(self) -> (&'static str, char) {
        match self {
            Shape::List => ("(", ')'),
            Shape::Vector => ("[", ']'),
            Shape::Set => ("#{", '}'),
            Shape::Map => ("{", '}'),
        }
    }

    pub(super) fn close(self) -> char {
        self.brackets().1
    }
}

/// A node of a form.
#[derive(Clone, Copy, Debug)]
pub(super) enum Item<'a> {
    Nil,
    Bool(bool),
    Int(i64),
    /// Only what `Int` cannot hold.
    Uint(u64),
    Text(&'a str),
    /// A text with escapes, as a range of the form's scratch space.
    Unescaped(usize, usize),
    Keyword(&'a str),
    /// Symbols, characters and numbers that are not whole.
    Other(&'a str),
    /// A tag of the value that follows.
    Tag(&'a str),
    /// A collection, and the index one past its last node.
    Open(Shape, usize),
}

/// A value and all that is in it. The value itself is node 0.
#[derive(Debug)]
pub(super) struct Form<'a> {
    notation: Notation,
    nodes: Vec<(usize, Item<'a>)>,
    scratch: String,
    /// Collections that were rendered to stand for a single value, as ranges of the scratch space.
    rendered: FxHashMap<usize, Range<usize>>,
}

/// Filling.
impl<'a> Form<'a> {
    pub(super) fn new(notation: Notation) -> Self {
        let rendered = FxHashMap::default();
        Form { notation, nodes: Vec::new(), scratch: String::new(), rendered }
    }

    pub(super) fn clear(&mut self) {
        self.nodes.clear();
        self.scratch.clear();
        self.rendered.clear();
    }

    pub(super) fn push(&mut self, at: usize, item: Item<'a>) {
        self.nodes.push((at, item));
    }

    /// Ends the collection that was opened at a node with the last node pushed.
    pub(super) fn close(&mut self, node: usize) {
        let next = self.nodes.len();
        if let Some((_, Item::Open(_, end))) = self.nodes.get_mut(node) {
            *end = next;
        }
    }

    pub(super) fn truncate(&mut self, len: usize) {
        self.nodes.truncate(len);
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(super) fn scratch(&mut self) -> &mut String {
        &mut self.scratch
    }

    pub(super) fn notation(&self) -> Notation {
        self.notation
    }
}

/// Walking.
impl<'a> Form<'a> {
    pub(super) fn at(&self, node: usize) -> usize {
        self.nodes[node].0
    }

    pub(super) fn item(&self, node: usize) -> Item<'a> {
        self.nodes[node].1
    }

    /// The node after a value and all that is in it.
    pub(super) fn skip(&self, node: usize) -> usize {
        match self.item(self.untag(node)) {
            Item::Open(_, end) => end,
            _ => self.untag(node) + 1,
        }
    }

    /// The value under its tags.
    pub(super) fn untag(&self, mut node: usize) -> usize {
        while let Item::Tag(_) = self.item(node) {
            node += 1;
        }
        node
    }

    /// The collection's shape, if the value is one under its tags.
    pub(super) fn shape(&self, node: usize) -> Option<Shape> {
        match self.item(self.untag(node)) {
            Item::Open(shape, _) => Some(shape),
            _ => None,
        }
    }

    /// Whether the value is a vector or a list.
    pub(super) fn is_sequence(&self, node: usize) -> bool {
        matches!(self.shape(node), Some(Shape::Vector | Shape::List))
    }

    /// The values directly in a collection: keys and values in turn for a map.
    pub(super) fn children(&self, node: usize) -> impl Iterator<Item = usize> + use<'_, 'a> {
        let open = self.untag(node);
        let end = match self.item(open) {
            Item::Open(_, end) => end,
            _ => open + 1,
        };
        let mut next = open + 1;
        std::iter::from_fn(move || {
            let child = (next < end).then_some(next)?;
            next = self.skip(child);
            Some(child)
        })
    }

    /// The values of a sequence of exactly `N`.
    pub(super) fn exactly<const N: usize>(&self, node: usize) -> Option<[usize; N]> {
        if !self.is_sequence(node) {
            return None;
        }
        let mut nodes = [0; N];
        let mut children = self.children(node);
        for slot in &mut nodes {
            *slot = children.next()?;
        }
        children.next().is_none().then_some(nodes)
    }
}

/// Reading.
impl Form<'_> {
    /// A name: a keyword or a text. JSON writes keywords as texts.
    pub(super) fn word(&self, node: usize) -> Option<&str> {
        match self.item(node) {
            Item::Keyword(s) | Item::Text(s) => Some(s),
            Item::Unescaped(start, end) => self.scratch.get(start..end),
            _ => None,
        }
    }

    pub(super) fn is_nil(&self, node: usize) -> bool {
        matches!(self.item(node), Item::Nil)
    }

    /// Makes sure that [`Form::value`] can give a single value for the node: a collection is
    /// rendered as text.
    pub(super) fn prepare(&mut self, node: usize) {
        if !matches!(self.item(node), Item::Open(..) | Item::Tag(_))
            || self.rendered.contains_key(&node)
        {
            return;
        }
        let text = self.render(node);
        let start = self.scratch.len();
        self.scratch.push_str(&text);
        self.rendered.insert(node, start..self.scratch.len());
    }

    /// The node as a value. Collections and tagged values want [`Form::prepare`] first.
    pub(super) fn value(&self, node: usize) -> ValueRef<'_> {
        match self.item(node) {
            Item::Nil => ValueRef::Nil,
            Item::Bool(b) => ValueRef::Bool(b),
            Item::Int(i) => ValueRef::Int(i),
            Item::Uint(u) => ValueRef::Uint(u),
            Item::Text(s) => ValueRef::Text(s),
            Item::Unescaped(start, end) => ValueRef::Text(&self.scratch[start..end]),
            Item::Keyword(s) => ValueRef::Keyword(s),
            Item::Other(s) => ValueRef::Other(s),
            Item::Tag(_) | Item::Open(..) => {
                let range = self.rendered.get(&node).cloned();
                ValueRef::Other(range.map_or("", |range| &self.scratch[range]))
            }
        }
    }

    /// The text of a value in the form's notation, with single spaces and no comments: equal
    /// texts for equal values, as far as the order of maps and sets allows.
    pub(super) fn render(&self, node: usize) -> String {
        let mut out = String::new();
        // The collections that are open: one past their last node, and how many values they have.
        let mut open: Vec<(usize, Shape, usize)> = Vec::new();
        let mut tagged = false;
        for at in node..self.skip(node) {
            self.close_finished(at, &mut open, &mut out);
            if let Some((_, shape, count)) = open.last_mut()
                && !tagged
            {
                out.push_str(separator(self.notation, *shape, *count));
                *count += 1;
            }
            tagged = false;
            match self.item(at) {
                Item::Tag(tag) => {
                    out.push('#');
                    out.push_str(tag);
                    out.push(' ');
                    tagged = true;
                }
                Item::Open(shape, end) => {
                    out.push_str(shape.brackets().0);
                    open.push((end, shape, 0));
                }
                _ => self.render_scalar(at, &mut out),
            }
        }
        self.close_finished(self.skip(node), &mut open, &mut out);
        out
    }

    fn close_finished(&self, at: usize, open: &mut Vec<(usize, Shape, usize)>, out: &mut String) {
        while let Some((_, shape, _)) = open.pop_if(|(end, _, _)| *end <= at) {
            out.push(shape.close());
        }
    }

    fn render_scalar(&self, node: usize, out: &mut String) {
        match self.value(node) {
            ValueRef::Nil if self.notation == Notation::Json => out.push_str("null"),
            ValueRef::Text(text) => quoted::write(text, out),
            value => out.push_str(&value.to_string()),
        }
    }
}

fn separator(notation: Notation, shape: Shape, count: usize) -> &'static str {
    match (notation, shape) {
        _ if count == 0 => "",
        (Notation::Edn, _) => " ",
        (Notation::Json, Shape::Map) if count % 2 == 1 => ":",
        (Notation::Json, _) => ",",
    }
}
