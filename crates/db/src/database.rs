//! The contract between the runner and a database.

use isolario_model::{Level, Stamp, Value};
use isolario_predicate::Dialect;
use isolario_workload::{Kind, TableOp};

use crate::certificate::Capture;
use crate::claims::{self, Claim};
use crate::error::DbError;
use crate::hold::Marking;
use crate::table::TableResult;

/// What a register holds; nothing before the first write and after a delete.
pub type RegisterValue = Option<i64>;

/// A database, or one node of it. It opens connections and knows what it is.
///
/// [`prepare`] is called once, for all nodes; the runner then connects once per session, from the
/// thread of the session. What else a database can do is asked of the methods that have a default.
pub trait Database: Send + Sync {
    /// The name of its rows in the [table of claims](crate::claims): `sqlite`, `postgres`.
    fn name(&self) -> &str;

    /// The product and its version, as the database itself reports them: `SQLite 3.50.2`.
    fn version(&self) -> Result<String, DbError>;

    /// Makes room for a run: empty tables of our own, under names that begin with `isolario_`.
    ///
    /// What an earlier run left under these names is replaced. Something else under these names is
    /// a fatal error with advice: nobody's data is dropped.
    fn prepare(&self, layout: &Layout) -> Result<(), DbError>;

    /// Removes what [`prepare`](Database::prepare) made, when the run is over. A run that was killed
    /// leaves that to the next one.
    fn clear(&self) -> Result<(), DbError>;

    /// Opens a connection and sets its isolation level.
    ///
    /// A server that cannot be reached is [`Retryable`](crate::ErrorClass::Retryable): the runner
    /// asks again for a while. A wrong password is [`Fatal`](crate::ErrorClass::Fatal).
    fn connect(&self) -> Result<Box<dyn Connection>, DbError>;

    /// What sets it apart from other databases.
    fn traits(&self) -> Traits<'_> {
        Traits::default()
    }

    /// What it claims to give for a workload, over this many nodes.
    fn claim(&self, kind: Kind, nodes: usize) -> Claim {
        claims::look_up(self.name(), self.traits().isolation, kind, nodes)
    }

    /// How runs that use it at the same time notice each other. By default, by a mark among the data, which takes one
    /// connection more than there are sessions.
    fn marking(&self) -> Marking<'_> {
        Marking::InData
    }

    /// Its SQL.
    fn sql(&self) -> Result<&dyn SqlDatabase, DbError> {
        Err(DbError::unsupported("SQL"))
    }

    /// How it follows other nodes, and they follow it.
    fn replication(&self) -> Option<&dyn Replication> {
        None
    }

    /// Goes on where the [run](Layout::run) of this layout was when its process was killed: what it left is still
    /// there.
    fn resume(&self, layout: &Layout) -> Result<(), DbError> {
        let _ = layout;
        Err(DbError::unsupported("way to resume the run of a killed process"))
    }

    /// The level that it gives in the order of the positions in its [receipts](Receipt), if it
    /// promises an order: asked with [evidence](crate::Settings::evidence) only.
    fn promised(&self, kind: Kind) -> Option<Level> {
        let _ = kind;
        None
    }

    /// Begins to capture what its log says about the [table](crate::TABLE) of a run. The database is
    /// [prepared](Database::prepare), and no client is there yet.
    fn capture(&self) -> Result<Box<dyn Capture>, DbError> {
        Err(DbError::unsupported("log from which the order of versions can be read"))
    }

    /// What it does differently from a server as its users have it, for the sake of the run: one
    /// sentence each. Asked after [`prepare`](Database::prepare).
    fn remarks(&self) -> Vec<String> {
        Vec::new()
    }

    /// The settings by which it keeps what it acknowledges, in its own words, where it can be asked:
    /// `appendonly=yes, appendfsync=everysec`.
    fn durability(&self) -> Option<String> {
        None
    }
}

