//! Lines over time, as SVG.

use std::fmt::Write as _;
use std::io::{self, Write};

/// Values second by second.
pub(super) struct Series {
    pub(super) name: &'static str,
    pub(super) values: Vec<f64>,
}

/// A chart of a few series. They are told apart by colour, by dashes and by name.
pub(super) struct Chart {
    pub(super) id: String,
    pub(super) title: &'static str,
    /// What follows a value.
    pub(super) unit: &'static str,
    pub(super) series: Vec<Series>,
}

const WIDTH: f64 = 560.0;
const HEIGHT: f64 = 220.0;
const LEFT: f64 = 56.0;
const RIGHT: f64 = 90.0;
const TOP: f64 = 12.0;
const BOTTOM: f64 = 30.0;
/// More points than pixels show nothing more.
const MOST_POINTS: usize = 500;
/// How far apart the names of series are at least.
const NAME_STEP: f64 = 14.0;

impl Chart {
    pub(super) fn write(&self, out: &mut dyn Write) -> io::Result<()> {
        let seconds = self.series.iter().map(|series| series.values.len()).max().unwrap_or(0);
        let values = self.series.iter().flat_map(|series| &series.values);
        let step = nice(values.copied().fold(0.0, f64::max) / 4.0);
        let highest = values_top(&self.series, step);
        let x = |second: f64| LEFT + second / (seconds.max(2) - 1) as f64 * (WIDTH - LEFT - RIGHT);
        let y = |value: f64| HEIGHT - BOTTOM - value / highest * (HEIGHT - TOP - BOTTOM);
        let (id, title) = (&self.id, self.title);
        writeln!(
            out,
            "<figure class=\"chart\">\n<figcaption id=\"{id}-title\">{title}</figcaption>\n\
             <svg viewBox=\"0 0 {WIDTH} {HEIGHT}\" role=\"img\" aria-labelledby=\"{id}-title \
             {id}-text\">\n<desc id=\"{id}-text\">{}</desc>",
            self.told()
        )?;
        let mut line = 0.0;
        while line <= highest * 1.001 {
            let at = y(line);
            let (end, label_x, label_y) = (WIDTH - RIGHT, LEFT - 6.0, at + 4.0);
            writeln!(
                out,
                "<path class=\"grid\" d=\"M{LEFT} {at:.1}H{end}\"/><text class=\"tick left\" \
                 x=\"{label_x}\" y=\"{label_y:.1}\">{}</text>",
                tick(line)
            )?;
            line += step;
        }
        let every = nice(seconds as f64 / 6.0).max(1.0);
        let mut second = 0.0;
        while second <= (seconds.max(1) - 1) as f64 {
            let (at, base) = (x(second), HEIGHT - BOTTOM + 16.0);
            writeln!(out, "<text class=\"tick\" x=\"{at:.1}\" y=\"{base}\">{second} s</text>")?;
            second += every;
        }
        for (number, series) in self.series.iter().enumerate() {
            let path = path(&series.values, x, y);
            writeln!(out, "<path class=\"series s{number}\" d=\"{path}\"/>")?;
        }
        self.names(y, out)?;
        writeln!(out, "</svg>\n</figure>")
    }

    /// The names at the ends of their lines, moved apart where they would overlap.
    fn names(&self, y: impl Fn(f64) -> f64, out: &mut dyn Write) -> io::Result<()> {
        let ends = self.series.iter().enumerate();
        let mut ends: Vec<(f64, usize)> =
            ends.map(|(at, s)| (y(s.values.last().copied().unwrap_or(0.0)) + 4.0, at)).collect();
        ends.sort_by(|a, b| b.0.total_cmp(&a.0));
        let mut free = HEIGHT;
        let x = WIDTH - RIGHT + 6.0;
        for (wanted, at) in ends {
            let place = wanted.min(free);
            free = place - NAME_STEP;
            let name = self.series[at].name;
            writeln!(out, "<text class=\"name s{at}\" x=\"{x}\" y=\"{place:.1}\">{name}</text>")?;
        }
        Ok(())
    }

    /// The chart for those who do not see it.
    fn told(&self) -> String {
        let one = |series: &Series| {
            let count = series.values.len().max(1) as f64;
            let mean = series.values.iter().sum::<f64>() / count;
            let most = series.values.iter().copied().fold(0.0, f64::max);
            let unit = self.unit;
            format!("{}: {mean:.1}{unit} on average, {most:.1}{unit} at most", series.name)
        };
        self.series.iter().map(one).collect::<Vec<_>>().join("; ")
    }
}

/// The smallest multiple of a step that no value exceeds.
fn values_top(series: &[Series], step: f64) -> f64 {
    let most = series.iter().flat_map(|s| &s.values).copied().fold(0.0, f64::max);
    (most / step).ceil().max(1.0) * step
}

/// The next larger of 1, 2 and 5 times a power of ten.
fn nice(value: f64) -> f64 {
    if value <= 0.0 || !value.is_finite() {
        return 1.0;
    }
    let power = 10f64.powf(value.log10().floor());
    let factor = [1.0, 2.0, 5.0].into_iter().find(|f| f * power >= value).unwrap_or(10.0);
    factor * power
}

fn tick(value: f64) -> String {
    match value {
        value if value >= 10_000.0 => format!("{:.0} k", value / 1000.0),
        value if value.fract() < 0.001 => format!("{value:.0}"),
        value => format!("{value:.2}"),
    }
}

/// A line through the values; of many, the highest of each group.
fn path(values: &[f64], x: impl Fn(f64) -> f64, y: impl Fn(f64) -> f64) -> String {
    let group = values.len().div_ceil(MOST_POINTS).max(1);
    let mut path = String::new();
    for (at, group_values) in values.chunks(group).enumerate() {
        let value = group_values.iter().copied().fold(0.0, f64::max);
        let command = if at == 0 { 'M' } else { 'L' };
        let (x, y) = (x((at * group) as f64), y(value));
        // Writing to a string does not fail.
        let _ = write!(path, "{command}{x:.1} {y:.1}");
    }
    path
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_are_nice_numbers() {
        assert_eq!([0.3, 1.0, 3.0, 70.0, 0.0].map(nice), [0.5, 1.0, 5.0, 100.0, 1.0]);
    }

    #[test]
    fn long_series_keep_their_peaks() {
        let mut values = vec![1.0; 5000];
        values[1234] = 9.0;
        let line = path(&values, |x| x, |y| y);
        assert!(line.contains(" 9.0"));
        assert!(line.matches('L').count() <= MOST_POINTS);
    }
}
