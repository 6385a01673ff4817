//! Expressions from SQL text.
//!
//! [`sqlparser`] reads the text; this module takes over what the language has a form for, and
//! refuses the rest by name.

use std::fmt;

use sqlparser::ast::{
    BinaryOperator, CastKind, DataType, Expr as Sql, Function, FunctionArg, FunctionArgExpr,
    FunctionArguments, Spanned, UnaryOperator, Value,
};
use sqlparser::dialect::Dialect;
use sqlparser::keywords::Keyword;
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Location, Token, TokenWithSpan, Tokenizer};

use crate::decimal::Decimal;
use crate::expr::{Arithmetic, Comparison, Expr, ExprError, Literal, MAX_NESTING, MAX_NODES};
use crate::predicate::{Aggregate, Predicate};
use crate::print::OTHER_TYPE;

/// Why a text is not an expression of this language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParseError {
    /// What is wrong.
    pub kind: ParseErrorKind,
    /// The line and column it is at, both counted from 1, where that is known.
    pub position: Option<(u64, u64)>,
}

/// What is wrong with a text.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ParseErrorKind {
    /// It is not SQL.
    Syntax(String),
    /// It is SQL that this language leaves out.
    Unsupported(&'static str),
    /// It is too large, or its types do not fit.
    Expr(ExprError),
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some((line, column)) = self.position {
            write!(f, "line {line}, column {column}: ")?;
        }
        match &self.kind {
            ParseErrorKind::Syntax(what) => f.write_str(what),
            ParseErrorKind::Unsupported(what) => {
                write!(f, "{what}: not part of the predicate language")
            }
            ParseErrorKind::Expr(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for ParseError {}

impl std::str::FromStr for Expr {
    type Err = ParseError;

    /// Reads an expression.
    fn from_str(text: &str) -> Result<Expr, ParseError> {
        let mut parser = parser_of(text)?;
        let sql = parser.parse_expr().map_err(syntax)?;
        expect_end(&parser)?;
        convert(&sql, "")
    }
}

impl std::str::FromStr for Predicate {
    type Err = ParseError;

    /// Reads a condition, or `FROM table WHERE condition`.
    fn from_str(text: &str) -> Result<Predicate, ParseError> {
        let mut parser = parser_of(text)?;
        let table = if parser.parse_keyword(Keyword::FROM) {
            let table = parser.parse_identifier().map_err(syntax)?;
            if parser.peek_token_ref().token == Token::Comma {
                return Err(unsupported("a join", parser.peek_token_ref().span.start));
            }
            parser.expect_keyword_is(Keyword::WHERE).map_err(syntax)?;
            table.value
        } else {
            String::new()
        };
        let sql = parser.parse_expr().map_err(syntax)?;
        expect_end(&parser)?;
        let condition = convert(&sql, &table)?;
        Predicate::rows(&table, condition).map_err(|error| refused(error, &sql))
    }
}

impl std::str::FromStr for Aggregate {
    type Err = ParseError;

    /// Reads `count(*)`, `exists(*)`, `sum(…)`, `min(…)` or `max(…)`.
    fn from_str(text: &str) -> Result<Aggregate, ParseError> {
        let mut parser = parser_of(text)?;
        // `EXISTS` begins a subquery in SQL.
        if parser.parse_keyword(Keyword::EXISTS) {
            for token in [Token::LParen, Token::Mul, Token::RParen] {
                parser.expect_token(&token).map_err(syntax)?;
            }
            expect_end(&parser)?;
            return Ok(Aggregate::Exists);
        }
        let sql = parser.parse_expr().map_err(syntax)?;
        expect_end(&parser)?;
        let Sql::Function(function) = &sql else {
            return Err(unsupported("something that is no aggregate", start_of(&sql)));
        };
        convert_aggregate(function, &sql)
    }
}

/// Reading what may be in no form of this language.
impl Predicate {
    /// Reads a predicate, and keeps as text what the language has no form for.
    pub fn from_sql(text: &str) -> Predicate {
        text.parse().unwrap_or_else(|_| Predicate::unparsed(text))
    }
}

/// Reading what may be in no form of this language.
impl Aggregate {
    /// Reads an aggregate, and keeps as text what the language has no form for.
    pub fn from_sql(text: &str) -> Aggregate {
        text.parse().unwrap_or_else(|_| Aggregate::unparsed(text))
    }
}

/// How many tokens besides literals an expression may have. Canonical SQL needs at most three for
/// a node, parentheses aside.
const MAX_TOKENS: usize = 3 * MAX_NODES;

/// How often the parser may call itself: twice for every level, for an operator and for its
/// parentheses, and a few times more around them.
const MAX_RECURSION: usize = 2 * MAX_NESTING + 8;

/// What the dialects have in common.
#[derive(Debug)]
struct PlainSql;

impl Dialect for PlainSql {
    fn is_delimited_identifier_start(&self, c: char) -> bool {
        matches!(c, '"' | '`')
    }

    fn is_identifier_start(&self, c: char) -> bool {
        c.is_alphabetic() || c == '_'
    }

    fn is_identifier_part(&self, c: char) -> bool {
        c.is_alphanumeric() || c == '_'
    }

    /// The parser takes `NOT (…` for a negation and, where that fails and this does not forbid it,
    /// for a function of that name: twice the work on every level of a nest.
    fn is_reserved_for_identifier(&self, keyword: Keyword) -> bool {
        keyword == Keyword::NOT
    }
}

/// A parser for a text that it can be trusted with.
fn parser_of(text: &str) -> Result<Parser<'static>, ParseError> {
    let tokens = Tokenizer::new(&PlainSql, text).tokenize_with_location();
    let tokens = tokens.map_err(|error| ParseError {
        kind: ParseErrorKind::Syntax(error.message.clone()),
        position: known(error.location),
    })?;
    limit_chains(&tokens)?;
    refuse_foreign_tokens(&tokens)?;
    let parser = Parser::new(&PlainSql).with_recursion_limit(MAX_RECURSION);
    Ok(parser.with_tokens_with_locations(tokens))
}

/// Refuses texts with too many operators. The parser limits how deep parentheses nest, but reads
/// `a + a + …` in a loop, into a tree as deep as the chain is long. To drop that tree takes
/// recursion, and overflows the stack. The literals of a long `IN` do no harm and do not count.
fn limit_chains(tokens: &[TokenWithSpan]) -> Result<(), ParseError> {
    let mut counted = 0;
    let mut begins_item = false;
    for TokenWithSpan { token, span } in tokens {
        match token {
            Token::Whitespace(_) => continue,
            Token::Number(..) | Token::SingleQuotedString(_) => begins_item = false,
            Token::Comma | Token::LParen => begins_item = true,
            Token::RParen => begins_item = false,
            Token::Minus if begins_item => begins_item = false,
            _ => {
                begins_item = false;
                counted += 1;
            }
        }
        if counted > MAX_TOKENS {
            let kind = ParseErrorKind::Expr(ExprError::TooLarge);
            return Err(ParseError { kind, position: known(span.start) });
        }
    }
    Ok(())
}

/// Refuses, before the parser sees them, words and signs that no expression of the language has.
///
/// Not only for the sake of the message. For many of them the parser tries one thing after the
/// other, at every level of a nest, in time that doubles with each level: `CAST(…` is first taken
/// for a cast and then for a function of that name, `(a) -> …` for a lambda and then for an
/// operator. Casts of strings stay: they do not nest.
fn refuse_foreign_tokens(tokens: &[TokenWithSpan]) -> Result<(), ParseError> {
    let mut tokens = tokens.iter().filter(|t| !matches!(t.token, Token::Whitespace(_))).peekable();
    let mut is_first = true;
    while let Some(TokenWithSpan { token, span }) = tokens.next() {
        let called = tokens.peek().is_some_and(|next| next.token == Token::LParen);
        let argument = || tokens.clone().nth(1).map(|next| &next.token);
        let foreign = match token {
            Token::Word(word) if word.quote_style.is_none() => match word.keyword {
                Keyword::CAST if called => match argument() {
                    Some(Token::SingleQuotedString(_)) => None,
                    _ => Some("a cast"),
                },
                // An aggregate is a function of the whole text.
                keyword => foreign_word(keyword, called && !is_first),
            },
            Token::Word(_) if called => Some("a function"),
            token => foreign_sign(token),
        };
        if let Some(what) = foreign {
            return Err(unsupported(what, span.start));
        }
        is_first = false;
    }
    Ok(())
}

fn foreign_word(keyword: Keyword, called: bool) -> Option<&'static str> {
    match keyword {
        Keyword::CASE => Some("CASE"),
        Keyword::INTERVAL => Some("an interval"),
        Keyword::SELECT | Keyword::WITH => Some("a subquery"),
        Keyword::ARRAY | Keyword::STRUCT | Keyword::MAP | Keyword::PRIOR => {
            Some("this form of expression")
        }
        Keyword::AND | Keyword::OR | Keyword::NOT | Keyword::IN | Keyword::BETWEEN => None,
        Keyword::LIKE | Keyword::IS | Keyword::WHERE => None,
        _ => called.then_some("a function"),
    }
}

fn foreign_sign(token: &Token) -> Option<&'static str> {
    match token {
        Token::EOF | Token::Word(_) | Token::Number(..) | Token::SingleQuotedString(_) => None,
        Token::Eq | Token::DoubleEq | Token::Neq => None,
        Token::Lt | Token::LtEq | Token::Gt | Token::GtEq => None,
        Token::Plus | Token::Minus | Token::Mul | Token::Div | Token::Mod => None,
        Token::LParen | Token::RParen | Token::Comma | Token::Period => None,
        Token::DoubleColon => Some("a cast"),
        Token::Placeholder(_) | Token::Question => Some("a placeholder"),
        _ => Some("this sign"),
    }
}

