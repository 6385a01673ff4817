//! How fast something grows.

/// The exponent e for which y grows as x^e: the slope of the line of least squares through the
/// logarithms. None if the points do not determine it.
pub fn exponent(points: &[(f64, f64)]) -> Option<f64> {
    let logs: Vec<(f64, f64)> = points
        .iter()
        .filter(|(x, y)| *x > 0.0 && *y > 0.0)
        .map(|(x, y)| (x.ln(), y.ln()))
        .collect();
    let count = logs.len() as f64;
    let mean_x = logs.iter().map(|(x, _)| x).sum::<f64>() / count;
    let mean_y = logs.iter().map(|(_, y)| y).sum::<f64>() / count;
    let spread = logs.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
    let joint = logs.iter().map(|(x, y)| (x - mean_x) * (y - mean_y)).sum::<f64>();
    (spread > 0.0).then(|| joint / spread)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn powers_are_recognised() {
        for power in [0.0, 1.0, 1.5, -2.0] {
            let points: Vec<_> =
                [1.0, 3.0, 10.0, 500.0].map(|x: f64| (x, 7.0 * x.powf(power))).into();
            assert!((exponent(&points).unwrap() - power).abs() < 1e-9);
        }
    }

    #[test]
    fn too_little_determines_nothing() {
        assert_eq!(exponent(&[]), None);
        assert_eq!(exponent(&[(2.0, 3.0)]), None);
        assert_eq!(exponent(&[(2.0, 3.0), (2.0, 4.0), (0.0, 1.0)]), None);
    }
}
