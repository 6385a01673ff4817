//! Expressions over the columns of one row.

use crate::decimal::Decimal;

/// The most nodes of an expression; all literals of an `IN` together count as one.
pub const MAX_NODES: usize = 2048;

/// How deep an expression may be nested: about the number of parentheses that are open at a time
/// when it is written down. Chains such as `a OR b OR c` are not nested.
pub const MAX_NESTING: usize = 24;

/// A constant.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Literal {
    /// SQL's null.
    Null,
    /// `TRUE` or `FALSE`.
    Bool(bool),
    /// A whole number of 64 bits. Larger ones are decimals.
    Int(i64),
    /// An exact decimal.
    Decimal(Decimal),
    /// A string.
    Text(Box<str>),
    /// A value of any other type (a date, a UUID), as canonical text.
    Other(Box<str>),
}

/// How two values are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Comparison {
    /// `=`
    Equal,
    /// `<>`
    NotEqual,
    /// `<`
    Less,
    /// `<=`
    LessOrEqual,
    /// `>`
    Greater,
    /// `>=`
    GreaterOrEqual,
}

/// How two numbers are combined.
///
/// Databases differ in what `/` and `%` do with integers and with zero, so these are the
/// operators as written, and an evaluator has to say whose rules it follows. The result of two
/// integers is an integer of 64 bits; one that does not fit is no value at all (PostgreSQL raises
/// an error, SQLite goes over to floating point), so an evaluator reports the overflow and never
/// wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Arithmetic {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`
    Divide,
    /// `%`
    Modulo,
}

/// One step of an expression. Operands come before their operator, the left one first, so that
/// an expression is evaluated from front to back on a stack.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Node {
    /// The value of a column. Names are compared as they are written.
    Column(Box<str>),
    /// A constant.
    Literal(Literal),
    /// The number with the other sign. Takes one operand.
    Negate,
    /// Takes two operands.
    Arithmetic(Arithmetic),
    /// Takes two operands.
    Compare(Comparison),
    /// Takes a value, a lower and an upper bound, both inclusive.
    Between,
    /// Whether the operand is one of these.
    In(Box<[Literal]>),
    /// Whether the operand begins with this text: `LIKE 'text%'`.
    StartsWith(Box<str>),
    /// Whether the operand is null. Takes one operand.
    IsNull,
    /// Takes one operand.
    Not,
    /// Takes two operands. The right one is never itself an `And`.
    And,
    /// Takes two operands. The right one is never itself an `Or`.
    Or,
}

impl Node {
    /// How many operands it takes.
    pub fn arity(&self) -> usize {
        match self {
            Node::Column(_) | Node::Literal(_) => 0,
            Node::Negate | Node::In(_) | Node::StartsWith(_) | Node::IsNull | Node::Not => 1,
            Node::Arithmetic(_) | Node::Compare(_) | Node::And | Node::Or => 2,
            Node::Between => 3,
        }
    }

    fn result(&self) -> Type {
        match self {
            Node::Column(_) | Node::Literal(Literal::Null) => Type::Any,
            Node::Literal(Literal::Int(_) | Literal::Decimal(_))
            | Node::Negate
            | Node::Arithmetic(_) => Type::Number,
            Node::Literal(Literal::Text(_)) => Type::Text,
            Node::Literal(Literal::Other(_)) => Type::Other,
            _ => Type::Condition,
        }
    }
}

/// What kind of value an expression has, as far as its form tells.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Type {
    /// It depends on the row: a column. Or it is null, which every type has.
    Any,
    /// True, false or unknown.
    Condition,
    /// An integer or a decimal.
    Number,
    /// A string.
    Text,
    /// Any other type.
    Other,
}

/// Why something is not an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ExprError {
    /// More than [`MAX_NODES`].
    #[error("an expression of more than {MAX_NODES} parts")]
    TooLarge,
    /// Deeper than [`MAX_NESTING`].
    #[error("an expression nested deeper than {MAX_NESTING} levels")]
    TooDeep,
    /// An operand of a type that its operator does not take.
    #[error("{operator} takes {expected}, but this is {found}")]
    Type {
        /// The operator.
        operator: &'static str,
        /// What it takes.
        expected: Type,
        /// What it got.
        found: Type,
    },
}