/// What sets a database apart from others, as far as a run has to know.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits<'d> {
    /// The isolation setting in force, by the database's own name for it.
    pub isolation: &'d str,
    /// The workloads that it can run.
    pub workloads: &'d [Kind],
    /// Whether it heeds the size of registers that a [layout](Layout::value_size) asks for.
    pub value_sizes: bool,
    /// Whether registers may be written that the [layout](Layout::keys) does not have. Where they may
    /// not, the runs of [`isolario_workload`]'s workloads have no keys that begin absent.
    pub new_keys: bool,
    /// Number of registers that are to exist, and remain unused, between those that exist before a run and
    /// those that begin absent.
    pub unused_keys: u32,
    /// Whether it can keep the rows of an application in [SQL tables](crate::Settings::tables) of their own.
    pub tables: bool,
    /// Whether a second transaction can read in the snapshot of each, at the isolation level in force.
    pub shadows: bool,
    /// What the logs of its nodes contain.
    pub logs: NodeLogs,
    /// Whether a program of the user's is asked in its place.
    pub by_driver: bool,
}

/// What the logs of the nodes of a database contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NodeLogs {
    /// Each its own.
    Own,
    /// All have one log: any of them has it.
    One,
    /// Each has a log of its own, with the same transactions as the others.
    Same,
}

impl Default for Traits<'_> {
    fn default() -> Self {
        Traits {
            isolation: "default",
            workloads: &[Kind::Mini, Kind::General],
            value_sizes: false,
            new_keys: false,
            unused_keys: 0,
            tables: false,
            shadows: false,
            logs: NodeLogs::Own,
            by_driver: false,
        }
    }
}

/// A database that speaks SQL.
pub trait SqlDatabase {
    /// Its dialect.
    fn dialect(&self) -> Dialect;

    /// Opens a connection that takes statements as text, at the isolation level that was asked for.
    fn connect_sql(&self) -> Result<Box<dyn SqlConnection>, DbError>;

    /// Opens its view of who waits for whom, where it has one and lets us see it.
    fn lock_view(&self) -> Result<Option<Box<dyn LockView>>, DbError>;

    /// The question for the time of the statement, whatever transaction it is in, and the unit of the answer in
    /// microseconds.
    fn clock(&self) -> (&'static str, i64);
}

/// A connection that takes statements as text.
///
/// It knows nothing of transactions: `BEGIN` and `COMMIT` are statements, and what an error leaves
/// behind is the caller's to clean up. An error with the database's own code concerns that statement,
/// whatever its [class](crate::ErrorClass), unless it says that the connection is lost.
pub trait SqlConnection: Send {
    /// Runs one statement. Where it may end a transaction, because it is a commit or stands outside
    /// of any transaction, a lost answer means that nobody knows whether it took effect.
    fn statement(&mut self, sql: &str, ends: bool) -> Result<SqlResult, DbError>;

    /// The server's own number of this connection, by which it shows up in the server's tables of
    /// sessions and locks.
    fn id(&self) -> Option<u64>;
}

/// What came back.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct SqlResult {
    /// The names of the columns; a server that returns no row need not tell them.
    pub columns: Vec<String>,
    /// The rows, with a value for each column.
    pub rows: Vec<Vec<Value>>,
    /// How many rows the statement changed, or returned where it changes none.
    pub changed: u64,
}

/// A database whose nodes may follow each other.
pub trait Replication {
    /// Whether it takes no writes: a standby that follows another node. Sessions on it only read.
    fn is_read_only(&self) -> Result<bool, DbError>;

    /// How far its log goes, in words that a node which follows it understands; nothing where no
    /// node follows another.
    fn log_position(&self) -> Result<Option<String>, DbError>;

    /// Waits until it has followed another node's log up to this position.
    fn follow(&self, position: &str) -> Result<(), DbError>;
}

/// Who waits for a lock that another session holds, as the database itself tells.
pub trait LockView: Send {
    /// Whether the connection of this number waits. The number is that of
    /// [`Connection::id`] or [`SqlConnection::id`].
    fn is_waiting(&mut self, connection: u64) -> Result<bool, DbError>;
}

/// Makes room for a run on the first node that takes writes, and waits until those that follow it
/// have heard of it: what an earlier run left there must not be taken for this one's. An error
/// comes with the node, by its position.
pub fn prepare(nodes: &[Box<dyn Database>], layout: &Layout) -> Result<(), (usize, DbError)> {
    let (first, followers) = first_and_followers(nodes)?;
    let at_first = |error| (first, error);
    nodes[first].prepare(layout).map_err(at_first)?;
    if followers.is_empty() {
        return Ok(());
    }
    let Some(replication) = nodes[first].replication() else { return Ok(()) };
    let Some(position) = replication.log_position().map_err(at_first)? else { return Ok(()) };
    for follower in followers {
        let replication = nodes[follower].replication();
        let followed = replication.map_or(Ok(()), |it| it.follow(&position));
        followed.map_err(|error| (follower, error))?;
    }
    Ok(())
}

