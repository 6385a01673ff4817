//! What the transactions of a script give when they do not overlap: what somebody who reads it expects.

use isolario_db::DbError;
use isolario_sql::{Recorded, Round, Script};

use super::replay::replay;
use super::site::{Site, Stage};

/// Scripts of more transactions have too many orders to read.
const MOST: usize = 3;

/// The answers of a script, beside those of its transactions one after the other in every order.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Orders {
    /// The orders, each by the numbers of the transactions. Those of one session keep theirs.
    pub orders: Vec<Vec<u32>>,
    /// The statements whose answers are not the same everywhere.
    pub answers: Vec<Answers>,
}

/// A statement, and what it gives.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answers {
    /// The transaction that sends it; none of those that read a table when everything is over.
    pub txn: Option<u32>,
    /// The statement.
    pub sql: String,
    /// What came back when the transactions overlapped.
    pub observed: String,
    /// What came back in each order.
    pub expected: Vec<String>,
}

impl Orders {
    /// Replays a script that was replayed already in every order of its transactions; none if there are too
    /// many.
    pub(super) fn of(
        site: &Site<'_>,
        stage: &Stage<'_>,
        script: &Script,
        observed: &Round,
    ) -> Result<Option<Orders>, DbError> {
        let txns = script.txns();
        if txns.len() < 2 || txns.len() > MOST {
            return Ok(None);
        }
        let orders = orders(script, &txns);
        let mut rounds = Vec::new();
        for order in &orders {
            rounds.push(replay(site, stage, &script.in_order(order))?);
        }
        let rounds: Vec<Vec<Sent>> = rounds.iter().map(sent).collect();
        let mut answers = Vec::new();
        for Sent { txn, number, sql, told } in sent(observed) {
            let same = |other: &&Sent| (other.txn, other.number) == (txn, number);
            let expected: Vec<String> = rounds
                .iter()
                .map(|round| match round.iter().find(same) {
                    Some(sent) => sent.told.clone(),
                    None => "not sent".to_owned(),
                })
                .collect();
            if expected.iter().any(|other| *other != told) {
                answers.push(Answers { txn, sql, observed: told, expected });
            }
        }
        Ok(Some(Orders { orders, answers }))
    }

    /// The first order that gives every answer that was observed.
    pub fn same(&self) -> Option<&[u32]> {
        let gives = |at: &usize| {
            self.answers.iter().all(|answers| answers.expected.get(*at) == Some(&answers.observed))
        };
        (0..self.orders.len()).find(gives).map(|at| self.orders[at].as_slice())
    }

    /// All of it in words, line by line.
    pub(super) fn lines(&self) -> Vec<String> {
        if let Some(order) = self.same() {
            let order = names(order);
            return vec![
                format!("By its answers alone, it could be {order} one after the other."),
                "Which versions of the rows the statements met tells otherwise.".to_owned(),
            ];
        }
        let lead = "One after the other, the transactions give other answers, in whatever order:";
        let mut lines = vec![lead.to_owned()];
        let width = self.orders.iter().map(|order| names(order).len()).max().unwrap_or(0).max(8);
        for Answers { txn, sql, observed, expected } in &self.answers {
            let who = txn.map_or("In the end".to_owned(), |txn| format!("T{txn}"));
            lines.push(format!("{who}: {sql}"));
            lines.push(format!("  {:width$}  {observed}", "observed"));
            for (order, answer) in self.orders.iter().zip(expected) {
                lines.push(format!("  {:width$}  {answer}", names(order)));
            }
        }
        lines
    }
}

fn names(order: &[u32]) -> String {
    let names: Vec<String> = order.iter().map(|txn| format!("T{txn}")).collect();
    names.join(", ")
}

/// A statement that was sent, and its answer.
struct Sent {
    txn: Option<u32>,
    number: u32,
    sql: String,
    told: String,
}

/// All statements of a round; of the looks at all tables in the end, the last one.
fn sent(round: &Round) -> Vec<Sent> {
    let last = round.transactions.iter().rfind(|txn| txn.is_final).map(|txn| txn.id);
    let mut all = Vec::new();
    for txn in round.transactions.iter().filter(|txn| !txn.is_final || Some(txn.id) == last) {
        for statement in &txn.statements {
            all.push(Sent {
                txn: (!txn.is_final).then_some(txn.id),
                number: statement.number,
                sql: statement.sql.clone(),
                told: told(statement),
            });
        }
    }
    all
}

/// An answer, whatever the order of its rows.
fn told(statement: &Recorded) -> String {
    let mut sorted = statement.clone();
    sorted.rows.sort();
    sorted.told()
}

/// The orders of transactions in which those of one session come as they are.
fn orders(script: &Script, txns: &[u32]) -> Vec<Vec<u32>> {
    let session =
        |txn: u32| script.steps.iter().find(|step| step.txn == txn).map(|step| step.session);
    let mut orders = vec![Vec::new()];
    for _ in txns {
        let longer = |order: &Vec<u32>| {
            let is_next = |txn: &&u32| {
                let comes_first = |other: &&u32| session(**other) == session(**txn);
                let first = txns.iter().filter(|other| !order.contains(other)).find(comes_first);
                !order.contains(txn) && first == Some(*txn)
            };
            let next = txns.iter().filter(is_next);
            next.map(|txn| [order.as_slice(), &[*txn]].concat()).collect::<Vec<_>>()
        };
        orders = orders.iter().flat_map(longer).collect();
    }
    orders
}

#[cfg(test)]
mod tests {
    use isolario_sql::{Action, Step};

    use super::*;

    #[test]
    fn sessions_keep_their_order() {
        let step = |session, txn| Step { session, txn, action: Action::Begin };
        let orders_of = |turns: &[(u32, u32)]| {
            let steps = turns.iter().map(|(session, txn)| step(*session, *txn)).collect();
            let script = Script { steps, ..Script::default() };
            orders(&script, &script.txns())
        };
        assert_eq!(orders_of(&[(0, 1), (1, 2)]), [[1, 2], [2, 1]]);
        assert_eq!(orders_of(&[(0, 1), (1, 2), (0, 3)]), [[1, 2, 3], [1, 3, 2], [2, 1, 3]]);
        assert_eq!(orders_of(&[(0, 1), (1, 2), (2, 3)]).len(), 6);
    }

    #[test]
    fn an_order_that_gives_all_answers_is_named() {
        let answers = |observed: &str, expected: [&str; 2]| Answers {
            txn: Some(1),
            sql: "SELECT c FROM t".to_owned(),
            observed: observed.to_owned(),
            expected: expected.map(str::to_owned).to_vec(),
        };
        let orders = vec![vec![1, 2], vec![2, 1]];
        let other =
            Orders { orders: orders.clone(), answers: vec![answers("(3)", ["(1)", "(2)"])] };
        assert_eq!(other.same(), None);
        let lines = other.lines().join("\n");
        assert!(lines.ends_with(
            "in whatever order:\nT1: SELECT c FROM t\n  observed  (3)\n  T1, T2    (1)\n  T2, T1    (2)"
        ));
        let same = Orders { orders, answers: vec![answers("(2)", ["(1)", "(2)"])] };
        assert_eq!(same.same(), Some(&[2, 1][..]));
        assert!(same.lines()[0].starts_with("By its answers alone, it could be T2, T1 one after"));
    }
}
