//! A script from its SQL: what [`Script::to_sql`](super::Script::to_sql) writes, or somebody has
//! written by hand.
//!
//! Statements end with a semicolon. Those at the beginning make the schema; the others are each
//! preceded by a comment that says whose turn it is, `/* session 1, T3 */`. Other comments are passed
//! over, so that answers may stand beside the statements.

use super::{Action, Script, Step};
use crate::product::Product;
use crate::schema::SchemaError;

/// Why a text is no script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line}: {problem}")]
pub struct ScriptError {
    /// The line on which the statement begins.
    pub line: usize,
    /// What is wrong with it.
    pub problem: ScriptProblem,
}

/// What is wrong with a statement of a script.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScriptProblem {
    /// A statement of the schema that is not understood.
    #[error(transparent)]
    Schema(SchemaError),
    /// A statement after those of the schema that nobody is told to send.
    #[error(
        "expected a comment such as /* session 1, T1 */ before the statement, to name its session"
    )]
    Nobody,
    /// A quotation or comment that does not end.
    #[error("{0} has no end")]
    Endless(&'static str),
    /// There is nothing to send.
    #[error("the script has no statements of a session")]
    Empty,
}

impl Script {
    /// Reads a script in the dialect of a product.
    pub fn read(text: &str, product: &Product) -> Result<Script, ScriptError> {
        let mut script = Script::default();
        for Piece { line, turn, sql } in pieces(text)? {
            let fail = |problem| ScriptError { line, problem };
            match turn {
                Some((session, txn)) => {
                    let action = action(&sql);
                    script.steps.push(Step { session, txn, action });
                }
                None if !script.steps.is_empty() => return Err(fail(ScriptProblem::Nobody)),
                None => script
                    .schema
                    .take_statement(product, &sql)
                    .map_err(|error| fail(ScriptProblem::Schema(error)))?,
            }
        }
        match script.steps.is_empty() {
            true => Err(ScriptError { line: 1, problem: ScriptProblem::Empty }),
            false => Ok(script),
        }
    }

    /// Reads a script in the first dialect that it is written in.
    pub fn read_any(text: &str) -> Result<Script, ScriptError> {
        let products = [Product::POSTGRES, Product::MARIADB, Product::SQLITE];
        let mut first = None;
        for product in products {
            match Script::read(text, &product) {
                Ok(script) => return Ok(script),
                Err(error) => first = first.or(Some(error)),
            }
        }
        Err(first.unwrap_or(ScriptError { line: 1, problem: ScriptProblem::Empty }))
    }
}

fn action(sql: &str) -> Action {
    match sql.to_ascii_uppercase().as_str() {
        "BEGIN" | "START TRANSACTION" => Action::Begin,
        "COMMIT" => Action::Commit,
        "ROLLBACK" => Action::Rollback,
        // The form of MariaDB, which the parser does not know; it is spelled that way again when sent.
        upper => Action::Statement(match upper.strip_suffix(" LOCK IN SHARE MODE") {
            Some(bare) => format!("{} FOR SHARE", &sql[..bare.len()]),
            None => sql.to_owned(),
        }),
    }
}

/// A statement of a text, without comments.
struct Piece {
    line: usize,
    /// The session from 0 and the transaction, where a comment tells them.
    turn: Option<(u32, u32)>,
    sql: String,
}

/// Splits a text at its semicolons.
fn pieces(text: &str) -> Result<Vec<Piece>, ScriptError> {
    let mut pieces = Vec::new();
    let mut piece = Piece { line: 1, turn: None, sql: String::new() };
    let (mut rest, mut line) = (text, 1);
    while let Some(first) = rest.chars().next() {
        let endless = |what| ScriptError { line, problem: ScriptProblem::Endless(what) };
        let length = match first {
            _ if rest.starts_with("--") => rest.find('\n').unwrap_or(rest.len()),
            _ if rest.starts_with("/*") => {
                let end = rest.find("*/").ok_or_else(|| endless("the comment"))?;
                piece.turn = turn(&rest[2..end]).or(piece.turn);
                end + 2
            }
            // A quotation mark that stands twice ends one quotation and begins the next.
            '\'' | '"' | '`' => {
                let end = rest[1..].find(first).ok_or_else(|| endless("the quotation"))?;
                piece.sql.push_str(&rest[..end + 2]);
                end + 2
            }
            ';' => {
                let sql = piece.sql.trim().to_owned();
                if !sql.is_empty() {
                    pieces.push(Piece { sql, ..piece });
                }
                piece = Piece { line, turn: None, sql: String::new() };
                1
            }
            _ => {
                if piece.sql.trim().is_empty() && !first.is_whitespace() {
                    piece.line = line;
                }
                piece.sql.push(first);
                first.len_utf8()
            }
        };
        line += rest[..length].matches('\n').count();
        rest = &rest[length..];
    }
    match piece.sql.trim().is_empty() {
        true => Ok(pieces),
        false => {
            let problem = ScriptProblem::Endless("the last statement");
            Err(ScriptError { line: piece.line, problem })
        }
    }
}