fn expect_end(parser: &Parser<'_>) -> Result<(), ParseError> {
    let next = parser.peek_token_ref();
    match &next.token {
        Token::EOF => Ok(()),
        token => Err(ParseError {
            kind: ParseErrorKind::Syntax(format!("expected the end, found: {token}")),
            position: known(next.span.start),
        }),
    }
}

/// The parser's own error. It puts positions at the end of its messages.
fn syntax(error: ParserError) -> ParseError {
    let message = match error {
        ParserError::RecursionLimitExceeded => {
            return ParseError { kind: ParseErrorKind::Expr(ExprError::TooDeep), position: None };
        }
        ParserError::TokenizerError(message) | ParserError::ParserError(message) => message,
    };
    let place = message.rsplit_once(" at Line: ").and_then(|(what, place)| {
        let (line, column) = place.split_once(", Column: ")?;
        Some((what.to_owned(), (line.parse().ok()?, column.parse().ok()?)))
    });
    match place {
        Some((what, position)) => {
            ParseError { kind: ParseErrorKind::Syntax(what), position: Some(position) }
        }
        None => ParseError { kind: ParseErrorKind::Syntax(message), position: None },
    }
}

fn known(location: Location) -> Option<(u64, u64)> {
    (location.line > 0).then_some((location.line, location.column))
}

