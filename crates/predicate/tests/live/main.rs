//! The evaluator against real servers: random expressions on random rows. A server that is not
//! installed is a failure.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod mariadb;
mod postgres;
#[path = "../dialects/random.rs"]
mod random;

use isolario_predicate::{Decimal, Dialect, EvalError, Expr, Literal, Operand, Truth};

use random::{Random, TestRow, volume};

/// What a server says of an expression on a row: a value as text, null, or an error.
enum Answer {
    Value(String),
    Null,
    Error(String),
}

/// A server with a table `r` of the columns of a row, and their position `id`.
trait Server {
    /// Fills the table anew.
    fn fill(&mut self, rows: &[TestRow]);

    /// What expressions are on the rows, one after the other.
    fn ask(&mut self, expressions: &[String], rows: usize) -> Vec<Vec<Answer>>;
}

const ROWS: usize = 25;
const EXPRESSIONS: usize = 40;

/// Compares the evaluator with a server, and tells how many results it left open.
fn compare(server: &mut dyn Server, dialect: Dialect, seed: u64) {
    let mut random = Random::new(seed);
    let (mut evaluated, mut open) = (0, 0);
    while evaluated < volume() / 4 {
        let rows: Vec<_> = (0..ROWS).map(|_| random.row()).collect();
        server.fill(&rows);
        let conditions = (0..EXPRESSIONS / 2).map(|_| random.condition(3)).collect::<Vec<_>>();
        let numbers = (0..EXPRESSIONS / 2).map(|_| random.number(3)).collect::<Vec<_>>();
        let expressions: Vec<&Expr> = conditions.iter().chain(&numbers).collect();
        let texts: Vec<String> = expressions.iter().map(ToString::to_string).collect();
        for (at, answers) in server.ask(&texts, ROWS).iter().enumerate() {
            for (row, theirs) in rows.iter().zip(answers) {
                let ours = match at < EXPRESSIONS / 2 {
                    true => expressions[at].truth(&row.as_slice(), dialect).map(Operand::from),
                    false => expressions[at].value(&row.as_slice(), dialect),
                };
                let what = || format!("{} on {row:?}: {ours:?}", texts[at]);
                evaluated += 1;
                match agree(&ours, theirs, dialect) {
                    Some(agrees) => assert!(agrees, "{}, and {}", what(), shown(theirs)),
                    None => open += 1,
                }
            }
        }
    }
    assert!(open * 2 < evaluated, "{open} of {evaluated} were left open");
}

/// Whether both say the same; none where one of them says nothing. A database may raise an error
/// where the value does not depend on what fails.
fn agree(ours: &Result<Operand<'_>, EvalError>, theirs: &Answer, dialect: Dialect) -> Option<bool> {
    let ours = match (ours, theirs) {
        (Err(EvalError::DivisionByZero), Answer::Error(code)) => return Some(code == "22012"),
        (Err(EvalError::Overflow | EvalError::Inexact | EvalError::Collation), _) => return None,
        (Ok(_), Answer::Error(_)) => return None,
        (Err(_), _) => return Some(false),
        (Ok(ours), _) => *ours,
    };
    Some(match (ours, theirs) {
        (Operand::Null, theirs) => matches!(theirs, Answer::Null),
        (Operand::Bool(ours), Answer::Value(theirs)) => match theirs.as_str() {
            "true" | "1" => ours,
            "false" | "0" => !ours,
            _ => false,
        },
        (ours, Answer::Value(theirs)) => {
            let theirs = Decimal::parse(theirs).unwrap();
            ours.is(Operand::Decimal(theirs.as_ref()), dialect).unwrap()
        }
        _ => false,
    })
}

fn shown(answer: &Answer) -> String {
    match answer {
        Answer::Value(value) => format!("the server says {value}"),
        Answer::Null => "the server says null".to_owned(),
        Answer::Error(code) => format!("the server raises {code}"),
    }
}

/// The rows as SQL.
fn values(rows: &[TestRow]) -> String {
    let row = |(id, row): (usize, &TestRow)| {
        let cells: Vec<String> =
            row.iter().map(|(_, cell): &(_, Literal)| cell.to_string()).collect();
        format!("({id}, {})", cells.join(", "))
    };
    rows.iter().enumerate().map(row).collect::<Vec<_>>().join(", ")
}

/// A server that says nothing new is no test: conditions do come out in all three ways.
#[test]
fn conditions_come_out_in_all_three_ways() {
    let mut random = Random::new(9);
    let mut counts = [0; 3];
    for _ in 0..1000 {
        let (condition, row) = (random.condition(3), random.row());
        match condition.truth(&row.as_slice(), Dialect::Sqlite) {
            Ok(Truth::True) => counts[0] += 1,
            Ok(Truth::False) => counts[1] += 1,
            Ok(Truth::Unknown) => counts[2] += 1,
            Err(_) => {}
        }
    }
    assert!(counts.iter().all(|count| *count > 100), "{counts:?}");
}
