//! The side oracle for wrong results: the transactions of a round, one after the other.
//!
//! A round whose dependencies are those of a serializable history may still have answers that are
//! wrong: a row that a condition should have found, say, leaves no dependency behind. So its committed
//! transactions are sent again on a fresh schema, one after the other, and must give the same answers,
//! meet the same versions of the same rows, and leave the same tables.
//!
//! In which order? Dependencies by predicate are not known, so the order that the known ones suggest may
//! be wrong where nothing is wrong with the database. So an order is searched for: transactions are
//! tried one at a time, each on what those before it have left, and one whose answers differ is undone
//! by a savepoint, as is the one before it when nobody fits any more. Only if no order at all gives the
//! answers, they are wrong.
//!
//! Orders respect real time: whoever committed before another one began comes first. That makes the
//! search short, as there are few sessions, and it is what the databases here do, each by itself: locks
//! are kept until the commit, and PostgreSQL's snapshots have everything that was committed before. For
//! the latter, the proof that its rules leave no cycle (Fekete et al., 2005) holds of such edges as
//! well: all it uses of the edges that are not anti-dependencies is that one commits before the other begins.

use isolario_db::DbError;
use isolario_model::{Outcome, Value};
use isolario_sql::{
    Aux, Instrument, Product, Recorded, RecordedTxn, Round, Schema, StatementKind, Table,
};

use super::client::{Aftermath, Client, Shared};
use super::site::{Site, Stage};

/// What a round is, compared with its transactions one after the other.
pub(super) enum Serially {
    /// Some order gives the same.
    Same,
    /// No order does: how the first one that was tried differs.
    Different(Difference),
    /// It was not found out: something in the round is not determined by the order of its
    /// transactions, or there are too many orders.
    Open,
}

/// An answer that a transaction got, and another one that it gets when transactions are run one after
/// the other.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Difference {
    /// The transaction; none if it is the tables in the end that differ.
    pub txn: Option<u32>,
    /// The transactions before it.
    pub after: Vec<u32>,
    /// The statement.
    pub sql: String,
    /// What came back.
    pub observed: String,
    /// What comes back after these transactions.
    pub expected: String,
}

/// Rounds with more transactions are left out.
const MOST: usize = 2000;

/// Compares a round with its transactions one after the other, unless it is to stop before. The schema of
/// the round is made anew.
pub(super) fn compare(
    site: &Site<'_>,
    stage: &Stage<'_>,
    schema: &Schema,
    round: &Round,
    stop: &dyn Fn() -> bool,
) -> Result<Serially, DbError> {
    let product = &site.product;
    let Some(txns) = comparable(product, schema, round) else { return Ok(Serially::Open) };
    let last = round.transactions.iter().rfind(|txn| txn.is_final);
    let statements = round.transactions.iter().map(|txn| txn.statements.len()).sum();
    let aux = Aux::avoiding(schema).with_room_for(statements);
    stage.make(schema, Some(&aux))?;
    let shared = Shared::new(product, Some(Instrument { product, schema, aux: &aux }));
    let mut client = Client { shared: &shared, session: 0, connection: stage.connect(0)? };
    client.connection.statement(product.begin(), false)?;
    let spans: Vec<Span> = txns.iter().map(|txn| Span::of(txn, product)).collect();
    let mut replay = Replay { client, txns: &txns, last, played: Vec::new(), difference: None };
    let found = find_order(&spans, &mut replay, stop)?;
    let Replay { mut client, difference, .. } = replay;
    client.roll_back();
    Ok(match (found, difference) {
        (Found::Order, _) => Serially::Same,
        (Found::NoOrder, Some(difference)) => Serially::Different(difference),
        (Found::NoOrder | Found::GivenUp, _) => Serially::Open,
    })
}

