//! What the databases differ in, as far as relational testing is concerned.

use isolario_predicate::Dialect;
use sqlparser::ast::{LockType, Statement};
use sqlparser::dialect::{MySqlDialect, PostgreSqlDialect, SQLiteDialect};
use sqlparser::parser::{Parser, ParserError};
use sqlparser::tokenizer::{Token, Tokenizer, TokenizerError};

/// A database product: its dialect, and what sets it apart from others of that dialect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Product {
    /// The dialect.
    pub dialect: Dialect,
    /// Whether `DELETE … RETURNING` tells which rows it deleted.
    pub delete_returns: bool,
    /// Whether rows can be locked by a read.
    pub locking_reads: bool,
    /// Whether a shared lock is asked for by `LOCK IN SHARE MODE`, and not by `FOR SHARE`.
    pub old_share_lock: bool,
    /// Whether writes lock the gaps between rows, so that nobody inserts there.
    gap_locks: bool,
    /// Whether it is a single server, which gives snapshots and a serial order in real time.
    pub is_alone: bool,
}

/// The scope of a snapshot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SnapshotScope {
    /// A statement, with its subqueries.
    Statement,
    /// A transaction.
    Transaction,
}

/// A limit on how many rows a query shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limit {
    /// Whether an order says which rows come first.
    pub is_ordered: bool,
}

impl Product {
    /// PostgreSQL, and CockroachDB as far as it goes along.
    pub const POSTGRES: Product = Product {
        dialect: Dialect::Postgres,
        delete_returns: true,
        locking_reads: true,
        old_share_lock: false,
        gap_locks: false,
        is_alone: true,
    };
    /// MariaDB.
    pub const MARIADB: Product = Product {
        dialect: Dialect::MySql,
        delete_returns: true,
        locking_reads: true,
        old_share_lock: true,
        gap_locks: true,
        is_alone: true,
    };
    /// MySQL, and TiDB as far as it goes along.
    pub const MYSQL: Product = Product {
        dialect: Dialect::MySql,
        delete_returns: false,
        locking_reads: true,
        old_share_lock: false,
        gap_locks: true,
        is_alone: true,
    };
    /// SQLite.
    pub const SQLITE: Product = Product {
        dialect: Dialect::Sqlite,
        delete_returns: true,
        locking_reads: false,
        old_share_lock: false,
        gap_locks: false,
        is_alone: true,
    };

    /// The product that an adapter calls by this name, if it speaks SQL that is known here.
    pub fn named(name: &str) -> Option<Product> {
        match name {
            "postgres" => Some(Product::POSTGRES),
            "cockroach" => Some(Product { is_alone: false, ..Product::POSTGRES }),
            "mariadb" => Some(Product::MARIADB),
            "galera" => Some(Product { is_alone: false, ..Product::MARIADB }),
            "mysql" => Some(Product::MYSQL),
            "tidb" => Some(Product { gap_locks: false, is_alone: false, ..Product::MYSQL }),
            "sqlite" => Some(Product::SQLITE),
            _ => None,
        }
    }

    /// Whether an error ends the transaction.
    pub fn ends_on_error(&self) -> bool {
        self.dialect == Dialect::Postgres
    }

    /// Whether serializable transactions that only read lock the rows that they read.
    pub fn readers_lock(&self) -> bool {
        self.dialect != Dialect::Postgres
    }

    /// Whether schemas can be kept apart in one database.
    pub fn has_namespaces(&self) -> bool {
        self.dialect != Dialect::Sqlite
    }

    /// The scope of a snapshot, for queries that lock nothing. At repeatable read, MySQL has one per transaction.
    /// SQLite has one because no transaction commits into another that has begun to read.
    pub fn snapshots(&self, isolation: &str) -> Option<SnapshotScope> {
        match (self.dialect, isolation) {
            _ if !self.is_alone => None,
            (Dialect::Postgres, "read-committed") => Some(SnapshotScope::Statement),
            (Dialect::Postgres | Dialect::Sqlite, "repeatable-read" | "serializable")
            | (Dialect::MySql, "repeatable-read" | "innodb-snapshot-isolation") => {
                Some(SnapshotScope::Transaction)
            }
            _ => None,
        }
    }

