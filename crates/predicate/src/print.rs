//! Expressions as SQL.

use std::fmt;

use crate::expr::{Arithmetic, Comparison, Expr, Literal, Node};

/// How tightly the outermost operator of a text binds. Everything between `AND` and arithmetic has
/// one strength and takes parentheses around its own kind, since databases disagree there.
pub(crate) mod binding {
    pub(crate) const OR: u8 = 0;
    pub(crate) const AND: u8 = 1;
    pub(crate) const NOT: u8 = 2;
    pub(crate) const TEST: u8 = 3;
    pub(crate) const SUM: u8 = 4;
    pub(crate) const PRODUCT: u8 = 5;
    pub(crate) const SIGN: u8 = 6;
    pub(crate) const ATOM: u8 = 7;
}

impl Node {
    /// How tightly it binds.
    pub(crate) fn binding(&self) -> u8 {
        match self {
            Node::Column(_) | Node::Literal(_) => binding::ATOM,
            Node::Negate => binding::SIGN,
            Node::Arithmetic(Arithmetic::Add | Arithmetic::Subtract) => binding::SUM,
            Node::Arithmetic(_) => binding::PRODUCT,
            Node::Compare(_) | Node::Between | Node::In(_) | Node::StartsWith(_) | Node::IsNull => {
                binding::TEST
            }
            Node::Not => binding::NOT,
            Node::And => binding::AND,
            Node::Or => binding::OR,
        }
    }
}

/// A part of an expression, written down.
struct Part {
    text: String,
    binding: u8,
    /// Where `NOT` can go to negate it in SQL's own way: `a NOT IN (…)`, `a IS NOT NULL`.
    not_at: Option<usize>,
}

impl Part {
    /// The text, in parentheses unless it binds at least as tightly.
    fn at_least(self, binding: u8) -> String {
        if self.binding >= binding { self.text } else { format!("({})", self.text) }
    }
}

/// Canonical SQL: parsing it gives the same expression.
impl fmt::Display for Expr {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut stack: Vec<Part> = Vec::new();
        for node in self.nodes() {
            let part = write_node(node, &mut stack);
            stack.push(part);
        }
        stack.pop().map_or(Ok(()), |part| f.write_str(&part.text))
    }
}

/// Writes a node down, with its operands from the top of the stack.
///
/// The stack cannot run out: an [`Expr`] is only built from whole operands.
fn write_node(node: &Node, stack: &mut Vec<Part>) -> Part {
    let mut operand = |binding: u8| stack.pop().map_or_else(String::new, |p| p.at_least(binding));
    let binding = node.binding();
    let tighter = binding + 1;
    let mut not_at = None;
    // Right operands are on top.
    let text = match node {
        Node::Column(name) => Name(name).to_string(),
        Node::Literal(literal) => literal.to_string(),
        Node::Negate => format!("-{}", operand(binding::ATOM)),
        Node::Arithmetic(operator) => {
            let (right, left) = (operand(tighter), operand(binding));
            format!("{left} {} {right}", operator.symbol())
        }
        Node::Compare(comparison) => {
            let (right, left) = (operand(tighter), operand(tighter));
            format!("{left} {} {right}", comparison.symbol())
        }
        Node::Between => {
            let (high, low, value) = (operand(tighter), operand(tighter), operand(tighter));
            not_at = Some(value.len() + 1);
            format!("{value} BETWEEN {low} AND {high}")
        }
        Node::In(list) => {
            let value = operand(tighter);
            not_at = Some(value.len() + 1);
            format!("{value} IN ({})", List(list))
        }
        Node::StartsWith(prefix) => {
            let value = operand(tighter);
            not_at = Some(value.len() + 1);
            format!("{value} LIKE {}", Pattern(prefix))
        }
        Node::IsNull => {
            let value = operand(tighter);
            not_at = Some(value.len() + " IS ".len());
            format!("{value} IS NULL")
        }
        Node::Not => return write_not(stack.pop()),
        Node::And | Node::Or => {
            let (right, left) = (operand(tighter), operand(binding));
            let word = if *node == Node::And { "AND" } else { "OR" };
            format!("{left} {word} {right}")
        }
    };
    Part { text, binding, not_at }
}

