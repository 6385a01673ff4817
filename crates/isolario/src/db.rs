//! Databases, what they claim, and how workloads and scripts are run against them.

pub use isolario_db::*;
pub use isolario_run::driver::*;
pub use isolario_run::proxy::*;
pub use isolario_run::script;