impl std::fmt::Display for Type {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Type::Any => "a value",
            Type::Condition => "a condition",
            Type::Number => "a number",
            Type::Text => "a string",
            Type::Other => "a value of another type",
        })
    }
}

/// An expression over the columns of one row, in normal form.
///
/// It is one flat sequence of [`Node`]s, operands before operators. Chains of `AND` and of `OR`
/// lean to the left, whatever the parentheses were: in SQL's three-valued logic both are
/// associative. A double `NOT` is none, and a negated number is a number. So equal expressions are
/// equal as Rust values more often than as texts; it does not attempt to find all equivalent ones.
///
/// Its size and nesting are limited, so that nothing that walks it has to fear a hostile one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Expr {
    nodes: Vec<Node>,
    /// How many operands wait at a time, at most, while it is evaluated.
    stack: usize,
}

/// Leaves.
impl Expr {
    /// The value of a column.
    pub fn column(name: &str) -> Expr {
        Expr { nodes: vec![Node::Column(name.into())], stack: 1 }
    }

    /// A constant.
    pub fn literal(literal: Literal) -> Expr {
        Expr { nodes: vec![Node::Literal(literal)], stack: 1 }
    }
}

/// Operators.
impl Expr {
    /// The number with the other sign.
    pub fn negate(self) -> Result<Expr, ExprError> {
        self.expect("-", Type::Number)?;
        if let [Node::Literal(literal)] = self.nodes.as_slice() {
            match literal {
                Literal::Int(i) => {
                    let negated = i.checked_neg().map(Literal::Int);
                    let beyond = || Literal::Decimal(Decimal::from(-i128::from(*i)));
                    return Ok(Expr::literal(negated.unwrap_or_else(beyond)));
                }
                Literal::Decimal(d) => return Ok(Expr::literal(Literal::Decimal(d.negated()))),
                _ => {}
            }
        }
        self.then(Node::Negate, [])
    }

    /// Two numbers combined.
    pub fn arithmetic(self, operator: Arithmetic, right: Expr) -> Result<Expr, ExprError> {
        self.expect(operator.symbol(), Type::Number)?;
        right.expect(operator.symbol(), Type::Number)?;
        self.then(Node::Arithmetic(operator), [right])
    }

    /// Two values compared.
    pub fn compare(self, comparison: Comparison, right: Expr) -> Result<Expr, ExprError> {
        self.then(Node::Compare(comparison), [right])
    }

    /// Whether it lies between two bounds, both inclusive.
    pub fn between(self, low: Expr, high: Expr) -> Result<Expr, ExprError> {
        self.then(Node::Between, [low, high])
    }

    /// Whether it is one of these.
    pub fn is_in(self, list: impl Into<Box<[Literal]>>) -> Result<Expr, ExprError> {
        self.then(Node::In(list.into()), [])
    }

    /// Whether it begins with a text.
    pub fn starts_with(self, prefix: &str) -> Result<Expr, ExprError> {
        self.expect("LIKE", Type::Text)?;
        self.then(Node::StartsWith(prefix.into()), [])
    }

    /// Whether it is null.
    pub fn is_null(self) -> Result<Expr, ExprError> {
        self.then(Node::IsNull, [])
    }

    /// The condition, negated.
    pub fn negated_condition(mut self) -> Result<Expr, ExprError> {
        self.expect("NOT", Type::Condition)?;
        if self.root() == Some(&Node::Not) {
            self.nodes.pop();
            return self.within_limits();
        }
        self.then(Node::Not, [])
    }

    /// Both conditions.
    pub fn and(self, right: Expr) -> Result<Expr, ExprError> {
        self.chain("AND", Node::And, right)
    }

    /// Either condition.
    pub fn or(self, right: Expr) -> Result<Expr, ExprError> {
        self.chain("OR", Node::Or, right)
    }
}