    /// Whether a locking read at this setting sees the newest rows instead of the snapshot that
    /// plain reads of the transaction see: MySQL and its kin at repeatable read.
    pub fn has_current_reads(&self, isolation: &str) -> bool {
        self.dialect == Dialect::MySql && isolation == "repeatable-read"
    }

    /// Whether a statement outside of any transaction reads from a snapshot where it does not say that it
    /// locks, even at serializable: MySQL and its kin.
    pub fn mixes_reads(&self) -> bool {
        self.dialect == Dialect::MySql
    }

    /// Whether writes at this setting lock the gaps between rows.
    pub fn locks_gaps(&self, isolation: &str) -> bool {
        self.gap_locks && matches!(isolation, "repeatable-read" | "serializable")
    }

    /// The limit of a query, if it has one.
    pub fn limit_of(&self, sql: &str) -> Option<Limit> {
        match self.parse(sql) {
            Ok(Statement::Query(query)) if query.limit_clause.is_some() => {
                Some(Limit { is_ordered: query.order_by.is_some() })
            }
            _ => None,
        }
    }

    /// Parses one statement.
    pub(crate) fn parse(&self, sql: &str) -> Result<Statement, ParserError> {
        let mut parser = self.parser(sql)?;
        let statement = parser.parse_statement()?;
        match parser.peek_token().token {
            Token::EOF => Ok(statement),
            // What comes after it would be lost.
            _ => parser.expected("the end of the statement", parser.peek_token()),
        }
    }

    /// A parser of a text.
    pub(crate) fn parser<'a>(&self, sql: &str) -> Result<Parser<'a>, ParserError> {
        match self.dialect {
            Dialect::Postgres => Parser::new(&PostgreSqlDialect {}),
            Dialect::MySql => Parser::new(&MySqlDialect {}),
            _ => Parser::new(&SQLiteDialect {}),
        }
        .try_with_sql(sql)
    }

    /// The tokens of a text, as they stand there.
    pub(crate) fn tokens(&self, sql: &str) -> Result<Vec<Token>, TokenizerError> {
        let tokens = |dialect: &dyn sqlparser::dialect::Dialect| {
            Tokenizer::new(dialect, sql).with_unescape(false).tokenize()
        };
        match self.dialect {
            Dialect::Postgres => tokens(&PostgreSqlDialect {}),
            Dialect::MySql => tokens(&MySqlDialect {}),
            _ => tokens(&SQLiteDialect {}),
        }
    }

    /// Prints a statement as this product wants it.
    pub(crate) fn spell(&self, statement: &Statement) -> String {
        if self.old_share_lock
            && let Statement::Query(query) = statement
            && query.locks.iter().any(|lock| lock.lock_type == LockType::Share)
        {
            let mut bare = query.clone();
            bare.locks.clear();
            return format!("{bare} LOCK IN SHARE MODE");
        }
        statement.to_string()
    }

    /// A statement as this product wants it: what the generator writes is the same for several
    /// products of a dialect. What cannot be parsed stays as it is.
    pub fn respell(&self, sql: &str) -> String {
        match self.parse(sql) {
            Ok(statement) => self.spell(&statement),
            Err(_) => sql.to_owned(),
        }
    }

    /// Statements that make a namespace of the run's own, and leave nothing of an earlier one of
    /// that name. SQLite has none: there, the file is the namespace.
    pub fn make_namespace(&self, name: &str) -> Vec<String> {
        let mut statements = self.drop_namespace(name);
        match self.dialect {
            Dialect::Postgres => statements.push(format!("CREATE SCHEMA {name}")),
            Dialect::MySql => statements.push(format!("CREATE DATABASE {name}")),
            _ => {}
        }
        statements
    }

    /// Statements that make a connection see the namespace, and whatever else our answers need.
    pub fn enter_namespace(&self, name: &str) -> Vec<String> {
        match self.dialect {
            Dialect::Postgres => vec![format!("SET search_path TO {name}")],
            Dialect::MySql => vec![
                format!("USE {name}"),
                "SET SESSION group_concat_max_len = 16777216".to_owned(),
            ],
            _ => vec!["PRAGMA foreign_keys = ON".to_owned()],
        }
    }

