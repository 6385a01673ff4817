//! One value of an EDN or JSON text, flattened: its nodes in the order they were written.
//!
//! A reader fills the same [`Form`] again for every operation of a file, so that reading allocates
//! next to nothing, and a collection costs a node and not a box.

use isolario_model::{Value, ValueRef};
use rustc_hash::FxHashMap;

use super::quoted;
use crate::error::Fault;

/// How a text writes its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Notation {
    Edn,
    Json,
}

impl Notation {
    /// A name that the format itself defines, as this notation writes it.
    pub(crate) fn word(self, word: &str) -> String {
        match self {
            Notation::Edn => format!(":{word}"),
            Notation::Json => format!("\"{word}\""),
        }
    }

    /// A field and its value.
    pub(crate) fn field(self, name: &str, value: &str) -> String {
        match self {
            Notation::Edn => format!(":{name} {value}"),
            Notation::Json => format!("\"{name}\": {value}"),
        }
    }
}

/// The collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
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

    pub(crate) fn close(self) -> char {
        self.brackets().1
    }
}

/// A node of a form.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Item<'a> {
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
pub(crate) struct Form<'a> {
    notation: Notation,
    nodes: Vec<(usize, Item<'a>)>,
    scratch: String,
    /// What nodes stand for that are not values as they are: collections, and more where a format
    /// says so.
    kept: FxHashMap<usize, Value>,
    /// Whether objects may stand for decimals and rows. They do not in version 1 of JSON lines,
    /// where such objects are texts like all others.
    pub(crate) has_rows: bool,
    /// Whether long vectors of numbers are only passed where they are the values of operations
    /// `[function key value]`: their nodes then have no children.
    pub(crate) skims: bool,
}

/// Filling.
impl<'a> Form<'a> {
    pub(crate) fn new(notation: Notation) -> Self {
        let kept = FxHashMap::default();
        Form {
            notation,
            nodes: Vec::new(),
            scratch: String::new(),
            kept,
            has_rows: true,
            skims: false,
        }
    }

    pub(crate) fn clear(&mut self) {
        self.nodes.clear();
        self.scratch.clear();
        self.kept.clear();
    }

    pub(crate) fn push(&mut self, at: usize, item: Item<'a>) {
        self.nodes.push((at, item));
    }

    /// Ends the collection that was opened at a node with the last node pushed.
    pub(crate) fn close(&mut self, node: usize) {
        let next = self.nodes.len();
        if let Some((_, Item::Open(_, end))) = self.nodes.get_mut(node) {
            *end = next;
        }
    }

    pub(crate) fn truncate(&mut self, len: usize) {
        self.nodes.truncate(len);
    }

    pub(crate) fn len(&self) -> usize {
        self.nodes.len()
    }

    pub(crate) fn scratch(&mut self) -> &mut String {
        &mut self.scratch
    }

    pub(crate) fn notation(&self) -> Notation {
        self.notation
    }
}

/// Walking.
impl<'a> Form<'a> {
    pub(crate) fn at(&self, node: usize) -> usize {
        self.nodes[node].0
    }

    pub(crate) fn item(&self, node: usize) -> Item<'a> {
        self.nodes[node].1
    }

    /// The node after a value and all that is in it.
    pub(crate) fn skip(&self, node: usize) -> usize {
        match self.item(self.untag(node)) {
            Item::Open(_, end) => end,
            _ => self.untag(node) + 1,
        }
    }

    /// The value under its tags.
    pub(crate) fn untag(&self, mut node: usize) -> usize {
        while let Item::Tag(_) = self.item(node) {
            node += 1;
        }
        node
    }

    /// The collection's shape, if the value is one under its tags.
    pub(crate) fn shape(&self, node: usize) -> Option<Shape> {
        match self.item(self.untag(node)) {
            Item::Open(shape, _) => Some(shape),
            _ => None,
        }
    }

    /// Whether the value is a vector or a list.
    pub(crate) fn is_sequence(&self, node: usize) -> bool {
        matches!(self.shape(node), Some(Shape::Vector | Shape::List))
    }

    /// The values directly in a collection: keys and values in turn for a map.
    pub(crate) fn children(&self, node: usize) -> impl Iterator<Item = usize> + use<'_, 'a> {
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

    /// The values of the named fields of a map, in the order of the names, and how many other fields
    /// there are. A field given twice is a fault, as one of the two would be lost.
    pub(crate) fn fields<const N: usize>(
        &self,
        map: usize,
        names: &[&str; N],
    ) -> Result<([Option<usize>; N], u64), Fault> {
        let (mut values, mut others) = ([None; N], 0);
        let mut children = self.children(map);
        while let (Some(key), Some(value)) = (children.next(), children.next()) {
            let name = self.word(key).unwrap_or("");
            match names.iter().position(|known| *known == name) {
                None => others += 1,
                Some(field) if values[field].is_none() => values[field] = Some(value),
                Some(_) => {
                    let expected = "each field once";
                    return Err(Fault::malformed(self.at(key), expected, self.render(key)));
                }
            }
        }
        Ok((values, others))
    }

    /// The values of a sequence of exactly `N`.
    pub(crate) fn exactly<const N: usize>(&self, node: usize) -> Option<[usize; N]> {
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
    pub(crate) fn word(&self, node: usize) -> Option<&str> {
        match self.item(node) {
            Item::Keyword(s) | Item::Text(s) => Some(s),
            Item::Unescaped(start, end) => self.scratch.get(start..end),
            _ => None,
        }
    }

    /// The text, if the value is one.
    pub(crate) fn text(&self, node: usize) -> Option<&str> {
        self.word(node).filter(|_| !matches!(self.item(node), Item::Keyword(_)))
    }

    pub(crate) fn is_nil(&self, node: usize) -> bool {
        matches!(self.item(node), Item::Nil)
    }

    /// Makes sure that [`Form::value`] can give a single value for the node: a collection is
    /// rendered as text.
    pub(crate) fn prepare(&mut self, node: usize) {
        if !matches!(self.item(node), Item::Open(..) | Item::Tag(_))
            || self.kept.contains_key(&node)
        {
            return;
        }
        let text = self.render(node);
        self.keep(node, Value::Other(text.into()));
    }

    /// Says what value a node stands for.
    pub(crate) fn keep(&mut self, node: usize, value: Value) {
        self.kept.insert(node, value);
    }

    /// The node as a value. Collections and tagged values want [`Form::prepare`] first.
    #[inline]
    pub(crate) fn value(&self, node: usize) -> ValueRef<'_> {
        match self.item(node) {
            Item::Nil => ValueRef::Nil,
            Item::Bool(b) => ValueRef::Bool(b),
            Item::Int(i) => ValueRef::Int(i),
            Item::Uint(u) => ValueRef::Uint(u),
            Item::Text(s) => ValueRef::Text(s),
            Item::Unescaped(start, end) => ValueRef::Text(&self.scratch[start..end]),
            Item::Keyword(s) => ValueRef::Keyword(s),
            Item::Other(s) => self.kept.get(&node).map_or(ValueRef::Other(s), Value::as_ref),
            Item::Tag(_) | Item::Open(..) => {
                self.kept.get(&node).map_or(ValueRef::Other(""), Value::as_ref)
            }
        }
    }

    /// The text of a value in the form's notation, with single spaces and no comments: equal
    /// texts for equal values, as far as the order of maps and sets allows.
    pub(crate) fn render(&self, node: usize) -> String {
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
            ValueRef::Text(text) => quoted::write(text, |piece| out.push_str(piece)),
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
