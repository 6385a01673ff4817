//! Values as text of a notation.

use isolario_model::{SinkError, ValueRef};

use crate::narrow::inexpressible;
use crate::notation::{Form, Item, Notation, edn, json, quoted};

/// Writes values of one notation.
#[derive(Clone, Copy)]
pub(super) struct Values {
    pub(super) format: &'static str,
    pub(super) notation: Notation,
    /// Whether collections are refused: a single operation's value must not look like a tuple.
    pub(super) scalars_only: bool,
}

impl Values {
    pub(super) fn push(self, value: ValueRef<'_>, out: &mut String) -> Result<(), SinkError> {
        match value {
            ValueRef::Nil => out.push_str(self.nil()),
            ValueRef::Text(text) => quoted::write(text, |piece| out.push_str(piece)),
            ValueRef::Bool(_) | ValueRef::Int(_) | ValueRef::Uint(_) => {
                out.push_str(&value.to_string());
            }
            ValueRef::Keyword(_)
            | ValueRef::Other(_)
            | ValueRef::Decimal(_)
            | ValueRef::Tuple(_) => {
                let text = value.to_string();
                if !self.reads_back(&text, value) {
                    return Err(inexpressible(self.format, format!("the value {value}")));
                }
                out.push_str(&text);
            }
        }
        Ok(())
    }

    /// Writes the words of an error: as they are where they are EDN already (`:timed-out`), else
    /// as text.
    pub(super) fn push_error(self, error: &str, out: &mut String) {
        let as_is = self.notation == Notation::Edn
            && self.read(error, |form| {
                !matches!(form.item(0), Item::Nil | Item::Text(_) | Item::Unescaped(..))
                    && form.render(0) == error
            });
        if as_is { out.push_str(error) } else { quoted::write(error, |piece| out.push_str(piece)) }
    }

    pub(super) fn nil(self) -> &'static str {
        match self.notation {
            Notation::Edn => "nil",
            Notation::Json => "null",
        }
    }

    /// What stands between values.
    pub(super) fn separator(self) -> &'static str {
        match self.notation {
            Notation::Edn => " ",
            Notation::Json => ",",
        }
    }

    /// Values of other formats may mean nothing here, or something else.
    fn reads_back(self, text: &str, value: ValueRef<'_>) -> bool {
        self.read(text, |form| {
            form.prepare(0);
            form.value(0) == value && !(self.scalars_only && form.shape(0).is_some())
        })
    }

    /// Whether a text is exactly one value, and that value satisfies a condition.
    fn read(self, text: &str, is_right: impl FnOnce(&mut Form<'_>) -> bool) -> bool {
        let mut form = Form::new(self.notation);
        let mut at = 0;
        let found = match self.notation {
            Notation::Edn => edn::read(text, &mut at, &mut form),
            Notation::Json => json::read(text, &mut at, &mut form),
        };
        matches!(found, Ok(true)) && at == text.len() && is_right(&mut form)
    }
}
