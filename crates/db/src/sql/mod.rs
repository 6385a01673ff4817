//! What databases that speak SQL share.
//!
//! A product is a [`SqlProduct`], which opens [`Client`]s. Sessions, tables and the mark of a run follow from these two,
//! alike for all of them.

mod application;
mod product;
mod session;
mod statements;

use isolario_model::Value;

use crate::database::SqlResult;

pub(crate) use product::{Client, SqlProduct, make_tables};
pub(crate) use session::Session;
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) use statements::COLUMNS;
pub(crate) use statements::{Reported, Statements, Style};

impl SqlResult {
    /// The first value, if it is a text.
    pub(crate) fn first_text(self) -> Option<String> {
        self.rows.into_iter().flatten().next().and_then(|value| match value {
            Value::Text(text) => Some(text.into()),
            _ => None,
        })
    }
}

/// A number with a decimal point, as a server prints it.
#[cfg(any(feature = "mysql", feature = "postgres"))]
pub(crate) fn decimal(text: &str) -> Value {
    match isolario_model::Decimal::parse(text) {
        Some(decimal) => Value::Decimal(decimal),
        None => Value::Other(text.into()),
    }
}

/// Bytes that are no text.
pub(crate) fn hexadecimal(bytes: &[u8]) -> Value {
    let digits: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    Value::Other(format!("x'{digits}'").into())
}
