//! Instrumentation: statements that also tell which rows they touch.
//!
//! Every table has two auxiliary columns: what a row is called by, and the list of statements that
//! wrote it (IsoRel, Section 3.1). A statement is parsed and rewritten so that
//!
//! - a query also returns, for each table that it reads, the names and lists of the rows it shows;
//! - an insert gives its rows a name and a first element;
//! - an update appends its element, which is the transaction's number and its own: `7.3`;
//! - a delete returns the names and lists of what it deletes.
//!
//! Where more columns would change what a query means (`DISTINCT`, `UNION`, aggregates, subqueries in
//! conditions), the rows are gathered into a text by an aggregate or by a scalar subquery over the
//! same rows, in the same statement: its value is the same for all rows of the answer, so no two of
//! them become different. What cannot be rewritten is run as it is, and counted.

mod companion;
mod query;
mod write;

use std::fmt;

use sqlparser::ast::{Expr, Ident, SelectItem, Statement};

use crate::product::Product;
use crate::schema::{Aux, Schema};

/// The kinds of statement, as far as they matter to what is unique about an anomaly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum StatementKind {
    /// A plain query.
    Select,
    /// A query that locks rows against everyone.
    SelectForUpdate,
    /// A query that locks rows against writers.
    SelectForShare,
    /// An insert of given rows.
    Insert,
    /// An insert of the rows of a query.
    InsertSelect,
    /// An insert that updates the row whose key is taken, or leaves it.
    Upsert,
    /// An insert that deletes the rows whose key is taken.
    Replace,
    /// An update.
    Update,
    /// A delete.
    Delete,
    /// Anything else: savepoints, and what could not be parsed.
    Other,
}

impl StatementKind {
    /// Its name.
    pub fn name(self) -> &'static str {
        match self {
            StatementKind::Select => "SELECT",
            StatementKind::SelectForUpdate => "SELECT FOR UPDATE",
            StatementKind::SelectForShare => "SELECT FOR SHARE",
            StatementKind::Insert => "INSERT",
            StatementKind::InsertSelect => "INSERT SELECT",
            StatementKind::Upsert => "UPSERT",
            StatementKind::Replace => "REPLACE",
            StatementKind::Update => "UPDATE",
            StatementKind::Delete => "DELETE",
            StatementKind::Other => "other",
        }
    }

    /// Whether it reads and writes nothing.
    pub fn is_read(self) -> bool {
        matches!(
            self,
            StatementKind::Select | StatementKind::SelectForUpdate | StatementKind::SelectForShare
        )
    }
}

impl fmt::Display for StatementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Why a statement is run as it is.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// The parser does not know it.
    #[error("cannot be parsed: {0}")]
    Unparsed(String),
    /// A table or view that is not part of the schema.
    #[error("unknown relation {0}")]
    Relation(String),
    /// A construct that is not rewritten.
    #[error("not instrumented: {0}")]
    Construct(&'static str),
}

/// A column that instrumentation added to an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shown {
    /// Whether its rows are locked by the statement: then they are the newest ones, whatever snapshot
    /// the rest of the statement reads.
    pub locked: bool,
}

/// A statement as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Instrumented {
    /// What kind of statement it is.
    pub kind: StatementKind,
    /// A read that goes before it in the same transaction, of the rows that it deletes.
    pub before: Option<String>,
    /// The statement.
    pub sql: String,
    /// The last columns of its answer, which are ours.
    pub shows: Vec<Shown>,
    /// Whether the rows that it shows are deleted by it.
    pub deletes: bool,
    /// The table that it writes to.
    pub target: Option<String>,
    /// The rows that it certainly inserts, if it succeeds.
    pub inserts: Vec<String>,
    /// Why it is run as it is, if it is.
    pub refusal: Option<Refusal>,
    /// Whether it reads rows that it does not show, in subqueries of writes and the like.
    pub is_partial: bool,
    /// Whether two more columns come last: whether there is a row at all, and all rows of the table.
    pub tells_all_rows: bool,
}

impl Instrumented {
    /// A statement that is sent as it is.
    pub fn plain(kind: StatementKind, sql: String) -> Instrumented {
        Instrumented {
            kind,
            before: None,
            sql,
            shows: Vec::new(),
            deletes: false,
            target: None,
            inserts: Vec::new(),
            refusal: None,
            is_partial: false,
            tells_all_rows: false,
        }
    }
}

/// Rewrites statements over a schema.
#[derive(Clone, Copy, Debug)]
pub struct Instrument<'s> {
    /// The product that has to understand them.
    pub product: &'s Product,
    /// The schema.
    pub schema: &'s Schema,
    /// The auxiliary columns.
    pub aux: &'s Aux,
}