/// The committed transactions of a round, if their answers follow from their order.
fn comparable<'r>(
    product: &Product,
    schema: &Schema,
    round: &'r Round,
) -> Option<Vec<&'r RecordedTxn>> {
    let mut txns = Vec::new();
    for txn in round.transactions.iter().filter(|txn| !txn.is_final) {
        for statement in &txn.statements {
            // Numbers are counted up by whoever comes first, and by those who roll back, too.
            let table = statement.table.as_deref().and_then(|name| schema.table(name));
            let counts = |table: &Table| table.columns.iter().any(|c| c.auto_increment);
            let inserts = !matches!(statement.kind, StatementKind::Update | StatementKind::Delete);
            let is_any_row =
                product.limit_of(&statement.sql).is_some_and(|limit| !limit.is_ordered);
            if inserts && table.is_some_and(counts) || is_any_row || statement.refusal.is_some() {
                return None;
            }
        }
        match txn.outcome {
            Outcome::Committed if shows_two_states(product, txn) => {}
            Outcome::Committed => txns.push(txn),
            Outcome::Aborted => {}
            Outcome::Unknown => return None,
        }
    }
    (txns.len() <= MOST).then_some(txns)
}

/// Whether a transaction is a read that locks rows outside of any transaction, where its subqueries read from a
/// snapshot: what it shows need not be one state of the tables, and is not meant to be. It changes nothing.
fn shows_two_states(product: &Product, txn: &RecordedTxn) -> bool {
    let locks =
        |kind| matches!(kind, StatementKind::SelectForUpdate | StatementKind::SelectForShare);
    product.mixes_reads() && txn.autocommit && txn.kinds().any(locks)
}

/// When a transaction took place, among all events of its round.
#[derive(Clone, Copy, Debug)]
struct Span {
    /// When its first statement was sent.
    begin: u64,
    /// When its end was answered.
    end: u64,
    /// Where in the order it most likely has its place.
    place: u64,
}

impl Span {
    fn of(txn: &RecordedTxn, product: &Product) -> Span {
        let begin = txn.statements.first().map_or(0, |statement| statement.turn.0);
        let end = txn.end_turn.1;
        // Where readers lock nothing, they see what was there when they began; else they keep away
        // whoever would change it.
        let only_reads = txn.kinds().all(StatementKind::is_read);
        let place = if only_reads && !product.readers_lock() { begin } else { end };
        Span { begin, end, place }
    }
}

/// Transactions that can be tried one after the other.
trait Trial {
    type Error;
    /// Tries a transaction next. If its answers are right, it stays.
    fn play(&mut self, txn: usize) -> Result<bool, Self::Error>;
    /// Whether what is left in the end is right.
    fn ends_well(&mut self) -> Result<bool, Self::Error>;
    /// Undoes the last transaction that stayed.
    fn undo(&mut self) -> Result<(), Self::Error>;
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Found {
    /// There is an order.
    Order,
    /// There is none.
    NoOrder,
    /// Too many were tried, or time is up.
    GivenUp,
}

/// Looks for an order that respects real time and in which every transaction gets its answers.
fn find_order<T: Trial>(
    spans: &[Span],
    trial: &mut T,
    stop: &dyn Fn() -> bool,
) -> Result<Found, T::Error> {
    let most = 500 + 10 * spans.len();
    let mut by_place: Vec<usize> = (0..spans.len()).collect();
    by_place.sort_by_key(|txn| spans[*txn].place);
    let mut is_played = vec![false; spans.len()];
    // What has been played, and where in the list to go on if it is undone.
    let mut played: Vec<usize> = Vec::new();
    let (mut next, mut tried) = (0, 0);
    loop {
        if played.len() == spans.len() && trial.ends_well()? {
            return Ok(Found::Order);
        }
        let left = || spans.iter().zip(&is_played).filter(|(_, played)| !**played);
        let first_end = left().map(|(span, _)| span.end).min().unwrap_or(0);
        let fits =
            |at: &usize| !is_played[by_place[*at]] && spans[by_place[*at]].begin <= first_end;
        match (next..by_place.len()).find(fits) {
            Some(at) => {
                tried += 1;
                if tried > most || stop() {
                    return Ok(Found::GivenUp);
                }
                next = at + 1;
                if trial.play(by_place[at])? {
                    is_played[by_place[at]] = true;
                    played.push(at);
                    next = 0;
                }
            }
            None => {
                let Some(last) = played.pop() else { return Ok(Found::NoOrder) };
                trial.undo()?;
                is_played[by_place[last]] = false;
                next = last + 1;
            }
        }
    }
}

/// The transactions of a round, replayed in one transaction of the database with a savepoint before each.
struct Replay<'r> {
    client: Client<'r>,
    txns: &'r [&'r RecordedTxn],
    /// What the tables were in the end.
    last: Option<&'r RecordedTxn>,
    /// The numbers of those that stay.
    played: Vec<u32>,
    /// The first difference that was met.
    difference: Option<Difference>,
}