/// Reading.
impl Expr {
    /// The steps, operands before operators. The last one is the root.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// What kind of value it has, as far as its form tells.
    pub fn result_type(&self) -> Type {
        self.root().map_or(Type::Any, Node::result)
    }

    /// The columns it speaks of, in order, some perhaps repeatedly.
    pub fn columns(&self) -> impl Iterator<Item = &str> {
        self.nodes.iter().filter_map(|node| match node {
            Node::Column(name) => Some(&**name),
            _ => None,
        })
    }

    /// How many operands wait at a time, at most, while it is evaluated.
    pub(crate) fn stack(&self) -> usize {
        self.stack
    }

    fn root(&self) -> Option<&Node> {
        self.nodes.last()
    }

    pub(crate) fn expect(&self, operator: &'static str, expected: Type) -> Result<(), ExprError> {
        let found = self.result_type();
        match found == expected || found == Type::Any {
            true => Ok(()),
            false => Err(ExprError::Type { operator, expected, found }),
        }
    }
}

/// Building.
impl Expr {
    /// Appends the other operands and the operator.
    fn then<const N: usize>(mut self, node: Node, operands: [Expr; N]) -> Result<Expr, ExprError> {
        operands.into_iter().for_each(|operand| self.nodes.extend(operand.nodes));
        self.nodes.push(node);
        self.within_limits()
    }

    /// Joins two conditions by an associative operator. The right one's chain is
    /// `b1 b2 op b3 op`; with the left one before it, `a b1 op b2 op b3 op` is all of it as one
    /// chain that leans to the left, so a single operator goes in after `b1`.
    fn chain(mut self, name: &'static str, node: Node, right: Expr) -> Result<Expr, ExprError> {
        self.expect(name, Type::Condition)?;
        right.expect(name, Type::Condition)?;
        let first = first_of_chain(&right.nodes, &node);
        let mut nodes = right.nodes.into_iter();
        self.nodes.extend(nodes.by_ref().take(first));
        self.nodes.push(node);
        self.nodes.extend(nodes);
        self.within_limits()
    }

    fn within_limits(mut self) -> Result<Expr, ExprError> {
        if self.nodes.len() > MAX_NODES {
            return Err(ExprError::TooLarge);
        }
        self.stack = stack(&self.nodes);
        match nesting(&self.nodes) {
            depth if depth > MAX_NESTING => Err(ExprError::TooDeep),
            _ => Ok(self),
        }
    }
}

/// The length of the first operand of a chain of `link`s; of everything where it is none.
fn first_of_chain(nodes: &[Node], link: &Node) -> usize {
    let mut end = nodes.len();
    while end > 0 && nodes[end - 1] == *link {
        end = start_of_operand(nodes, end - 1);
    }
    end
}

/// Where the operand that ends just before `end` begins.
fn start_of_operand(nodes: &[Node], end: usize) -> usize {
    let (mut start, mut missing) = (end, 1);
    while missing > 0 && start > 0 {
        start -= 1;
        missing = missing - 1 + nodes[start].arity();
    }
    start
}

/// How many operands wait at a time, at most, when nodes are evaluated from front to back.
fn stack(nodes: &[Node]) -> usize {
    let mut waiting = 0_usize;
    let after = nodes.iter().map(|node| {
        waiting = waiting.saturating_sub(node.arity()) + 1;
        waiting
    });
    after.max().unwrap_or(0)
}

/// How deep the expression is nested. The left operand of a chain of operators that bind equally
/// is on the same level as the chain.
fn nesting(nodes: &[Node]) -> usize {
    let mut stack: Vec<(usize, u8)> = Vec::new();
    for node in nodes {
        let operands = stack.split_off(stack.len() - node.arity().min(stack.len()));
        let binding = node.binding();
        let chains = matches!(node, Node::Arithmetic(_) | Node::And | Node::Or);
        let depth = operands.iter().enumerate().map(|(position, (depth, operand))| {
            depth + usize::from(!(chains && position == 0 && *operand == binding))
        });
        stack.push((depth.max().unwrap_or(0), binding));
    }
    stack.pop().map_or(0, |(depth, _)| depth)
}