fn start_of(sql: &Sql) -> Location {
    sql.span().start
}

fn unsupported(what: &'static str, at: Location) -> ParseError {
    ParseError { kind: ParseErrorKind::Unsupported(what), position: known(at) }
}

fn refused(error: ExprError, sql: &Sql) -> ParseError {
    ParseError { kind: ParseErrorKind::Expr(error), position: known(start_of(sql)) }
}

/// Takes over an expression on a row of `table`.
///
/// Operators nest to the left as deep as the text is long, and are gone through in a loop.
/// Everything else nests no deeper than the parser recursed.
fn convert(sql: &Sql, table: &str) -> Result<Expr, ParseError> {
    let mut operators = Vec::new();
    let mut innermost = sql;
    while let Some(left) = left_operand(innermost) {
        operators.push(innermost);
        innermost = left;
    }
    let mut expr = convert_operand(innermost, table)?;
    for operator in operators.into_iter().rev() {
        expr = apply(expr, operator, table)?;
    }
    Ok(expr)
}

fn left_operand(sql: &Sql) -> Option<&Sql> {
    match sql {
        Sql::BinaryOp { left, .. } => Some(left),
        Sql::IsNull(expr)
        | Sql::IsNotNull(expr)
        | Sql::InList { expr, .. }
        | Sql::Between { expr, .. }
        | Sql::Like { expr, .. } => Some(expr),
        _ => None,
    }
}

/// Applies an operator to its left operand.
fn apply(left: Expr, sql: &Sql, table: &str) -> Result<Expr, ParseError> {
    let (result, negated) = match sql {
        Sql::BinaryOp { op, right, .. } => {
            return apply_binary(left, op, convert(right, table)?, sql);
        }
        Sql::IsNull(_) => (left.is_null(), false),
        Sql::IsNotNull(_) => (left.is_null(), true),
        Sql::InList { list, negated, .. } => {
            let list: Result<Vec<_>, _> = list.iter().map(constant).collect();
            (left.is_in(list?), *negated)
        }
        Sql::Between { low, high, negated, .. } => {
            (left.between(convert(low, table)?, convert(high, table)?), *negated)
        }
        Sql::Like { negated, any: false, pattern, escape_char, .. } => {
            let prefix = prefix_of(pattern, escape_char.as_ref())?;
            (left.starts_with(&prefix), *negated)
        }
        _ => return Err(unsupported(name_of(sql), start_of(sql))),
    };
    let result = if negated { result.and_then(Expr::negated_condition) } else { result };
    result.map_err(|error| refused(error, sql))
}

