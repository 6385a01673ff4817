//! Runs against live databases.
//!
//! | module | what is in it |
//! |---|---|
//! | [`driver`] | the sessions of a workload, each a thread with a connection: driven, retried, recorded |
//! | [`script`] | interleavings that are sent step by step: written, played, and which sessions wait |
//! | [`proxy`] | what parts clients from a server for a while |
//! | [`run`] | live runs: what is asked, done, decided and left in a directory |
//! | [`probe`] | anomalies as scripts, at every level of a database |

pub mod driver;
pub mod probe;
pub mod proxy;
pub mod run;
pub mod script;
