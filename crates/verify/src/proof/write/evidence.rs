//! Anomalies, edges and reasons on their way out.

use isolario_model::{Anomaly, Edge, Evidence, ExpectedVersion, Reason, VersionOrder};
use serde::ser::{Error, SerializeMap};
use serde::{Serialize, Serializer};

use crate::proof::MAX_DEPTH;
use crate::proof::names::{Named, Typed};

impl Serialize for Named<'_, &Anomaly> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("anomaly", self.item.kind.name())?;
        match &self.item.evidence {
            Evidence::Read { read, saw, instead } => {
                map.serialize_entry("evidence", "read")?;
                map.serialize_entry("read", &self.part(*read))?;
                map.serialize_entry("saw", &self.part(*saw))?;
                map.serialize_entry("instead", &self.part(*instead))?;
            }
            Evidence::Row { key, read, saw, instead } => {
                map.serialize_entry("evidence", "row")?;
                map.serialize_entry("key", &self.part(*key))?;
                map.serialize_entry("read", &self.part(*read))?;
                map.serialize_entry("saw", &self.part(*saw))?;
                map.serialize_entry("instead", &self.part(*instead))?;
            }
            Evidence::Reads { key, first, second, edges } => {
                map.serialize_entry("evidence", "reads")?;
                map.serialize_entry("key", &self.part(*key))?;
                map.serialize_entry("first", &self.part(*first))?;
                map.serialize_entry("second", &self.part(*second))?;
                map.serialize_entry("edges", &self.part(edges.as_slice()))?;
            }
            Evidence::Cycle { edges } => {
                map.serialize_entry("evidence", "cycle")?;
                map.serialize_entry("edges", &self.part(edges.as_slice()))?;
            }
            Evidence::Cases { cycles } => {
                let cycles: Vec<_> = cycles.iter().map(|edges| self.part(&**edges)).collect();
                map.serialize_entry("evidence", "cases")?;
                map.serialize_entry("cycles", &cycles)?;
            }
            Evidence::Operations { key, ops } => {
                map.serialize_entry("evidence", "operations")?;
                map.serialize_entry("key", &self.part(*key))?;
                map.serialize_entry("ops", &self.part(ops.as_slice()))?;
            }
            Evidence::Unexpected { op, expected, result } => {
                map.serialize_entry("evidence", "unexpected")?;
                map.serialize_entry("op", &self.part(*op))?;
                let expected: Vec<_> = expected.iter().map(|version| self.part(*version)).collect();
                map.serialize_entry("expected", &expected)?;
                if let Some(result) = result {
                    map.serialize_entry("result", &Typed(result.as_ref()))?;
                }
            }
            Evidence::Concurrent { key, first, second } => {
                map.serialize_entry("evidence", "concurrent")?;
                map.serialize_entry("key", &self.part(*key))?;
                map.serialize_entry("first", &self.part(*first))?;
                map.serialize_entry("second", &self.part(*second))?;
            }
            _ => return Err(S::Error::custom("this evidence has no form in a proof")),
        }
        map.end()
    }
}

impl Serialize for Named<'_, ExpectedVersion> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("key", &self.part(self.item.key))?;
        map.serialize_entry("write", &self.part(self.item.write))?;
        map.end()
    }
}

impl Serialize for Named<'_, &[Edge]> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.depth > MAX_DEPTH {
            return Err(S::Error::custom(format_args!(
                "more than {MAX_DEPTH} reasons lie within each other"
            )));
        }
        serializer.collect_seq(self.item.iter().map(|edge| self.part(edge)))
    }
}

impl Serialize for Named<'_, &Edge> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("from", &self.part(self.item.from))?;
        map.serialize_entry("to", &self.part(self.item.to))?;
        self.part(&self.item.reason).put(&mut map)?;
        map.end()
    }
}

