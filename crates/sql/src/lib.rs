//! Relational testing, the pure part: random schemas and SQL, instrumentation, and the dependencies
//! that follow.
//!
//! The approach is IsoRel's ("Detecting Isolation Anomalies in Relational DBMSs", ISSTA 2025). A
//! [`Schema`] is made up from a seed, and a [`Planner`] writes transactions over it. An [`Instrument`]
//! rewrites each statement so that it tells which versions of which rows it touches. What came back is
//! a [`Round`], and [`history`] makes a history of it that the checkers of lists decide.
//!
//! Nothing here talks to a database.
//!
//! ```
//! use isolario_sql::{Aux, Bounds, Instrument, Planner, Product, Schema, Style};
//!
//! let schema = Schema::random(7, 0, &Bounds::default());
//! let style = Style::default();
//! let planner =
//!     Planner { schema: &schema, product: &Product::POSTGRES, style: &style, models: &[], seed: 7, round: 0 };
//! let planned = planner.transaction(0, 0);
//! assert_eq!(planned, planner.transaction(0, 0));
//!
//! let aux = Aux::avoiding(&schema);
//! let instrument = Instrument { product: &Product::POSTGRES, schema: &schema, aux: &aux };
//! let sent = instrument.statement("UPDATE t0 SET c0 = c0 + 1 WHERE c0 < 3", 7, 2);
//! assert_eq!(sent.sql, "UPDATE t0 SET c0 = c0 + 1, w_list = w_list || ',7.2' WHERE c0 < 3");
//! ```

mod asked;
mod dice;
mod generate;
mod infer;
mod instrument;
mod predicates;
mod product;
mod reduce;
mod round;
mod schema;
mod script;

pub use generate::{Mix, MixError, Part, Planned, Planner, Shape, Style};
pub use infer::{OldVersion, Reading, history, old_versions};
pub use instrument::{Instrument, Instrumented, Refusal, Shown, StatementKind, kind_of};
pub use predicates::{Certified, certified};
pub use product::{Limit, Product, SnapshotScope};
pub use reduce::Reduction;
pub use round::{
    Element, Failure, Recorded, RecordedTxn, Round, Seen, Snapshot, savepoint_of, take_seen,
};
pub use schema::{Aux, Bounds, Column, Schema, SchemaError, Table, Type, View};
pub use script::{Action, Script, ScriptError, ScriptProblem, Step};
