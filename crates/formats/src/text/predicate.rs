//! Operations on the rows that satisfy a predicate:
//! `select from accounts where balance > 10 -> {accounts(id=1): (balance=20)}`.
//!
//! The predicate is SQL and goes on to the arrow. One that is in no form of our language of
//! predicates stands in quotes, and nothing is known of it but that equal texts are the same.

use isolario_model::{Aggregate, Op, OpInput, Predicate, PredicateRow, RowInput, VersionRef};

use super::parser::{Datum, Parser};
use super::token::Token;
use crate::error::Fault;

/// Where the operations of a transaction go.
pub(super) type Send<'s> = &'s mut dyn FnMut(&OpInput<'_>) -> Result<(), Fault>;

/// A row of an answer.
type RowDatum<'a> = PredicateRow<Datum<'a>, Datum<'a>, Option<VersionRef>>;

impl<'a> Parser<'a> {
    /// `select` or `update`, of which the word is the token at hand.
    pub(super) fn rows_operation(&mut self, word: &str, send: Send<'_>) -> Result<(), Fault> {
        let predicate = match self.texts_in_quotes(1)? {
            Some(mut quoted) => quoted.remove(0),
            None => {
                let (at, sql) = self.sql_to_arrow()?;
                self.condition(at, sql)?
            }
        };
        let rows = self.observed(Self::rows)?;
        let rows = rows.as_ref().map(|rows| rows.iter().map(borrow).collect::<Vec<_>>());
        let (predicate, rows) = (self.predicates().predicate(&predicate), rows.as_deref());
        send(&match word {
            "select" => Op::PredicateRead { predicate, rows },
            _ => Op::PredicateWrite { predicate, rows },
        })
    }

    /// `aggregate`, of which the word is the token at hand.
    pub(super) fn aggregate_operation(&mut self, send: Send<'_>) -> Result<(), Fault> {
        let [function, predicate] = match self.texts_in_quotes(2)? {
            Some(mut quoted) => [quoted.remove(0), quoted.remove(0)],
            None => {
                let (at, sql) = self.sql_to_arrow()?;
                let (function, rest) = sql.split_at(end_of_call(sql));
                if let Err(error) = function.parse::<Aggregate>() {
                    let expected = "a function such as count(*) or sum(balance)";
                    return Err(Fault::malformed(at, expected, error));
                }
                let rest_at = at + sql.len() - rest.trim_start().len();
                [function.to_owned(), self.condition(rest_at, rest.trim_start())?]
            }
        };
        let result = self.observed(Self::value)?;
        let result = result.as_ref().map(Datum::as_ref);
        let (function, predicate) = self.predicates().aggregate(&function, &predicate);
        send(&Op::Aggregate { function, predicate, result })
    }

    /// So many texts in quotes and perhaps an arrow, if that is what follows the word at hand.
    fn texts_in_quotes(&mut self, count: usize) -> Result<Option<Vec<String>>, Fault> {
        let mark = self.mark();
        if !self.quote_follows() {
            return Ok(None);
        }
        let texts = self.take_texts(count).unwrap_or_default();
        let is_answer = matches!(self.token(), Token::Arrow | Token::Sign('{' | '?'))
            || (count == 2 && !matches!(self.token(), Token::Sign(_)));
        if texts.len() < count || !is_answer {
            // A column in quotes begins a condition, in which there are signs that are none here.
            self.reset(mark);
            return Ok(None);
        }
        if self.take_arrow()? {
            self.skip_line_ends()?;
        }
        Ok(Some(texts))
    }

    fn take_texts(&mut self, count: usize) -> Result<Vec<String>, Fault> {
        self.advance()?;
        let mut texts = Vec::new();
        while texts.len() < count
            && let Token::Text(text) = self.token()
        {
            texts.push(text.to_string());
            self.advance()?;
        }
        Ok(texts)
    }

    /// What stands between the word at hand and the arrow, which is passed, and where it begins.
    fn sql_to_arrow(&mut self) -> Result<(usize, &'a str), Fault> {
        let (at, sql) = self.raw_to_arrow()?;
        self.advance()?;
        self.take_arrow()?;
        self.skip_line_ends()?;
        Ok((at, sql))
    }

    /// A condition in SQL, which must be one; `where` may stand before it.
    fn condition(&mut self, at: usize, sql: &str) -> Result<String, Fault> {
        let sql = match (sql.get(..5), sql.get(5..)) {
            (Some(word), Some(rest))
                if word.eq_ignore_ascii_case("where") && rest.starts_with(char::is_whitespace) =>
            {
                rest.trim_start()
            }
            _ => sql,
        };
        if let Predicate::Unparsed(_) = self.predicates().predicate(sql)
            && let Err(error) = sql.parse::<Predicate>()
        {
            let expected = "a predicate such as from accounts where balance > 10, or in \"quotes\"";
            return Err(Fault::malformed(at, expected, error));
        }
        Ok(sql.to_owned())
    }

    /// `{k1: 5, accounts(id=1): (balance=20) @7/2}`.
    fn rows(&mut self) -> Result<Vec<RowDatum<'a>>, Fault> {
        self.expect_sign('{')?;
        let mut rows = Vec::new();
        loop {
            self.skip_line_ends()?;
            if self.take_sign('}')? {
                return Ok(rows);
            }
            let key = self.value()?;
            self.expect_sign(':')?;
            let value = self.value()?;
            let version = if self.take_sign('@')? { Some(self.version()?) } else { None };
            rows.push(PredicateRow { key, value, version });
            if !self.take_sign(',')? {
                self.skip_line_ends()?;
                self.expect_sign('}')?;
                return Ok(rows);
            }
        }
    }

    /// `initial`; `7/2`, the second write of transaction 7; or `2=5`, the second write, of value 5.
    fn version(&mut self) -> Result<VersionRef, Fault> {
        let expected = "a version: `initial`, `transaction/write` or `write=value`";
        let (at, word) = (self.at(), self.take_any_word(expected)?);
        let wrong = || Fault::malformed(at, expected, format_args!("`{word}`"));
        if word == "initial" {
            return Ok(VersionRef::Initial);
        }
        if let Some((txn, write)) = word.split_once('/') {
            let numbers = txn.parse().ok().zip(write.parse().ok());
            let (txn, write) = numbers.ok_or_else(wrong)?;
            return Ok(VersionRef::ByWriter { txn, write });
        }
        let write = word.parse().map_err(|_| wrong())?;
        self.expect_sign('=')?;
        let value = self.take_any_word(expected)?.parse().map_err(|_| wrong())?;
        Ok(VersionRef::ByWrite { write, value })
    }
}

fn borrow<'r>(row: &'r RowDatum<'_>) -> RowInput<'r> {
    PredicateRow { key: row.key.as_ref(), value: row.value.as_ref(), version: row.version }
}

/// Where the call that a text begins with ends: behind the parenthesis that closes its first one.
fn end_of_call(sql: &str) -> usize {
    let mut depth = 0;
    for (at, c) in sql.char_indices() {
        match c {
            '(' => depth += 1,
            ')' if depth == 1 => return at + 1,
            ')' => depth -= 1,
            _ => {}
        }
    }
    sql.len()
}