fn apply_binary(
    left: Expr,
    operator: &BinaryOperator,
    right: Expr,
    sql: &Sql,
) -> Result<Expr, ParseError> {
    let result = match operator {
        BinaryOperator::And => left.and(right),
        BinaryOperator::Or => left.or(right),
        BinaryOperator::Eq => left.compare(Comparison::Equal, right),
        BinaryOperator::NotEq => left.compare(Comparison::NotEqual, right),
        BinaryOperator::Lt => left.compare(Comparison::Less, right),
        BinaryOperator::LtEq => left.compare(Comparison::LessOrEqual, right),
        BinaryOperator::Gt => left.compare(Comparison::Greater, right),
        BinaryOperator::GtEq => left.compare(Comparison::GreaterOrEqual, right),
        BinaryOperator::Plus => left.arithmetic(Arithmetic::Add, right),
        BinaryOperator::Minus => left.arithmetic(Arithmetic::Subtract, right),
        BinaryOperator::Multiply => left.arithmetic(Arithmetic::Multiply, right),
        BinaryOperator::Divide => left.arithmetic(Arithmetic::Divide, right),
        BinaryOperator::Modulo => left.arithmetic(Arithmetic::Modulo, right),
        _ => return Err(unsupported("this operator", start_of(sql))),
    };
    result.map_err(|error| refused(error, sql))
}

/// Takes over what has no left operand.
fn convert_operand(sql: &Sql, table: &str) -> Result<Expr, ParseError> {
    match sql {
        Sql::Nested(inner) => convert(inner, table),
        Sql::Identifier(name) => Ok(Expr::column(&name.value)),
        Sql::CompoundIdentifier(path) => match path.as_slice() {
            [of, name] if !table.is_empty() && of.value == table => Ok(Expr::column(&name.value)),
            _ => Err(unsupported("a column of another table", start_of(sql))),
        },
        Sql::UnaryOp { op: UnaryOperator::Not, expr } => {
            let negated = convert(expr, table)?.negated_condition();
            negated.map_err(|error| refused(error, sql))
        }
        Sql::UnaryOp { op: UnaryOperator::Plus, expr } => convert(expr, table),
        Sql::UnaryOp { op: UnaryOperator::Minus, expr } if !is_number(expr) => {
            convert(expr, table)?.negate().map_err(|error| refused(error, sql))
        }
        _ => constant(sql).map(Expr::literal),
    }
}

fn is_number(sql: &Sql) -> bool {
    matches!(sql, Sql::Value(value) if matches!(value.value, Value::Number(..)))
}

/// A constant.
fn constant(sql: &Sql) -> Result<Literal, ParseError> {
    match sql {
        Sql::Value(value) => literal(&value.value, "", start_of(sql)),
        // The smallest integer has no positive counterpart, so the sign belongs to the number.
        Sql::UnaryOp { op: UnaryOperator::Minus, expr } => match &**expr {
            Sql::Value(value) => literal(&value.value, "-", start_of(sql)),
            _ => Err(unsupported("a computed value here", start_of(sql))),
        },
        Sql::TypedString(typed) => match (&typed.data_type, &typed.value.value) {
            (
                DataType::Date
                | DataType::Time(..)
                | DataType::Timestamp(..)
                | DataType::Datetime(..),
                Value::SingleQuotedString(text),
            ) => Ok(Literal::Other(text.as_str().into())),
            _ => Err(unsupported("a literal of this type", start_of(sql))),
        },
        Sql::Cast { kind: CastKind::Cast, expr, data_type, format: None }
            if data_type.to_string().eq_ignore_ascii_case(OTHER_TYPE) =>
        {
            match &**expr {
                Sql::Value(value) => match &value.value {
                    Value::SingleQuotedString(text) => Ok(Literal::Other(text.as_str().into())),
                    _ => Err(unsupported("a cast", start_of(sql))),
                },
                _ => Err(unsupported("a cast", start_of(sql))),
            }
        }
        Sql::Identifier(_) => Err(unsupported("a column here", start_of(sql))),
        _ => Err(unsupported(name_of(sql), start_of(sql))),
    }
}

