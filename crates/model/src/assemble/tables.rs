//! One table of names from the tables of all batches.

use rayon::prelude::*;

use crate::KeyId;
use crate::batch::Batch;
use crate::table::{NameTable, ValueId, ValueTable};

/// The joined name tables, and per batch how its own numbers map into them.
pub(super) struct Tables {
    pub(super) keys: NameTable,
    pub(super) sessions: NameTable,
    pub(super) values: ValueTable,
    pub(super) maps: Vec<Maps>,
}

/// How a batch's numbers map into the joined tables. An empty map is the identity.
#[derive(Default)]
pub(super) struct Maps {
    pub(super) keys: Vec<u32>,
    sessions: Vec<u32>,
    pub(super) values: Vec<ValueId>,
}

impl Maps {
    #[inline]
    pub(super) fn key(&self, key: KeyId) -> KeyId {
        self.keys.get(key.index()).map_or(key, |k| KeyId(*k))
    }

    #[inline]
    pub(super) fn value(&self, value: ValueId) -> ValueId {
        value.table_index().and_then(|i| self.values.get(i).copied()).unwrap_or(value)
    }
}

impl Tables {
    /// Takes the first batch's tables and adds the others' names in order. The first batch's
    /// numbers stay: its maps are empty, which means identity.
    pub(super) fn merge(batches: &mut [Batch]) -> Tables {
        let (first, rest) = batches.split_at_mut(1);
        let mut keys = std::mem::take(&mut first[0].keys);
        let mut sessions = std::mem::take(&mut first[0].sessions);
        let mut values = std::mem::take(&mut first[0].values);
        values.reserve_for(rest.iter().map(|batch| &batch.values));
        let key_tables: Vec<&NameTable> = rest.iter().map(|batch| &batch.keys).collect();
        let key_maps = absorb_all(&mut keys, &key_tables);
        let mut maps = vec![Maps::default()];
        maps.extend(rest.iter().zip(key_maps).map(|(batch, keys)| Maps {
            keys,
            sessions: sessions.absorb(&batch.sessions),
            values: values.absorb(&batch.values),
        }));
        Tables { keys, sessions, values, maps }
    }

    #[inline]
    pub(super) fn session(&self, batch: usize, session: u32) -> u32 {
        self.maps[batch].sessions.get(session as usize).copied().unwrap_or(session)
    }
}

/// Adds the names of tables in order, and says which numbers those of each have. In a long history each
/// part has nearly all keys: once one of them brings nothing new, the others are looked up on all cores,
/// and only those that do are added.
pub(super) fn absorb_all(names: &mut NameTable, tables: &[&NameTable]) -> Vec<Vec<u32>> {
    let mut maps = Vec::with_capacity(tables.len());
    for table in tables {
        let before = names.len();
        maps.push(names.absorb(table));
        if names.len() == before {
            break;
        }
    }
    let rest = &tables[maps.len()..];
    let known: Vec<_> = rest.par_iter().map(|table| names.numbers_of(table)).collect();
    let known = known.into_iter().zip(rest);
    maps.extend(known.map(|(map, table)| map.unwrap_or_else(|| names.absorb(table))));
    maps
}
