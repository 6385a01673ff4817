//! Random rows, and expressions over their columns.

use isolario_predicate::{Arithmetic, Comparison, Decimal, Expr, Literal};

/// A small generator of numbers: SplitMix64.
pub struct Random(u64);

/// The columns of a row, by type.
pub const INTEGERS: [&str; 3] = ["a", "b", "c"];
pub const DECIMAL: &str = "d";
pub const TEXTS: [&str; 2] = ["t", "u"];
pub const BOOLEAN: &str = "f";

/// A row: the columns above, in that order.
pub type TestRow = Vec<(&'static str, Literal)>;

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit as u64) as usize
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }
}

/// Rows.
impl Random {
    pub fn row(&mut self) -> TestRow {
        let mut row = TestRow::new();
        for name in INTEGERS {
            let value = self.integer();
            row.push((name, self.or_null(value)));
        }
        let value = self.decimal();
        row.push((DECIMAL, self.or_null(value)));
        for name in TEXTS {
            let value = self.text();
            row.push((name, self.or_null(value)));
        }
        let value = Literal::Bool(self.one_in(2));
        row.push((BOOLEAN, self.or_null(value)));
        row
    }

    fn or_null(&mut self, value: Literal) -> Literal {
        if self.one_in(8) { Literal::Null } else { value }
    }

    fn integer(&mut self) -> Literal {
        Literal::Int(match self.below(20) {
            0 => self.pick(&[i64::MAX, i64::MIN + 1, 1 << 53, (1 << 53) + 1, -(1 << 40)]),
            1..3 => self.below(2000) as i64 - 1000,
            _ => self.below(9) as i64 - 4,
        })
    }

    fn decimal(&mut self) -> Literal {
        const DECIMALS: [&str; 12] = [
            "0.0",
            "1.0",
            "2.5",
            "-0.25",
            "0.1",
            "0.2",
            "0.3",
            "-3.75",
            "1234.5678",
            "0.125",
            "1e15",
            "-1000000.000001",
        ];
        Literal::Decimal(Decimal::parse(self.pick(&DECIMALS)).unwrap())
    }

    fn text(&mut self) -> Literal {
        const TEXTS: [&str; 14] =
            ["", "a", "A", "b", "ab", "Ab", "aB", "abc", "B", "10", "9", "a_c", "a%", "Ä"];
        Literal::Text(self.pick(&TEXTS).into())
    }
}

/// Expressions.
impl Random {
    pub fn condition(&mut self, depth: usize) -> Expr {
        let depth_of_operands = depth.saturating_sub(1);
        let choice = if depth == 0 { self.below(9) } else { self.below(14) };
        let built = match choice {
            0..3 => {
                let (left, right) =
                    (self.number(depth_of_operands), self.number(depth_of_operands));
                left.compare(self.comparison(), right)
            }
            3 => self.text_operand().compare(self.comparison(), self.text_operand()),
            4 => {
                let (low, high) = (self.number(depth_of_operands), self.number(depth_of_operands));
                self.number(depth_of_operands).between(low, high)
            }
            5 => {
                let list: Vec<_> = (0..1 + self.below(4)).map(|_| self.number_literal()).collect();
                self.number(depth_of_operands).is_in(list)
            }
            6 => self.text_operand().starts_with(self.pick(&["", "a", "A", "ab", "a_", "a%", "1"])),
            7 => self.number(depth_of_operands).is_null(),
            8 => Ok(Expr::column(BOOLEAN)),
            9 => self.condition(depth_of_operands).negated_condition(),
            10..12 => {
                let right = self.condition(depth_of_operands);
                self.condition(depth_of_operands).and(right)
            }
            12 => {
                let right = self.condition(depth_of_operands);
                self.condition(depth_of_operands).or(right)
            }
            _ => self.condition(depth_of_operands).is_null(),
        };
        built.unwrap()
    }

    pub fn number(&mut self, depth: usize) -> Expr {
        let leaf = depth == 0 || self.one_in(2);
        match self.below(if leaf { 6 } else { 8 }) {
            0..4 => Expr::column(self.pick(&INTEGERS)),
            4 if self.one_in(2) => Expr::column(DECIMAL),
            4..6 => Expr::literal(self.number_literal()),
            6 => self.number(depth - 1).negate().unwrap(),
            _ => {
                let operator = self.arithmetic();
                let right = self.number(depth - 1);
                self.number(depth - 1).arithmetic(operator, right).unwrap()
            }
        }
    }

    fn number_literal(&mut self) -> Literal {
        match self.below(12) {
            0 => Literal::Null,
            1 => self.decimal(),
            _ => self.integer(),
        }
    }

    fn text_operand(&mut self) -> Expr {
        if self.one_in(3) { Expr::literal(self.text()) } else { Expr::column(self.pick(&TEXTS)) }
    }

    fn comparison(&mut self) -> Comparison {
        use Comparison::{Equal, Greater, GreaterOrEqual, Less, LessOrEqual, NotEqual};
        self.pick(&[Equal, NotEqual, Less, LessOrEqual, Greater, GreaterOrEqual])
    }

    fn arithmetic(&mut self) -> Arithmetic {
        use Arithmetic::{Add, Divide, Modulo, Multiply, Subtract};
        self.pick(&[Add, Subtract, Multiply, Divide, Modulo])
    }
}

/// How many evaluations a test goes through.
pub fn volume() -> usize {
    let volume = std::env::var("ISOLARIO_TEST_VOLUME").ok();
    volume.and_then(|volume| volume.parse().ok()).unwrap_or(20_000)
}