impl Instrument<'_> {
    /// The statement of a transaction at a position, both counted from 1.
    pub fn statement(&self, sql: &str, txn: u32, number: u32) -> Instrumented {
        let mut statement = match self.product.parse(sql) {
            Ok(statement) => statement,
            Err(error) => {
                let refusal = Some(Refusal::Unparsed(error.to_string()));
                let plain = Instrumented::plain(StatementKind::Other, sql.to_owned());
                return Instrumented { refusal, ..plain };
            }
        };
        let kind = kind(&statement);
        let as_it_is = self.product.spell(&statement);
        let rewrite = Rewrite { names: *self, element: format!("{txn}.{number}"), next: 0 };
        match rewrite.statement(&mut statement, kind) {
            Ok(instrumented) => instrumented,
            Err(refusal) => Instrumented {
                refusal: Some(refusal),
                target: write::target(&statement),
                ..Instrumented::plain(kind, as_it_is)
            },
        }
    }
}

/// What kind of statement a text is; [`StatementKind::Other`] if it cannot be parsed.
pub fn kind_of(product: &Product, sql: &str) -> StatementKind {
    product.parse(sql).map_or(StatementKind::Other, |statement| kind(&statement))
}

fn kind(statement: &Statement) -> StatementKind {
    use sqlparser::ast::{LockType, SetExpr, SqliteOnConflict};
    match statement {
        Statement::Query(query) => match query.locks.first().map(|lock| lock.lock_type) {
            None => StatementKind::Select,
            Some(LockType::Update) => StatementKind::SelectForUpdate,
            Some(LockType::Share) => StatementKind::SelectForShare,
        },
        Statement::Insert(insert) => match insert.source.as_ref().map(|source| &*source.body) {
            _ if insert.replace_into || insert.or == Some(SqliteOnConflict::Replace) => {
                StatementKind::Replace
            }
            _ if insert.on.is_some() || insert.ignore || insert.or.is_some() => {
                StatementKind::Upsert
            }
            Some(SetExpr::Values(_)) => StatementKind::Insert,
            _ => StatementKind::InsertSelect,
        },
        Statement::Update(_) => StatementKind::Update,
        Statement::Delete(_) => StatementKind::Delete,
        _ => StatementKind::Other,
    }
}

/// A statement that is being rewritten.
struct Rewrite<'s> {
    names: Instrument<'s>,
    /// What this statement appends to the lists of rows.
    element: String,
    /// The number of the next column of ours.
    next: u32,
}

impl Rewrite<'_> {
    fn statement(
        mut self,
        statement: &mut Statement,
        kind: StatementKind,
    ) -> Result<Instrumented, Refusal> {
        let product = self.names.product;
        match statement {
            Statement::Query(query) => {
                let has_locks = !query.locks.is_empty();
                let exports = self.query(query)?;
                let shows =
                    exports.iter().map(|export| Shown { locked: export.is_row && has_locks });
                let shows = shows.collect();
                Ok(Instrumented { shows, ..Instrumented::plain(kind, product.spell(statement)) })
            }
            Statement::Insert(insert) => {
                let mut written = self.insert(insert, kind)?;
                written.sql = product.spell(statement);
                Ok(written)
            }
            Statement::Update(update) => {
                let mut written = self.update(update)?;
                written.sql = product.spell(statement);
                Ok(written)
            }
            Statement::Delete(delete) => {
                let mut written = self.delete(delete)?;
                written.sql = product.spell(statement);
                Ok(written)
            }
            _ => Ok(Instrumented::plain(kind, product.spell(statement))),
        }
    }

    /// An expression, from its text. Whatever goes in consists of names and literals of our own.
    fn expr(&self, text: &str) -> Result<Expr, Refusal> {
        let unparsed = |error: sqlparser::parser::ParserError| Refusal::Unparsed(error.to_string());
        self.names.product.parser(text).map_err(unparsed)?.parse_expr().map_err(unparsed)
    }

    /// A new name for a column of ours.
    fn alias(&mut self) -> Ident {
        self.next += 1;
        Ident::new(format!("isolario_seen_{}", self.next))
    }

    /// The name and list of a row, as the text of an expression: `t0/1=7.3,8.1`.
    fn row_text(&self, qualifier: Option<&str>) -> String {
        self.names.product.concatenation(&self.row_parts(qualifier))
    }

    /// What that text consists of.
    fn row_parts(&self, qualifier: Option<&str>) -> [String; 3] {
        let Aux { row, list, .. } = self.names.aux;
        let qualified = |column: &str| match qualifier {
            Some(qualifier) => format!("{qualifier}.{column}"),
            None => column.to_owned(),
        };
        [qualified(row), "'='".to_owned(), qualified(list)]
    }

    fn item(&mut self, expr: Expr) -> SelectItem {
        SelectItem::ExprWithAlias { expr, alias: self.alias() }
    }
}

#[cfg(test)]
mod tests;