impl<'n> Named<'n, &Reason> {
    fn put<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self.item {
            Reason::Initial => map.serialize_entry("why", "initial"),
            Reason::Session => map.serialize_entry("why", "session"),
            Reason::RealTime { finish, start } => {
                map.serialize_entry("why", "real-time")?;
                map.serialize_entry("finish", finish)?;
                map.serialize_entry("start", start)
            }
            Reason::Read { key, read, write } => {
                map.serialize_entry("why", "read")?;
                map.serialize_entry("key", &self.part(*key))?;
                map.serialize_entry("read", &self.part(*read))?;
                map.serialize_entry("write", &self.part(*write))
            }
            Reason::Overwrite { key, known } => {
                map.serialize_entry("why", "overwrite")?;
                map.serialize_entry("key", &self.part(*key))?;
                map.serialize_entry("known", &self.part(known))
            }
            Reason::AntiDependency { key, read, writer, known } => {
                map.serialize_entry("why", "anti-dependency")?;
                map.serialize_entry("key", &self.part(*key))?;
                map.serialize_entry("read", &self.part(*read))?;
                map.serialize_entry("writer", &self.part(*writer))?;
                map.serialize_entry("known", &self.part(known))
            }
            Reason::Visible { rule, key, reader, read, path } => {
                map.serialize_entry("why", "visible")?;
                map.serialize_entry("rule", rule.name())?;
                map.serialize_entry("key", &self.part(*key))?;
                map.serialize_entry("reader", &self.part(*reader))?;
                map.serialize_entry("read", &self.part(*read))?;
                map.serialize_entry("path", &self.within(path))
            }
            Reason::PredicateAntiDependency { read, key, write, evaluated: met } => {
                map.serialize_entry("why", "predicate-anti-dependency")?;
                map.serialize_entry("read", &self.part(*read))?;
                map.serialize_entry("key", &self.part(*key))?;
                map.serialize_entry("write", &self.part(*write))?;
                let Some(met) = met else { return Ok(()) };
                map.serialize_entry("writer", &self.part(met.writer))?;
                map.serialize_entry("known", &self.part(&met.known))
            }
            Reason::PredicateRead { read, key, write } => {
                map.serialize_entry("why", "predicate-read")?;
                map.serialize_entry("read", &self.part(*read))?;
                map.serialize_entry("key", &self.part(*key))?;
                map.serialize_entry("write", &self.part(*write))
            }
            Reason::StartDependency { op, snapshot } => {
                map.serialize_entry("why", "start-dependency")?;
                map.serialize_entry("op", &self.part(*op))?;
                map.serialize_entry("snapshot", &[snapshot.physical, snapshot.logical])
            }
            Reason::Stated { at } => {
                map.serialize_entry("why", "stated")?;
                map.serialize_entry("at", at)
            }
            Reason::Refuted { cycle } => {
                map.serialize_entry("why", "refuted")?;
                map.serialize_entry("cycle", &self.within(cycle))
            }
            _ => Err(M::Error::custom("this reason has no form in a proof")),
        }
    }
}

impl Serialize for Named<'_, &VersionOrder> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        match self.item {
            VersionOrder::Initial => map.serialize_entry("by", "initial")?,
            VersionOrder::ReadModifyWrite { read } => {
                map.serialize_entry("by", "read-modify-write")?;
                map.serialize_entry("read", &self.part(*read))?;
            }
            VersionOrder::List { read } => {
                map.serialize_entry("by", "list")?;
                map.serialize_entry("read", &self.part(*read))?;
            }
            VersionOrder::AppendedLater { read } => {
                map.serialize_entry("by", "not-shown")?;
                map.serialize_entry("read", &self.part(*read))?;
            }
            VersionOrder::Stated { at } => {
                map.serialize_entry("by", "stated")?;
                map.serialize_entry("at", at)?;
            }
            VersionOrder::Refuted { cycle } => {
                map.serialize_entry("by", "refuted")?;
                map.serialize_entry("cycle", &self.within(cycle))?;
            }
            VersionOrder::Guaranteed { by, first, second } => {
                map.serialize_entry("by", by.name())?;
                map.serialize_entry("first", &self.part(*first))?;
                map.serialize_entry("second", &self.part(*second))?;
            }
            VersionOrder::Assumed => map.serialize_entry("by", "assumed")?,
            VersionOrder::Path { edges } => {
                map.serialize_entry("by", "path")?;
                map.serialize_entry("edges", &self.within(edges))?;
            }
            _ => return Err(S::Error::custom("this order of versions has no form in a proof")),
        }
        map.end()
    }
}

impl<'n, T> Named<'n, T> {
    /// Edges that a reason rests on.
    fn within<'e>(&self, edges: &'e [Edge]) -> Named<'n, &'e [Edge]> {
        Named { names: self.names, item: edges, depth: self.depth + 1 }
    }
}
