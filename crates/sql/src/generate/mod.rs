//! Random transactions over a schema.
//!
//! Statements are written as text, and whoever wants to know more parses them: what is instrumented,
//! simplified or taken from a file is then all the same.

mod conditions;
mod queries;
mod shape;
mod writes;

use std::fmt;
use std::str::FromStr;

use isolario_predicate::Dialect;

use crate::dice::Dice;
use crate::product::Product;
use crate::schema::Schema;

pub use shape::{Part, Shape};

/// A kind of statement that is generated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Choice {
    Select,
    FullRead,
    ForUpdate,
    ForShare,
    Insert,
    InsertSelect,
    Upsert,
    Replace,
    Update,
    Delete,
    Savepoint,
}

/// What there is to choose from: the name in a mix, the usual weight.
const CHOICES: [(Choice, &str, u32); 11] = [
    (Choice::Select, "select", 34),
    (Choice::FullRead, "full-read", 6),
    (Choice::ForUpdate, "for-update", 6),
    (Choice::ForShare, "for-share", 3),
    (Choice::Insert, "insert", 9),
    (Choice::InsertSelect, "insert-select", 2),
    (Choice::Upsert, "upsert", 4),
    (Choice::Replace, "replace", 3),
    (Choice::Update, "update", 25),
    (Choice::Delete, "delete", 5),
    (Choice::Savepoint, "savepoint", 3),
];

/// How often each kind of statement occurs.
///
/// ```
/// use isolario_sql::Mix;
///
/// let mix: Mix = "select:3,update:1".parse()?;
/// assert_eq!(mix.to_string(), "select:3,update:1");
/// assert!("selekt:3".parse::<Mix>().is_err());
/// # Ok::<(), isolario_sql::MixError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix {
    weights: [u32; CHOICES.len()],
}

impl Default for Mix {
    fn default() -> Mix {
        Mix { weights: CHOICES.map(|(_, _, weight)| weight) }
    }
}

impl Mix {
    /// The same without savepoints.
    pub fn without_savepoints(mut self) -> Mix {
        for ((choice, ..), weight) in CHOICES.iter().zip(&mut self.weights) {
            if *choice == Choice::Savepoint {
                *weight = 0;
            }
        }
        self
    }
}

/// Why there is no such mix.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MixError {
    /// Not a name and a number.
    #[error("expected a kind of statement and its share, such as `update:3`; found {0:?}")]
    Form(String),
    /// An unknown kind.
    #[error("there is no kind of statement {name:?}: expected {}", names().join(", "))]
    Name {
        /// What it was.
        name: String,
    },
    /// Nothing is left.
    #[error("all shares of the mix are zero")]
    Empty,
}

fn names() -> [&'static str; CHOICES.len()] {
    CHOICES.map(|(_, name, _)| name)
}

impl FromStr for Mix {
    type Err = MixError;

    fn from_str(text: &str) -> Result<Mix, MixError> {
        let mut mix = Mix { weights: [0; CHOICES.len()] };
        for part in text.split(',') {
            let form = || MixError::Form(part.to_owned());
            let (name, weight) = part.trim().split_once(':').ok_or_else(form)?;
            let position = names().iter().position(|known| *known == name);
            let position = position.ok_or_else(|| MixError::Name { name: name.to_owned() })?;
            mix.weights[position] = weight.parse().map_err(|_| form())?;
        }
        match mix.weights.iter().any(|weight| *weight > 0) {
            true => Ok(mix),
            false => Err(MixError::Empty),
        }
    }
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let used = names().into_iter().zip(self.weights).filter(|(_, weight)| *weight > 0);
        for (position, (name, weight)) in used.enumerate() {
            let comma = if position == 0 { "" } else { "," };
            write!(f, "{comma}{name}:{weight}")?;
        }
        Ok(())
    }
}

/// What random transactions look like.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Style {
    /// At most so many statements in a transaction, its beginning and end left aside.
    pub statements: usize,
    /// How deep conditions are nested.
    pub depth: usize,
    /// The mix of statements.
    pub mix: Mix,
}

