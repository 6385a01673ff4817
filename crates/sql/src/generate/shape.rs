//! Transactions like given ones: those of a script, or those of the shape of an anomaly.

use sqlparser::tokenizer::Token;

use super::{Style, Writer};
use crate::dice::Dice;
use crate::product::Product;
use crate::schema::{Schema, Table};
use crate::script::{Action, Script};

/// How many of a hundred transactions are like a model, where there are some.
const MODELLED: u32 = 70;
/// How many of a hundred numbers in them are other ones.
const VARIED: u32 = 10;
/// Rows that are asked for by a range have at least this in their first column; those that a table has at
/// first mostly have less.
const RANGE: usize = 9;

/// What a transaction of a shape does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Part {
    /// Reads a row, which the transactions of the shape know by this number.
    Read(usize),
    /// Writes a row.
    Write(usize),
    /// Deletes a row.
    Delete(usize),
    /// Reads the rows of a range.
    ReadRange,
    /// Inserts a row into that range.
    Insert,
}

/// The shape of an anomaly: the transactions that it takes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// What each of them does.
    pub txns: Vec<Vec<Part>>,
}

impl Shape {
    /// Transactions of this shape over a schema, each by its statements: a function of seed and round.
    pub fn models(
        &self,
        schema: &Schema,
        product: &Product,
        seed: u64,
        round: u64,
    ) -> Vec<Vec<String>> {
        let dice = Dice::new(seed, &[round, 3]);
        let style = Style::default();
        let mut writer = Writer { schema, product, style: &style, models: &[], dice };
        let places = self.txns.iter().flatten().map(|part| match part {
            Part::Read(at) | Part::Write(at) | Part::Delete(at) => at + 1,
            Part::ReadRange | Part::Insert => 1,
        });
        let count = places.max().unwrap_or(1);
        let first = writer.dice.below(schema.tables.len());
        let places: Vec<Place<'_>> = (0..count).map(|at| writer.place(first, at)).collect();
        let txn =
            |parts: &Vec<Part>| parts.iter().map(|part| writer.part(*part, &places)).collect();
        self.txns.iter().map(txn).collect()
    }
}

impl Script {
    /// Its transactions, each by its statements.
    pub fn models(&self) -> Vec<Vec<String>> {
        let of = |txn: &u32| {
            let steps = self.steps.iter().filter(|step| step.txn == *txn);
            let statements = steps.filter_map(|step| match &step.action {
                Action::Statement(sql) => Some(sql.clone()),
                _ => None,
            });
            statements.collect()
        };
        self.txns().iter().map(of).filter(|statements: &Vec<_>| !statements.is_empty()).collect()
    }
}

/// A row that several transactions know.
struct Place<'s> {
    table: &'s Table,
    condition: String,
}

impl<'s> Writer<'s> {
    /// A row for the transactions of a shape to meet on: of one table or, half of the time, of several.
    fn place(&mut self, first: usize, at: usize) -> Place<'s> {
        let tables = &self.schema.tables;
        let table = match at > 0 && self.dice.percent(50) {
            true => &tables[(first + at) % tables.len()],
            false => &tables[first],
        };
        let row = at % table.rows.len().max(1);
        let column = &table.columns[0];
        let value = match (column.auto_increment, table.rows.get(row)) {
            (false, Some(literals)) => literals[0].clone(),
            _ => (row + 1).to_string(),
        };
        let condition = match value == "NULL" {
            true => format!("{} IS NULL", column.name),
            false => format!("{} = {value}", column.name),
        };
        Place { table, condition }
    }

    fn part(&mut self, part: Part, places: &[Place<'s>]) -> String {
        match part {
            Part::Read(at) => {
                let Place { table, condition } = &places[at];
                format!("{} WHERE {condition}", Schema::full_read(table))
            }
            Part::Write(at) => {
                let Place { table, condition } = &places[at];
                self.update_where(table, condition)
            }
            Part::Delete(at) => {
                let Place { table, condition } = &places[at];
                format!("DELETE FROM {} WHERE {condition}", table.name)
            }
            Part::ReadRange => {
                let table = places[0].table;
                let first = &table.columns[0].name;
                format!("{} WHERE {first} >= {RANGE}", Schema::full_read(table))
            }
            Part::Insert => {
                let table = places[0].table.clone();
                self.insert_into(&table, 1, "INSERT INTO")
            }
        }
    }

    /// A transaction like one of the models, now and then.
    pub(super) fn modelled(&mut self) -> Option<Vec<String>> {
        if self.models.is_empty() || !self.dice.percent(MODELLED) {
            return None;
        }
        let model = self.dice.pick(self.models);
        Some(model.iter().map(|sql| self.varied(sql)).collect())
    }

    /// A statement, in which some numbers are other ones. What has no tokens stays as it is.
    fn varied(&mut self, sql: &str) -> String {
        let Ok(tokens) = self.product.tokens(sql) else { return sql.to_owned() };
        let mut text = String::with_capacity(sql.len());
        for token in tokens {
            match token {
                Token::Number(..) if self.dice.percent(VARIED) => {
                    text += &self.dice.between(0, RANGE + 2).to_string();
                }
                token => text += &token.to_string(),
            }
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::super::Planner;
    use super::*;
    use crate::schema::Bounds;

    fn skew() -> Shape {
        Shape {
            txns: vec![
                vec![Part::Read(0), Part::Read(1), Part::Write(0)],
                vec![Part::ReadRange, Part::Insert, Part::Delete(1)],
            ],
        }
    }

    #[test]
    fn a_shape_fits_any_schema() {
        for round in 0..100 {
            let schema = Schema::random(1, round, &Bounds::default());
            let models = skew().models(&schema, &Product::POSTGRES, 1, round);
            assert_eq!(models, skew().models(&schema, &Product::POSTGRES, 1, round));
            let kinds = |txn: &Vec<String>| -> Vec<String> {
                let kind = |sql: &String| crate::kind_of(&Product::POSTGRES, sql).to_string();
                txn.iter().map(kind).collect()
            };
            let kinds: Vec<Vec<String>> = models.iter().map(kinds).collect();
            let expected = [["SELECT", "SELECT", "UPDATE"], ["SELECT", "INSERT", "DELETE"]];
            assert_eq!(kinds, expected, "{models:?}");
            // The row that one reads first is the one that it writes.
            let condition = |sql: &str| sql.split_once(" WHERE ").unwrap().1.to_owned();
            assert_eq!(condition(&models[0][0]), condition(&models[0][2]));
        }
    }

    #[test]
    fn most_transactions_are_like_their_models() {
        let schema = Schema::random(1, 0, &Bounds::default());
        let (product, style) = (Product::SQLITE, Style::default());
        let models = vec![vec!["SELECT 'it''s', 7 FROM t0 -- \u{e9}".to_owned()]];
        let planner = Planner {
            schema: &schema,
            product: &product,
            style: &style,
            models: &models,
            seed: 1,
            round: 0,
        };
        let planned: Vec<_> = (0..200).map(|at| planner.transaction(0, at)).collect();
        let like = planned.iter().filter(|txn| txn.statements[0].starts_with("SELECT 'it''s', "));
        assert!((100..180).contains(&like.count()));
        assert!(planned.iter().any(|txn| txn.statements == models[0]));
        assert!(planned.iter().any(|txn| txn.statements[0].starts_with("SELECT 'it''s', 1")));
    }
}
