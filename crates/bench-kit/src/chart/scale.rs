//! An axis: where a number stands on it, and which numbers are marked.

/// The numbers of a decade at which an axis may begin, end, and be marked.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

/// An axis from one number to another, both of them marked.
#[derive(Clone, Debug)]
pub(super) struct Scale {
    low: f64,
    high: f64,
    /// Whether it is not logarithmic.
    even: bool,
}

impl Scale {
    /// An axis of equal differences from the least number to the greatest.
    pub(super) fn even(numbers: impl Iterator<Item = f64>) -> Scale {
        let (low, high) = numbers
            .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), number| {
                (low.min(number), high.max(number))
            });
        match low < high {
            true => Scale { low, high, even: true },
            false => Scale { low: 0.0, high: 1.0, even: true },
        }
    }

    /// The smallest logarithmic axis that holds all the numbers. There is at least a step on it.
    pub(super) fn around(numbers: impl Iterator<Item = f64>) -> Scale {
        let (least, most) = numbers
            .filter(|number| *number > 0.0)
            .fold((f64::INFINITY, 0.0_f64), |(low, high), number| {
                (low.min(number), high.max(number))
            });
        if most == 0.0 {
            return Scale { low: 1.0, high: 10.0, even: false };
        }
        let marks = marks_around(least, most);
        let below = marks.iter().rev().find(|mark| **mark <= least * SLACK);
        let low = below.copied().unwrap_or(least);
        let above = marks.iter().find(|mark| **mark > low && **mark * SLACK >= most);
        Scale { low, high: above.copied().unwrap_or(most), even: false }
    }

    /// Where a number stands: 0 at the beginning, 1 at the end.
    pub(super) fn place(&self, number: f64) -> f64 {
        match self.even {
            true => (number - self.low) / (self.high - self.low),
            false => (number / self.low).ln() / (self.high / self.low).ln(),
        }
    }

    /// Whether a number has a place on it.
    pub(super) fn has(&self, number: f64) -> bool {
        self.even || number > 0.0
    }

    /// The numbers to mark: quarters of an even axis; else whole decades, and between them if there
    /// are few of those.
    pub(super) fn marks(&self) -> Vec<f64> {
        if self.even {
            let quarter = (self.high - self.low) / 4.0;
            return (0..=4).map(|at| self.low + f64::from(at) * quarter).collect();
        }
        let mut marks = marks_around(self.low, self.high);
        marks.retain(|mark| self.low <= *mark * SLACK && *mark <= self.high * SLACK);
        if self.high / self.low > 1000.0 {
            marks.retain(|mark| (mark.log10() - mark.log10().round()).abs() < 1e-9);
        }
        marks
    }
}

/// What rounding may add or take.
const SLACK: f64 = 1.0 + 1e-9;

/// All numbers that may be marked, from below the least number to above the greatest.
fn marks_around(least: f64, most: f64) -> Vec<f64> {
    let decades = least.log10().floor() as i32..=most.log10().floor() as i32 + 1;
    decades.flat_map(|decade| STEPS.map(|step| step * 10_f64.powi(decade))).collect()
}

/// A number as short as people write it.
pub(super) fn label(number: f64) -> String {
    let (number, unit) = match number {
        n if n >= 0.999e9 => (n / 1e9, "G"),
        n if n >= 0.999e6 => (n / 1e6, "M"),
        n if n >= 0.999e4 => (n / 1e3, "k"),
        n => (n, ""),
    };
    let decimals =
        if number >= 1.0 || number == 0.0 { 0 } else { (-number.log10()).ceil().max(0.0) as usize };
    format!("{number:.decimals$}{unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_begins_and_ends_at_marks() {
        let scale = Scale::around([30.0, 0.7, 0.0].into_iter());
        assert!((scale.low - 0.5).abs() < 1e-9 && (scale.high - 50.0).abs() < 1e-9);
        let labels: Vec<_> = scale.marks().into_iter().map(label).collect();
        assert_eq!(labels, ["0.5", "1", "2", "5", "10", "20", "50"]);
        assert!((scale.place(5.0) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn long_axes_are_marked_by_decades() {
        let scale = Scale::around([1.0, 10_000_000.0].into_iter());
        let labels: Vec<_> = scale.marks().into_iter().map(label).collect();
        assert_eq!(labels, ["1", "10", "100", "1000", "10k", "100k", "1M", "10M"]);
    }

    #[test]
    fn an_even_axis_is_marked_in_quarters() {
        let scale = Scale::even([0.0, 100.0, 10.0].into_iter());
        let labels: Vec<_> = scale.marks().into_iter().map(label).collect();
        assert_eq!(labels, ["0", "25", "50", "75", "100"]);
        assert!((scale.place(10.0) - 0.1).abs() < 1e-9 && scale.has(0.0));
        assert!((Scale::even(std::iter::empty()).place(0.5) - 0.5).abs() < 1e-9);
    }

    #[test]
    fn one_number_and_no_number_have_an_axis_too() {
        let scale = Scale::around([10.0].into_iter());
        assert!(scale.low < scale.high && scale.place(10.0).abs() < 1e-9);
        assert_eq!(Scale::around(std::iter::empty()).marks().len(), 4);
    }

    #[test]
    fn labels_are_short() {
        let labels = [0.001, 0.02, 0.5, 1.0, 5000.0, 20_000.0, 5e6, 2e9].map(label);
        assert_eq!(labels, ["0.001", "0.02", "0.5", "1", "5000", "20k", "5M", "2G"]);
    }
}