impl Replay<'_> {
    fn send(&mut self, words: &str) -> Result<(), DbError> {
        let sql = format!("{words} isolario_{}", self.played.len());
        self.client.connection.statement(&sql, false).map(drop)
    }

    /// Sends a statement again. Tells whether it gets the same answer.
    fn repeat(&mut self, was: &Recorded, txn: &mut RecordedTxn) -> Result<bool, DbError> {
        let sent = self.client.shared.prepared(&was.sql, txn.id, was.number);
        let aftermath = self.client.statement(&was.sql, &sent, was.number, txn);
        let Some(is) = txn.statements.last() else { return Ok(false) };
        if aftermath == Some(Aftermath::Lost) {
            let why = is.failure.as_ref().map_or("", |failure| failure.message.as_str());
            return Err(DbError::fatal(why));
        }
        let is_limited = self.client.shared.product.limit_of(&was.sql).is_some();
        let is_same = is_same(was, is, is_limited);
        if !is_same && self.difference.is_none() {
            self.difference = Some(Difference {
                txn: (!txn.is_final).then_some(txn.id),
                after: self.played.clone(),
                sql: was.sql.clone(),
                observed: was.told(),
                expected: is.told(),
            });
        }
        Ok(is_same)
    }
}

impl Trial for Replay<'_> {
    type Error = DbError;

    fn play(&mut self, txn: usize) -> Result<bool, DbError> {
        self.send("SAVEPOINT")?;
        let txn = self.txns[txn];
        let mut again = RecordedTxn::new(txn.id, txn.session);
        for statement in &txn.statements {
            if !self.repeat(statement, &mut again)? {
                self.send("ROLLBACK TO SAVEPOINT")?;
                return Ok(false);
            }
        }
        self.played.push(txn.id);
        Ok(true)
    }

    fn ends_well(&mut self) -> Result<bool, DbError> {
        let Some(last) = self.last else { return Ok(true) };
        let mut again = RecordedTxn::new(last.id, last.session);
        again.is_final = true;
        for was in &last.statements {
            if !self.repeat(was, &mut again)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn undo(&mut self) -> Result<(), DbError> {
        self.played.pop();
        self.send("ROLLBACK TO SAVEPOINT")
    }
}

/// Whether two statements came to the same. The order of rows is nobody's business, and which of two equal
/// rows a limit cuts off isn't either.
fn is_same(was: &Recorded, is: &Recorded, is_limited: bool) -> bool {
    let code = |statement: &Recorded| statement.failure.as_ref().map(|f| f.code.clone());
    if was.failure.is_some() || is.failure.is_some() {
        return code(was) == code(is);
    }
    let sorted = |statement: &Recorded| {
        let mut rows: Vec<Vec<Value>> = statement.rows.clone();
        rows.sort();
        rows
    };
    let meets_same = was.reads == is.reads && was.deleted == is.deleted;
    (is_limited || meets_same) && sorted(was) == sorted(is)
}

#[cfg(test)]
mod tests {
    use isolario_sql::Instrumented;

    use super::*;

    /// A counter: each transaction saw it at a value, and adds something.
    struct Counter<'t> {
        txns: &'t [(i64, i64)],
        values: Vec<i64>,
        last: i64,
        plays: usize,
    }

    impl Trial for Counter<'_> {
        type Error = std::convert::Infallible;

        fn play(&mut self, txn: usize) -> Result<bool, Self::Error> {
            self.plays += 1;
            let (seen, added) = self.txns[txn];
            let now = self.values[self.values.len() - 1];
            if now == seen {
                self.values.push(now + added);
            }
            Ok(now == seen)
        }

        fn ends_well(&mut self) -> Result<bool, Self::Error> {
            Ok(self.values.last() == Some(&self.last))
        }

        fn undo(&mut self) -> Result<(), Self::Error> {
            self.values.pop();
            Ok(())
        }
    }

    fn span(begin: u64, end: u64) -> Span {
        Span { begin, end, place: end }
    }

    fn order(spans: &[Span], txns: &[(i64, i64)], last: i64) -> (Found, usize) {
        let mut counter = Counter { txns, values: vec![0], last, plays: 0 };
        let found = find_order(spans, &mut counter, &|| false).unwrap();
        (found, counter.plays)
    }

    #[test]
    fn what_need_not_be_one_state_is_not_compared() {
        let mut txn = RecordedTxn::new(1, 0);
        (txn.autocommit, txn.outcome) = (true, Outcome::Committed);
        let sql = "SELECT c FROM t WHERE c IN (SELECT c FROM t) FOR SHARE";
        let sent = Instrumented::plain(StatementKind::SelectForShare, sql.to_owned());
        txn.statements.push(Recorded::new(1, sql, &sent));
        let round =
            |txn: &RecordedTxn| Round { transactions: vec![txn.clone()], ..Round::default() };
        let compared = |product: &Product, txn: &RecordedTxn| {
            comparable(product, &Schema::default(), &round(txn)).unwrap().len()
        };
        assert_eq!((compared(&Product::MARIADB, &txn), compared(&Product::POSTGRES, &txn)), (0, 1));
        txn.autocommit = false;
        assert_eq!(compared(&Product::MARIADB, &txn), 1);
    }

    #[test]
    fn an_order_is_found_whatever_came_first() {
        let together = [span(1, 4), span(2, 5), span(3, 6)];
        assert_eq!(order(&together, &[(0, 1), (1, 1), (2, 1)], 3).0, Found::Order);
        assert_eq!(order(&together, &[(2, 1), (1, 1), (0, 1)], 3).0, Found::Order);
        // The first fits at once, but then nobody does.
        assert_eq!(order(&together, &[(0, 5), (0, 0), (5, 1)], 6).0, Found::Order);
        assert_eq!(order(&together, &[(0, 1), (1, 1), (2, 1)], 4).0, Found::NoOrder);
        assert_eq!(order(&together, &[(0, 1), (0, 1), (2, 1)], 3).0, Found::NoOrder);
        assert_eq!(order(&[], &[], 0).0, Found::Order);
    }

    #[test]
    fn whoever_committed_before_another_began_comes_first() {
        let txns = [(1, 1), (0, 1)];
        assert_eq!(order(&[span(1, 4), span(2, 3)], &txns, 2).0, Found::Order);
        assert_eq!(order(&[span(1, 2), span(3, 4)], &txns, 2).0, Found::NoOrder);
    }

    #[test]
    fn what_is_far_behind_is_not_tried_again() {
        // A hundred in a row: that the last one is wrong is found without trying all orders.
        let spans: Vec<Span> = (0..100).map(|at| span(2 * at, 2 * at + 1)).collect();
        let mut txns = vec![(0, 0); 100];
        txns[99] = (1, 0);
        assert_eq!(order(&spans, &txns, 0), (Found::NoOrder, 100));
        // All at once, there are too many.
        let spans: Vec<Span> = (0..100).map(|at| span(at, 1000)).collect();
        assert_eq!(order(&spans, &txns, 0).0, Found::GivenUp);
    }
}
