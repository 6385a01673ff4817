//! Random queries.

use super::Writer;
use super::conditions::{Room, Source};
use crate::schema::{Column, Table, Type};

impl Writer<'_> {
    /// A query of any form.
    pub(super) fn select(&mut self) -> String {
        match self.dice.weighted(&[44, 16, 8, 8, 12, 6, 6]) {
            1 => self.join(),
            2 => self.derived(),
            3 => self.compound(),
            4 => self.aggregate(),
            5 => self.grouped(),
            6 => self.distinct(),
            _ => self.simple(),
        }
    }

    /// A query that locks what it reads. Only plain rows can be locked.
    pub(super) fn locking_select(&mut self, lock: &str) -> String {
        if !self.product.locking_reads {
            return self.simple();
        }
        let table = self.dice.pick(&self.schema.tables);
        let (name, columns) = (table.name.clone(), table.columns.clone());
        let condition = self.condition(&[Source::named(&name, &columns)], self.room());
        format!("SELECT {} FROM {name} WHERE {condition} {lock}", self.shown(&columns, None))
    }

    pub(super) fn room(&self) -> Room<'static> {
        Room { depth: self.style.depth, subqueries: true, except: None }
    }

    /// A table or, now and then, a view.
    fn relation(&mut self) -> (String, Vec<Column>) {
        if !self.schema.views.is_empty() && self.dice.percent(20) {
            let view = self.dice.pick(&self.schema.views);
            return (view.name.clone(), view.columns.clone());
        }
        let table = self.dice.pick(&self.schema.tables);
        (table.name.clone(), table.columns.clone())
    }

    /// Some columns, at least one.
    fn shown(&mut self, columns: &[Column], qualifier: Option<&str>) -> String {
        let first = self.dice.below(columns.len());
        let shown: Vec<String> = columns
            .iter()
            .enumerate()
            .filter(|(at, _)| *at == first || self.dice.percent(60))
            .map(|(_, column)| match qualifier {
                Some(qualifier) => format!("{qualifier}.{}", column.name),
                None => column.name.clone(),
            })
            .collect();
        shown.join(", ")
    }

    fn simple(&mut self) -> String {
        let (name, columns) = self.relation();
        let shown = self.shown(&columns, None);
        let condition = self.condition(&[Source::named(&name, &columns)], self.room());
        let mut query = format!("SELECT {shown} FROM {name} WHERE {condition}");
        if self.dice.percent(15) {
            let order: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
            query += &format!(" ORDER BY {}", order.join(", "));
            if self.dice.percent(60) {
                query += &format!(" LIMIT {}", self.dice.between(1, 3));
            }
        }
        query
    }

    fn join(&mut self) -> String {
        let (left_name, left_columns) = self.relation();
        let (right_name, right_columns) = self.relation();
        let left = Source::named(&left_name, &left_columns);
        let alias = if right_name == left_name { "u" } else { right_name.as_str() };
        let right = Source::named(alias, &right_columns);
        let shown = format!(
            "{}, {}",
            self.shown(&left_columns, Some(&left_name)),
            self.shown(&right_columns, Some(alias)),
        );
        let mut pairs = Vec::new();
        for mine in &left_columns {
            let theirs = right.of_type(mine.ty).into_iter();
            pairs.extend(theirs.map(|theirs| (left.name(mine), right.name(theirs))));
        }
        let kind = if self.dice.percent(30) { "LEFT JOIN" } else { "JOIN" };
        let joined = match pairs.is_empty() || self.dice.percent(10) {
            true => format!("CROSS JOIN {right_name} AS {alias}"),
            false => {
                let (mine, theirs) = self.dice.pick(&pairs);
                format!("{kind} {right_name} AS {alias} ON {mine} = {theirs}")
            }
        };
        let condition = self.condition(&[left, right], self.room());
        format!("SELECT {shown} FROM {left_name} {joined} WHERE {condition}")
    }

    /// A query over a subquery.
    fn derived(&mut self) -> String {
        let (name, columns) = self.relation();
        let source = Source::bare(&columns);
        let room = Room { depth: 1, subqueries: false, except: None };
        let inside = self.condition(std::slice::from_ref(&source), room);
        let outside = self.condition(&[Source::named("d", &columns)], room);
        let all: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        let all = all.join(", ");
        let shown = self.shown(&columns, Some("d"));
        format!(
            "SELECT {shown} FROM (SELECT {all} FROM {name} WHERE {inside}) AS d WHERE {outside}"
        )
    }

    /// Two queries of one column of the same type, put together.
    fn compound(&mut self) -> String {
        let operator = *self.dice.pick(&["UNION", "UNION ALL", "UNION", "INTERSECT", "EXCEPT"]);
        let first = self.relation();
        // Random tables begin with an integer; those of a template need not have any.
        let has = |(_, columns): &(String, Vec<Column>), ty| columns.iter().any(|c| c.ty == ty);
        let ty = match has(&first, Type::Integer) {
            true => Type::Integer,
            false => first.1[0].ty,
        };
        let left = self.one_column(&first, ty);
        let second = Some(self.relation()).filter(|second| has(second, ty)).unwrap_or(first);
        let right = self.one_column(&second, ty);
        format!("{left} {operator} {right}")
    }

    /// A query of one column, of a type that the relation has.
    fn one_column(&mut self, (name, columns): &(String, Vec<Column>), ty: Type) -> String {
        let source = Source::bare(columns);
        let column = self.dice.pick(&source.of_type(ty)).name.clone();
        let room = Room { depth: 1, subqueries: false, except: None };
        let condition = self.condition(std::slice::from_ref(&source), room);
        format!("SELECT {column} FROM {name} WHERE {condition}")
    }

    /// A function of a column that has one.
    fn function(&mut self, table: &Table) -> String {
        let column = self.dice.pick(&table.columns);
        let name = &column.name;
        match column.ty {
            Type::Integer => format!("{}({name})", self.dice.pick(&["sum", "min", "max", "count"])),
            Type::Boolean => format!("count({name})"),
            _ => format!("{}({name})", self.dice.pick(&["min", "max", "count"])),
        }
    }

    fn aggregate(&mut self) -> String {
        let table = self.dice.pick(&self.schema.tables).clone();
        let function = self.function(&table);
        let condition = self.condition(&[Source::named(&table.name, &table.columns)], self.room());
        format!("SELECT count(*), {function} FROM {} WHERE {condition}", table.name)
    }

    fn grouped(&mut self) -> String {
        let table = self.dice.pick(&self.schema.tables).clone();
        let key = self.dice.pick(&table.columns).name.clone();
        let function = self.function(&table);
        let room = Room { subqueries: false, ..self.room() };
        let condition = self.condition(&[Source::bare(&table.columns)], room);
        let having = if self.dice.percent(25) { " HAVING count(*) > 1" } else { "" };
        let name = &table.name;
        format!("SELECT {key}, {function} FROM {name} WHERE {condition} GROUP BY {key}{having}")
    }

    fn distinct(&mut self) -> String {
        let (name, columns) = self.relation();
        let shown = self.shown(&columns, None);
        let condition = self.condition(&[Source::named(&name, &columns)], self.room());
        format!("SELECT DISTINCT {shown} FROM {name} WHERE {condition}")
    }
}