    /// Statements that drop the namespace and everything in it.
    pub fn drop_namespace(&self, name: &str) -> Vec<String> {
        match self.dialect {
            Dialect::Postgres => vec![format!("DROP SCHEMA IF EXISTS {name} CASCADE")],
            Dialect::MySql => vec![format!("DROP DATABASE IF EXISTS {name}")],
            _ => Vec::new(),
        }
    }

    /// Statements that give a session an isolation level, by the name that its adapter has for it. SQLite has
    /// none to choose from.
    pub fn set_isolation(&self, isolation: &str) -> Vec<String> {
        let level = isolation.replace('-', " ").to_uppercase();
        match (self.dialect, isolation) {
            (Dialect::Postgres, _) => {
                vec![format!("SET SESSION CHARACTERISTICS AS TRANSACTION ISOLATION LEVEL {level}")]
            }
            (Dialect::MySql, "innodb-snapshot-isolation") => vec![
                "SET SESSION innodb_snapshot_isolation = ON".to_owned(),
                "SET SESSION TRANSACTION ISOLATION LEVEL REPEATABLE READ".to_owned(),
            ],
            (Dialect::MySql, _) => {
                vec![format!("SET SESSION TRANSACTION ISOLATION LEVEL {level}")]
            }
            _ => Vec::new(),
        }
    }

    /// The statement that begins a transaction.
    pub fn begin(&self) -> &'static str {
        match self.dialect {
            Dialect::MySql => "START TRANSACTION",
            _ => "BEGIN",
        }
    }

    /// An expression that joins texts.
    pub(crate) fn concatenation(&self, parts: &[String]) -> String {
        match self.dialect {
            _ if parts.len() == 1 => parts[0].clone(),
            Dialect::MySql => format!("CONCAT({})", parts.join(", ")),
            _ => parts.join(" || "),
        }
    }

    /// An expression that joins a text of all rows, separated by semicolons.
    ///
    /// MariaDB makes a temporary table of whatever `GROUP_CONCAT` takes: on disk, which takes longer than the rest of
    /// the statement, if that is a text of more than 512 characters, unless it is a column that is not a `TEXT`. So
    /// it gets the parts one by one.
    pub(crate) fn gathering(&self, parts: &[String]) -> String {
        match self.dialect {
            Dialect::Postgres => format!("string_agg({}, ';')", self.concatenation(parts)),
            Dialect::MySql => format!("GROUP_CONCAT({} SEPARATOR ';')", parts.join(", ")),
            _ => format!("group_concat({}, ';')", self.concatenation(parts)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locking_reads_are_current_at_repeatable_read_of_mysql_and_its_kin_alone() {
        for product in [Product::MARIADB, Product::MYSQL] {
            assert!(product.has_current_reads("repeatable-read"));
            for isolation in ["read-uncommitted", "read-committed", "serializable"] {
                assert!(!product.has_current_reads(isolation));
            }
        }
        for product in [Product::POSTGRES, Product::SQLITE] {
            assert!(!product.has_current_reads("repeatable-read"));
        }
    }

    #[test]
    fn limits_have_an_order_or_not() {
        let limit = |sql: &str| Product::POSTGRES.limit_of(sql).map(|limit| limit.is_ordered);
        assert_eq!(limit("SELECT c FROM t ORDER BY c LIMIT 1"), Some(true));
        assert_eq!(limit("SELECT c FROM t LIMIT 1"), Some(false));
        assert_eq!(limit("SELECT c FROM t ORDER BY c"), None);
    }

    #[test]
    fn gaps_are_locked_by_innodb_at_its_stronger_levels() {
        assert!(Product::MARIADB.locks_gaps("repeatable-read"));
        assert!(!Product::MARIADB.locks_gaps("read-committed"));
        assert!(!Product::POSTGRES.locks_gaps("serializable"));
        assert!(!Product::named("tidb").unwrap().locks_gaps("repeatable-read"));
    }
}