fn literal(value: &Value, sign: &str, at: Location) -> Result<Literal, ParseError> {
    match value {
        Value::Number(digits, false) => {
            let text = [sign, digits].concat();
            let int = text.parse().ok().map(Literal::Int);
            let number = int.or_else(|| Decimal::parse(&text).map(Literal::Decimal));
            number.ok_or_else(|| unsupported("a number of this form", at))
        }
        Value::Boolean(b) if sign.is_empty() => Ok(Literal::Bool(*b)),
        Value::Null if sign.is_empty() => Ok(Literal::Null),
        Value::SingleQuotedString(text) if sign.is_empty() => {
            Ok(Literal::Text(text.as_str().into()))
        }
        Value::Placeholder(_) => Err(unsupported("a placeholder", at)),
        _ => Err(unsupported("a literal of this form", at)),
    }
}

/// The text that a pattern asks for at the beginning, if that is all it asks.
///
/// A backslash escapes in some databases and not in others, unless `ESCAPE` names something else.
fn prefix_of(pattern: &Sql, escape: Option<&Value>) -> Result<String, ParseError> {
    let refuse = |what| Err(unsupported(what, start_of(pattern)));
    let escape = match escape {
        None => None,
        Some(Value::SingleQuotedString(text)) if text.chars().count() == 1 => text.chars().next(),
        Some(_) => return refuse("an escape that is not one character"),
    };
    let Ok(Literal::Text(text)) = constant(pattern) else {
        return refuse("a pattern that is no string");
    };
    let mut prefix = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        match c {
            c if Some(c) == escape => match chars.next() {
                Some(escaped) => prefix.push(escaped),
                None => return refuse("a pattern that ends within an escape"),
            },
            '\\' if escape.is_none() => return refuse("a backslash in a pattern without ESCAPE"),
            '%' if chars.as_str().is_empty() => return Ok(prefix),
            '%' | '_' => break,
            c => prefix.push(c),
        }
    }
    refuse("a pattern other than a text and then %")
}

fn convert_aggregate(function: &Function, sql: &Sql) -> Result<Aggregate, ParseError> {
    let refuse = |what| Err(unsupported(what, start_of(sql)));
    let plain = function.filter.is_none()
        && function.over.is_none()
        && function.null_treatment.is_none()
        && function.within_group.is_empty();
    let FunctionArguments::List(list) = &function.args else {
        return refuse("this form of an aggregate");
    };
    if !plain || list.duplicate_treatment.is_some() || !list.clauses.is_empty() {
        return refuse("this form of an aggregate");
    }
    let name = function.name.to_string().to_ascii_lowercase();
    match (name.as_str(), list.args.as_slice()) {
        ("count", [FunctionArg::Unnamed(FunctionArgExpr::Wildcard)]) => Ok(Aggregate::Count),
        (_, [FunctionArg::Unnamed(FunctionArgExpr::Expr(of))]) => {
            let expr = convert(of, "")?;
            match name.as_str() {
                "sum" => Aggregate::sum(expr).map_err(|error| refused(error, of)),
                "min" => Ok(Aggregate::Min(expr)),
                "max" => Ok(Aggregate::Max(expr)),
                _ => refuse("this aggregate function"),
            }
        }
        _ => refuse("this aggregate function"),
    }
}

/// What to call SQL that the language leaves out.
fn name_of(sql: &Sql) -> &'static str {
    match sql {
        Sql::Subquery(_) | Sql::InSubquery { .. } | Sql::Exists { .. } => "a subquery",
        Sql::Function(_) => "a function",
        Sql::Case { .. } => "CASE",
        Sql::Cast { .. } | Sql::Convert { .. } => "a cast",
        Sql::Like { .. } | Sql::ILike { .. } | Sql::SimilarTo { .. } | Sql::RLike { .. } => {
            "this kind of pattern matching"
        }
        Sql::IsTrue(_)
        | Sql::IsNotTrue(_)
        | Sql::IsFalse(_)
        | Sql::IsNotFalse(_)
        | Sql::IsUnknown(_)
        | Sql::IsNotUnknown(_)
        | Sql::IsDistinctFrom(..)
        | Sql::IsNotDistinctFrom(..) => "an IS other than IS [NOT] NULL",
        Sql::AnyOp { .. } | Sql::AllOp { .. } => "ANY or ALL",
        Sql::Collate { .. } => "COLLATE",
        Sql::Interval(_) => "an interval",
        Sql::Tuple(_) => "a tuple",
        _ => "this form of expression",
    }
}