/// Whose turn it is, by a comment such as ` session 1, T3 `.
fn turn(comment: &str) -> Option<(u32, u32)> {
    let (session, txn) = comment.trim().strip_prefix("session ")?.split_once(", T")?;
    let session: u32 = session.parse().ok()?;
    Some((session.checked_sub(1)?, txn.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::generate::{Planner, Style};
    use crate::schema::{Bounds, Schema};

    /// A script with transactions over a random schema.
    fn random(product: &Product, round: u64) -> Script {
        let schema = Schema::random(3, round, &Bounds::default());
        let style = Style::default();
        let planner =
            Planner { schema: &schema, product, style: &style, models: &[], seed: 3, round };
        let mut steps = Vec::new();
        for txn in 1..4u32 {
            let step = |action| Step { session: txn % 2, txn, action };
            let planned = planner.transaction(0, u64::from(txn));
            steps.push(step(Action::Begin));
            steps.extend(planned.statements.into_iter().map(Action::Statement).map(step));
            steps.push(step(if planned.commits { Action::Commit } else { Action::Rollback }));
        }
        Script { schema, steps }
    }

    #[test]
    fn what_is_written_is_read_again() {
        for product in [Product::POSTGRES, Product::MARIADB, Product::MYSQL, Product::SQLITE] {
            for round in 0..150 {
                let mut script = random(&product, round);
                // Statements are read back in the words in which they are printed.
                for step in &mut script.steps {
                    if let Action::Statement(sql) = &mut step.action {
                        *sql = product.parse(sql).unwrap().to_string();
                    }
                }
                let text = script.to_sql(&product, None);
                let read = Script::read(&text, &product).unwrap_or_else(|e| panic!("{e}: {text}"));
                assert_eq!(read.steps, script.steps, "{text}");
                // Truth values are printed in small letters.
                let again = read.to_sql(&product, None);
                assert_eq!(again.to_lowercase(), text.to_lowercase());
                assert!(Script::read_any(&text).is_ok(), "{text}");
            }
        }
    }

    #[test]
    fn scripts_can_be_written_by_hand() {
        let text = "-- two tables\ncreate table a (k int primary key, v text default 'x;y');\n\
                    insert into a values (1, 'it''s');\n\n\
                    /* session 1, T1 */ start transaction;\n\
                    /* session 1, T1 */ select v -- what?\n  from a\n  lock in share mode;\n\
                    /* session 2, T2 */ DELETE FROM a; -- 1 row\n\
                    /* session 1, T1 */ commit;\n";
        let script = Script::read_any(text).unwrap();
        let table = &script.schema.tables[0];
        assert_eq!(table.rows, [["1", "'it''s'"]]);
        assert_eq!(table.primary_key, [0]);
        assert_eq!(table.columns[1].default.as_deref(), Some("'x;y'"));
        let actions: Vec<&Action> = script.steps.iter().map(|step| &step.action).collect();
        let statement = |sql: &str| Action::Statement(sql.to_owned());
        let select = statement("select v \n  from a\n  FOR SHARE");
        let expected = [Action::Begin, select, statement("DELETE FROM a"), Action::Commit];
        assert_eq!(actions, expected.iter().collect::<Vec<_>>());
        assert_eq!(script.steps[2].session, 1);
    }

    #[test]
    fn what_is_wrong_has_a_line() {
        for (text, message) in [
            ("", "line 1: the script has no statements of a session"),
            (
                "CREATE TABLE t (c INTEGER);\n\nSELECT 1;",
                "line 3: not a statement of a schema: SELECT 1",
            ),
            (
                "/* session 1, T1 */ BEGIN;\nCOMMIT;",
                "line 2: expected a comment such as /* session 1, T1 */ before the statement, to \
                 name its session",
            ),
            ("/* session 1, T1 */ BEGIN;\n\n COMMIT", "line 3: the last statement has no end"),
            ("SELECT 'x", "line 1: the quotation has no end"),
            ("/* x", "line 1: the comment has no end"),
            (
                "CREATE TABLE t (c BYTEA);",
                "line 1: columns of the type BYTEA are not known: CREATE TABLE t (c BYTEA)",
            ),
        ] {
            let error = Script::read(text, &Product::POSTGRES).unwrap_err();
            assert_eq!(error.to_string(), message);
        }
    }
}