fn is_read_only(node: &dyn Database) -> Result<bool, DbError> {
    node.replication().map_or(Ok(false), Replication::is_read_only)
}

/// The first node that takes writes, and those that take none, by their positions.
pub(crate) fn first_and_followers(
    nodes: &[Box<dyn Database>],
) -> Result<(usize, Vec<usize>), (usize, DbError)> {
    let mut followers = Vec::new();
    let mut first = None;
    for (number, node) in nodes.iter().enumerate() {
        if is_read_only(node.as_ref()).map_err(|error| (number, error))? {
            followers.push(number);
        } else {
            first = first.or(Some(number));
        }
    }
    match first {
        Some(first) => Ok((first, followers)),
        None => {
            let error = DbError::fatal(
                "it is a standby, which takes no writes: name the primary as well, with another --db",
            );
            Err((0, error))
        }
    }
}

/// Removes what a run made, on the first node that takes writes. Whether it works or not: the next run
/// replaces what is left.
pub fn clear(nodes: &[Box<dyn Database>]) {
    let first = nodes
        .iter()
        .find(|node| is_read_only(node.as_ref()).is_ok_and(|is_read_only| !is_read_only));
    let _ = first.map(|node| node.clear());
}

/// What a run needs room for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Layout {
    /// The workload.
    pub kind: Kind,
    /// How many keys there are, from 0; for lists, at a time: as lists grow long, later keys take
    /// their place. An adapter may create the rows of registers beforehand, as long as they read
    /// as nothing. Registers beyond these begin absent, where the database
    /// [takes them](Traits::new_keys).
    pub keys: u32,
    /// How many bytes a register is to take at least, in databases that store bytes.
    pub value_size: u32,
    /// The run, by a number that tells its keys from those of others, where a database needs one; if none is
    /// given, it takes the time.
    pub run: Option<u64>,
}

impl Layout {
    /// Room for a workload.
    pub fn new(kind: Kind, keys: u32) -> Layout {
        Layout { kind, keys, value_size: 0, run: None }
    }

    /// As the run of this number.
    #[must_use]
    pub fn with_run(self, run: u64) -> Layout {
        Layout { run: Some(run), ..self }
    }

    /// With registers of at least so many bytes.
    #[must_use]
    pub fn with_value_size(self, value_size: u32) -> Layout {
        Layout { value_size, ..self }
    }
}

/// What a transaction is going to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It only reads.
    Read,
    /// It may write.
    Write,
    /// It is a single operation, which the database may run at once: the commit that follows then
    /// has nothing left to do. An adapter that has no such short cut takes it for `Write`.
    ///
    /// An adapter that takes the short cut answers a lost connection during that operation with
    /// [`Unknown`](crate::ErrorClass::Unknown), as it would during a commit.
    Single,
}

/// What came of a conditional write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConditionalResult {
    /// It took effect.
    Applied,
    /// It did not.
    Failed {
        /// What was there instead, if the database told.
        seen: Option<RegisterValue>,
    },
}

/// Compares and sets by a read and a write: for an engine in which nothing comes between the two, or
/// which refuses the commit if something did.
pub(crate) fn read_then_write(
    connection: &mut dyn Connection,
    key: u64,
    expected: RegisterValue,
    new: i64,
) -> Result<ConditionalResult, DbError> {
    let seen = connection.read(key)?;
    if seen != expected {
        return Ok(ConditionalResult::Failed { seen: Some(seen) });
    }
    connection.write(key, new)?;
    Ok(ConditionalResult::Applied)
}

/// What the database tells of a transaction that committed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Receipt {
    /// Its own timestamp of the snapshot that the transaction read.
    pub snapshot: Option<Stamp>,
    /// Its own timestamp or position of the commit.
    pub commit: Option<Stamp>,
}

impl Receipt {
    /// A commit of which the database tells the position.
    pub fn at(commit: Stamp) -> Receipt {
        Receipt { snapshot: None, commit: Some(commit) }
    }
}