impl Default for Style {
    fn default() -> Style {
        Style { statements: 10, depth: 2, mix: Mix::default() }
    }
}

/// A transaction that is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Planned {
    /// Its statements, without those that begin and end it.
    pub statements: Vec<String>,
    /// Whether it is a single statement outside of any transaction, which commits by itself.
    pub autocommit: bool,
    /// Whether it is to commit; else it is rolled back.
    pub commits: bool,
}

/// Writes transactions over a schema.
#[derive(Clone, Copy, Debug)]
pub struct Planner<'s> {
    /// The schema, which must be [writable](Schema::is_writable).
    pub schema: &'s Schema,
    /// The product that has to understand them.
    pub product: &'s Product,
    /// What they look like.
    pub style: &'s Style,
    /// Transactions, by their statements, that most of them are to be like; none, and chance alone
    /// decides.
    pub models: &'s [Vec<String>],
    /// The seed.
    pub seed: u64,
    /// The number of the round.
    pub round: u64,
}

impl Planner<'_> {
    /// The transaction at a position of a session: a function of seed, round, session and position.
    pub fn transaction(&self, session: u64, position: u64) -> Planned {
        let dice = Dice::new(self.seed, &[self.round, 1, session, position]);
        let Planner { schema, product, style, models, .. } = *self;
        Writer { schema, product, style, models, dice }.transaction()
    }
}

/// A transaction that is being written.
struct Writer<'s> {
    schema: &'s Schema,
    product: &'s Product,
    style: &'s Style,
    models: &'s [Vec<String>],
    dice: Dice,
}

impl Writer<'_> {
    fn transaction(&mut self) -> Planned {
        if let Some(statements) = self.modelled() {
            return Planned { statements, autocommit: false, commits: true };
        }
        if self.dice.percent(12) {
            let statement = self.statement().unwrap_or_else(|| self.select());
            return Planned { statements: vec![statement], autocommit: true, commits: true };
        }
        // Short ones are the rule: two that overlap in full meet more often than two long ones that
        // block each other.
        let longest = self.style.statements.max(1);
        let count = 1 + self.dice.below(longest).min(self.dice.below(longest));
        let mut statements = Vec::with_capacity(count);
        let mut savepoint = None;
        while statements.len() < count {
            match self.statement() {
                Some(statement) => statements.push(statement),
                None => statements.push(self.savepoint(&mut savepoint)),
            }
        }
        Planned { statements, autocommit: false, commits: self.dice.percent(92) }
    }

    /// A savepoint, or, where there is one, the way back to it.
    fn savepoint(&mut self, open: &mut Option<usize>) -> String {
        match *open {
            Some(number) if self.dice.percent(70) => format!("ROLLBACK TO SAVEPOINT s{number}"),
            _ => {
                let number = open.map_or(1, |number| number + 1);
                *open = Some(number);
                format!("SAVEPOINT s{number}")
            }
        }
    }

    /// A statement; none where it is the turn of a savepoint.
    fn statement(&mut self) -> Option<String> {
        let (choice, ..) = CHOICES[self.dice.weighted(&self.style.mix.weights)];
        let statement = match choice {
            Choice::Savepoint => return None,
            Choice::Select => Some(self.select()),
            Choice::FullRead => Some(Schema::full_read(self.dice.pick(&self.schema.tables))),
            Choice::ForUpdate => Some(self.locking_select("FOR UPDATE")),
            Choice::ForShare => Some(self.locking_select("FOR SHARE")),
            Choice::Insert => Some(self.insert()),
            Choice::InsertSelect => self.insert_select(),
            Choice::Upsert => self.upsert(),
            Choice::Replace => self.replace(),
            Choice::Update => Some(self.update()),
            Choice::Delete => Some(self.delete()),
        };
        // Not every schema has room for everything, but each has for updates.
        Some(statement.unwrap_or_else(|| self.update()))
    }

    fn is_mysql(&self) -> bool {
        self.product.dialect == Dialect::MySql
    }
}