fn write_not(operand: Option<Part>) -> Part {
    match operand {
        Some(Part { mut text, not_at: Some(at), binding }) => {
            text.insert_str(at, "NOT ");
            Part { text, binding, not_at: None }
        }
        Some(part) => {
            let text = format!("NOT {}", part.at_least(binding::ATOM));
            Part { text, binding: binding::NOT, not_at: None }
        }
        None => Part { text: String::new(), binding: binding::ATOM, not_at: None },
    }
}

impl Arithmetic {
    /// As SQL writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            Arithmetic::Add => "+",
            Arithmetic::Subtract => "-",
            Arithmetic::Multiply => "*",
            Arithmetic::Divide => "/",
            Arithmetic::Modulo => "%",
        }
    }
}

impl Comparison {
    /// As SQL writes it.
    pub fn symbol(self) -> &'static str {
        match self {
            Comparison::Equal => "=",
            Comparison::NotEqual => "<>",
            Comparison::Less => "<",
            Comparison::LessOrEqual => "<=",
            Comparison::Greater => ">",
            Comparison::GreaterOrEqual => ">=",
        }
    }
}

impl fmt::Display for Literal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Literal::Null => f.write_str("null"),
            Literal::Bool(b) => write!(f, "{b}"),
            Literal::Int(i) => write!(f, "{i}"),
            Literal::Decimal(d) => write!(f, "{d}"),
            Literal::Text(text) => write!(f, "{}", Quoted(text)),
            Literal::Other(text) => write!(f, "CAST({} AS {OTHER_TYPE})", Quoted(text)),
        }
    }
}

/// The type that values of all other types are cast to.
pub(crate) const OTHER_TYPE: &str = "other";

struct List<'a>(&'a [Literal]);

impl fmt::Display for List<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (position, literal) in self.0.iter().enumerate() {
            let separator = if position == 0 { "" } else { ", " };
            write!(f, "{separator}{literal}")?;
        }
        Ok(())
    }
}

/// A string literal.
struct Quoted<'a>(&'a str);

impl fmt::Display for Quoted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "'{}'", self.0.replace('\'', "''"))
    }
}

/// What escapes the special characters of a pattern. Not the backslash, which some databases take
/// for an escape without being told, and others never.
pub(crate) const ESCAPE: char = '!';

/// The pattern of everything that begins with a text.
struct Pattern<'a>(&'a str);

impl fmt::Display for Pattern<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let special = |c: char| matches!(c, '%' | '_' | '\\');
        if !self.0.contains(special) {
            return write!(f, "{}", Quoted(&format!("{}%", self.0)));
        }
        let mut pattern = String::new();
        for c in self.0.chars() {
            if matches!(c, '%' | '_' | ESCAPE) {
                pattern.push(ESCAPE);
            }
            pattern.push(c);
        }
        pattern.push('%');
        write!(f, "{} ESCAPE '{ESCAPE}'", Quoted(&pattern))
    }
}

/// The name of a column or a table, quoted where it would read as something else.
pub(crate) struct Name<'a>(pub(crate) &'a str);

impl fmt::Display for Name<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if is_plain(self.0) {
            f.write_str(self.0)
        } else {
            write!(f, "\"{}\"", self.0.replace('"', "\"\""))
        }
    }
}

fn is_plain(name: &str) -> bool {
    let mut chars = name.chars();
    chars.next().is_some_and(|c| c.is_ascii_alphabetic() || c == '_')
        && chars.all(|c| c.is_ascii_alphanumeric() || c == '_')
        && !RESERVED.iter().any(|word| word.eq_ignore_ascii_case(name))
}

/// Words that begin something else than a name in an expression, in one dialect or another.
const RESERVED: &[&str] = &[
    "all",
    "and",
    "any",
    "array",
    "as",
    "between",
    "by",
    "case",
    "cast",
    "current_catalog",
    "current_date",
    "current_time",
    "current_timestamp",
    "current_user",
    "distinct",
    "exists",
    "false",
    "from",
    "in",
    "interval",
    "is",
    "like",
    "localtime",
    "localtimestamp",
    "map",
    "not",
    "null",
    "or",
    "prior",
    "returning",
    "select",
    "session_user",
    "some",
    "struct",
    "trim",
    "true",
    "user",
    "where",
    "with",
];
