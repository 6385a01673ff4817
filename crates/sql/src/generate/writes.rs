//! Random statements that write.

use isolario_predicate::Dialect;

use super::Writer;
use super::conditions::{Room, Source};
use crate::schema::{Column, Table, Type, literal};

impl Writer<'_> {
    fn table(&mut self) -> Table {
        self.dice.pick(&self.schema.tables).clone()
    }

    pub(super) fn insert(&mut self) -> String {
        let table = self.table();
        let rows = if self.dice.percent(30) { 2 } else { 1 };
        self.insert_into(&table, rows, "INSERT INTO")
    }

    /// Rows for a table, by a statement that begins with these words.
    pub(super) fn insert_into(&mut self, table: &Table, rows: usize, words: &str) -> String {
        let mut columns: Vec<Column> = table.given().cloned().collect();
        if columns.is_empty() {
            columns.clone_from(&table.columns);
        }
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let rows: Vec<String> = (0..rows)
            .map(|_| {
                let values: Vec<String> =
                    columns.iter().map(|column| self.value(table, column)).collect();
                format!("({})", values.join(", "))
            })
            .collect();
        format!("{words} {} ({}) VALUES {}", table.name, names.join(", "), rows.join(", "))
    }

    /// A value for a column. Keys are mostly new ones, and references mostly hold.
    fn value(&mut self, table: &Table, column: &Column) -> String {
        if column.references.is_some() {
            return match self.dice.percent(40) {
                true => "NULL".to_owned(),
                false => self.dice.between(1, 4).to_string(),
            };
        }
        if column.ty == Type::Integer && table.is_in_key(column) {
            return match self.dice.percent(20) {
                true => self.dice.between(1, 8).to_string(),
                false => self.dice.between(9, 400).to_string(),
            };
        }
        match !column.not_null && self.dice.percent(6) {
            true => "NULL".to_owned(),
            false => literal(&mut self.dice, column.ty),
        }
    }

    /// Rows of a table made of those of another. Those of a key would hardly ever be new.
    pub(super) fn insert_select(&mut self) -> Option<String> {
        let open = |table: &&Table| {
            let is_free = |c: &Column| !table.is_in_key(c) && c.references.is_none() && !c.not_null;
            table.given().next().is_some() && table.given().all(is_free)
        };
        let targets: Vec<&Table> = self.schema.tables.iter().filter(open).collect();
        if targets.is_empty() {
            return None;
        }
        let target = (*self.dice.pick(&targets)).clone();
        let source = self.table();
        let from = Source::named("s", &source.columns);
        let given: Vec<Column> = target.given().cloned().collect();
        let values: Vec<String> = given
            .iter()
            .map(|column| {
                let same = from.of_type(column.ty);
                match same.is_empty() || column.at_least.is_some() {
                    true => literal(&mut self.dice, column.ty),
                    false => from.name(self.dice.pick::<&Column>(&same)),
                }
            })
            .collect();
        let names: Vec<&str> = given.iter().map(|column| column.name.as_str()).collect();
        let leaf = Room { depth: 0, subqueries: false, except: None };
        let condition = self.condition(std::slice::from_ref(&from), leaf);
        let (into, names, values) = (&target.name, names.join(", "), values.join(", "));
        let from = &source.name;
        Some(format!(
            "INSERT INTO {into} ({names}) SELECT {values} FROM {from} AS s WHERE {condition}"
        ))
    }

    /// A table with a key that rows give.
    fn keyed_table(&mut self) -> Option<Table> {
        let has_key = |table: &&Table| {
            table.keys().iter().any(|key| key.iter().all(|column| !column.auto_increment))
        };
        let tables: Vec<&Table> = self.schema.tables.iter().filter(has_key).collect();
        match tables.is_empty() {
            true => None,
            false => Some((*self.dice.pick(&tables)).clone()),
        }
    }

    /// A row that is inserted or, where its key is taken, updated.
    pub(super) fn upsert(&mut self) -> Option<String> {
        let table = self.keyed_table()?;
        let insert = self.insert_into(&table, 1, "INSERT INTO");
        let keys = table.keys();
        let key = keys.iter().find(|key| key.iter().all(|column| !column.auto_increment))?;
        let key: Vec<&str> = key.iter().map(|column| column.name.as_str()).collect();
        let others: Vec<&Column> =
            table.given().filter(|column| !table.is_in_key(column)).collect();
        let key = key.join(", ");
        if others.is_empty() {
            return match self.product.dialect {
                Dialect::MySql => None,
                _ => Some(format!("{insert} ON CONFLICT ({key}) DO NOTHING")),
            };
        }
        let column = &self.dice.pick(&others).name;
        Some(match self.product.dialect {
            Dialect::MySql => {
                format!("{insert} ON DUPLICATE KEY UPDATE {column} = VALUES({column})")
            }
            _ => format!("{insert} ON CONFLICT ({key}) DO UPDATE SET {column} = excluded.{column}"),
        })
    }

    /// A row in place of those whose key it has.
    pub(super) fn replace(&mut self) -> Option<String> {
        let words = match self.product.dialect {
            Dialect::MySql => "REPLACE INTO",
            Dialect::Sqlite => "INSERT OR REPLACE INTO",
            _ => return None,
        };
        let table = self.keyed_table()?;
        // A row that others refer to cannot be replaced.
        let referred = |other: &Table| {
            let mut columns = other.columns.iter().filter_map(|column| column.references.as_ref());
            columns.any(|(name, _)| *name == table.name)
        };
        match self.schema.tables.iter().any(referred) {
            true => None,
            false => Some(self.insert_into(&table, 1, words)),
        }
    }

    pub(super) fn update(&mut self) -> String {
        let table = self.table();
        let assignments = self.assignments(&table);
        let condition = self.write_condition(&table);
        format!("UPDATE {} SET {assignments} WHERE {condition}", table.name)
    }

    /// An update of given rows.
    pub(super) fn update_where(&mut self, table: &Table, condition: &str) -> String {
        format!("UPDATE {} SET {} WHERE {condition}", table.name, self.assignments(table))
    }

    fn assignments(&mut self, table: &Table) -> String {
        let free: Vec<&Column> = table.given().filter(|column| !table.is_in_key(column)).collect();
        let columns = match free.is_empty() {
            true => table.columns.iter().collect(),
            false => free,
        };
        let first = self.dice.below(columns.len());
        let mut assignments = Vec::new();
        for (at, column) in columns.iter().enumerate() {
            if at == first || self.dice.percent(25) {
                assignments.push(self.assignment(table, column));
            }
        }
        assignments.join(", ")
    }

    fn assignment(&mut self, table: &Table, column: &Column) -> String {
        let name = &column.name;
        let is_key = table.is_in_key(column) || column.references.is_some();
        let value = match column.ty {
            Type::Integer if !is_key && self.dice.percent(60) => format!("{name} + 1"),
            Type::Decimal if self.dice.percent(60) => format!("{name} + 0.25"),
            Type::Boolean if self.dice.percent(60) => format!("NOT {name}"),
            _ => self.value(table, column),
        };
        format!("{name} = {value}")
    }

    fn write_condition(&mut self, table: &Table) -> String {
        let except = self.is_mysql().then_some(table.name.as_str());
        let room = Room { except, ..self.room() };
        self.condition(&[Source::bare(&table.columns)], room)
    }

    /// Mostly one or few rows: tables are not to run empty.
    pub(super) fn delete(&mut self) -> String {
        let table = self.table();
        let Column { name, ty, .. } = &table.columns[0];
        let condition = match self.dice.percent(75) {
            _ if *ty != Type::Integer => format!("{name} = {}", literal(&mut self.dice, *ty)),
            true => format!("{name} = {}", self.dice.between(1, 9)),
            false => format!("{name} > {}", self.dice.between(8, 400)),
        };
        format!("DELETE FROM {} WHERE {condition}", table.name)
    }
}