/// A connection of one session.
///
/// The runner calls `begin`, then operations, then `commit`, one transaction after the other.
///
/// **After an error** of any of these calls, the commit included, the transaction is over for the
/// runner. It then calls [`rollback`](Connection::rollback), unless the error says that the
/// connection is lost, and begins the next transaction: `rollback` has to bring the connection
/// there from whatever state the error left.
///
/// **Classification** is the adapter's: see [`ErrorClass`](crate::ErrorClass). As a rule, whatever
/// goes wrong before the commit is sent means that the transaction did not commit, a lost
/// connection too; once the commit is sent, only the database's own words can mean that. In doubt
/// it is `Unknown`: calling a transaction aborted that did commit makes a right history look
/// wrong, the opposite does not.
///
/// **Time**: every call returns, with an answer or with an error, within the statement time-out of
/// the [settings](crate::Settings) and a little. A call that cannot be interrupted otherwise closes
/// the connection. The runner takes the time right before `begin` and right after `commit`:
/// connections do nothing in advance and put nothing off beyond these calls.
///
/// **Values**: keys are small numbers, values are positive. What was never written, or was deleted,
/// reads as nothing, and a list as empty.
pub trait Connection: Send {
    /// Whether it takes no writes. The runner then asks for reads of the keys that it would have
    /// written.
    fn is_read_only(&self) -> bool {
        false
    }

    /// Whether an update or delete by predicate is to be the only write of its transaction. So it is
    /// where [evidence](crate::Settings::evidence) is asked for, and the database's log has no more than
    /// the last version that a transaction wrote of a row: what others it wrote would not be there.
    fn writes_by_predicate_alone(&self) -> bool {
        false
    }

    /// The server's own number of this connection, by which its [view of locks](LockView) knows it.
    fn id(&mut self) -> Result<Option<u64>, DbError> {
        Ok(None)
    }

    /// Begins a transaction.
    fn begin(&mut self, access: Access) -> Result<(), DbError>;

    /// What the database says of the state that the transaction sees, in its own words, right after
    /// the beginning; only where [evidence](crate::Settings::evidence) is asked for.
    fn snapshot(&mut self) -> Option<String> {
        None
    }

    /// Reads a register.
    fn read(&mut self, key: u64) -> Result<RegisterValue, DbError>;

    /// Writes a register.
    fn write(&mut self, key: u64, value: i64) -> Result<(), DbError>;

    /// Deletes a register.
    fn delete(&mut self, key: u64) -> Result<(), DbError> {
        let _ = key;
        Err(DbError::unsupported("deletes"))
    }

    /// Reads a list into an empty vector.
    fn read_list(&mut self, key: u64, elements: &mut Vec<i64>) -> Result<(), DbError> {
        let _ = (key, elements);
        Err(DbError::unsupported("lists"))
    }

    /// Appends to a list.
    fn append(&mut self, key: u64, element: i64) -> Result<(), DbError> {
        let _ = (key, element);
        Err(DbError::unsupported("lists"))
    }

    /// Writes a register where nothing is there: what an adapter that can compare can do, too.
    fn insert_if_absent(&mut self, key: u64, value: i64) -> Result<ConditionalResult, DbError> {
        self.compare_and_set(key, None, value)
    }

    /// Writes a register where the expected value is there; nothing is a value to expect, too.
    fn compare_and_set(
        &mut self,
        key: u64,
        expected: RegisterValue,
        new: i64,
    ) -> Result<ConditionalResult, DbError> {
        let _ = (key, expected, new);
        Err(DbError::unsupported("conditional writes"))
    }

    /// Runs an operation on the [table](crate::TABLE) of the run, and tells what it found into an
    /// empty answer. Increments do not come this way: the client reads, and then updates.
    fn table(&mut self, op: &TableOp, found: &mut TableResult) -> Result<(), DbError> {
        let _ = (op, found);
        Err(DbError::unsupported("tables"))
    }

    /// Commits. Returning `Ok` means that the database said so.
    fn commit(&mut self) -> Result<Receipt, DbError>;

    /// The rows that a second transaction saw in the snapshot of the one that has just committed, each
    /// with its version; only where a [shadow](crate::Settings::shadow) is asked for.
    fn shadow(&mut self) -> Option<Vec<(i64, i64)>> {
        None
    }

    /// Gives the transaction up, if one is open.
    fn rollback(&mut self) -> Result<(), DbError>;
}
