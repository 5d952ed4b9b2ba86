//! Axes: ranges, ticks at round numbers, and where a value falls.

/// How values are spread along an axis.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Scale {
    /// Evenly.
    #[default]
    Linear,
    /// By their logarithm; values that are not positive are left out.
    Logarithmic,
}

/// An axis before its range is known.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Axis {
    /// What it measures, with the unit.
    pub label: String,
    /// How values are spread.
    pub scale: Scale,
    /// The range to show; from the data where `None`.
    pub range: Option<(f64, f64)>,
    /// What no value can lie beyond, and the axis does not go beyond.
    limits: Option<(f64, f64)>,
}

impl Axis {
    /// A linear axis over the data.
    pub fn new(label: impl Into<String>) -> Self {
        Self { label: label.into(), ..Self::default() }
    }

    /// The axis of a share: from 0 to 1 at most.
    pub fn of_share(label: impl Into<String>) -> Self {
        Self { limits: Some((0.0, 1.0)), ..Self::new(label) }
    }

    /// The axis of an R2, which may be as low as it likes, and is 1 at most.
    pub fn of_r2(label: impl Into<String>) -> Self {
        Self { limits: Some((f64::NEG_INFINITY, 1.0)), ..Self::new(label) }
    }

    /// The same axis over this range.
    pub fn with_range(self, low: f64, high: f64) -> Self {
        Self { range: Some((low, high)), ..self }
    }

    /// The same axis with logarithmic spacing.
    pub fn logarithmic(self) -> Self {
        Self { scale: Scale::Logarithmic, ..self }
    }

    /// The axis with a range around `values` (finite ones), widened to round numbers where none was given.
    pub fn fit(&self, values: impl Iterator<Item = f64>) -> Fitted {
        let (least, most) = self.limits.unwrap_or((f64::NEG_INFINITY, f64::INFINITY));
        let within = |value: f64| value.max(least).min(most);
        let usable = |value: &f64| value.is_finite() && (self.scale == Scale::Linear || *value > 0.0);
        let (low, high) = match self.range {
            Some(range) => range,
            None => values
                .filter(usable)
                .map(within)
                .fold((f64::INFINITY, f64::NEG_INFINITY), |(low, high), v| (low.min(v), high.max(v))),
        };
        let (low, high) = if low <= high { (low, high) } else { (0.0, 1.0) };
        match self.scale {
            Scale::Linear => {
                let (low, high) =
                    if high > low { (low, high) } else { (within(low - 0.5), within(high + 0.5)) };
                let step = round_step((high - low) / 5.0);
                let (first, last) = match self.range {
                    Some(_) => (low, high),
                    None => (
                        within((low / step + 1e-9).floor() * step),
                        within((high / step - 1e-9).ceil() * step),
                    ),
                };
                let from = (first / step - 1e-9).ceil() as i64;
                let to = (last / step + 1e-9).floor() as i64;
                let ticks = (from..=to).map(|k| (k as f64 * step, decimal(k as f64 * step, step))).collect();
                Fitted { scale: self.scale, low: first, high: last, ticks }
            }
            Scale::Logarithmic => {
                let low = low.max(f64::MIN_POSITIVE);
                let first = low.log10().floor();
                let last = high.max(low).log10().ceil().max(first + 1.0);
                let every = ((last - first) / 6.0).ceil().max(1.0) as usize;
                let ticks = (first as i64..=last as i64)
                    .step_by(every)
                    .map(|k| (10_f64.powi(k as i32), power_of_ten(k)))
                    .collect();
                Fitted { scale: self.scale, low: 10_f64.powf(first), high: 10_f64.powf(last), ticks }
            }
        }
    }
}

/// An axis with its range and ticks.
#[derive(Clone, Debug, PartialEq)]
pub struct Fitted {
    scale: Scale,
    /// The value at the beginning.
    pub low: f64,
    /// The value at the end.
    pub high: f64,
    /// Values with their labels.
    pub ticks: Vec<(f64, String)>,
}

impl Fitted {
    /// Where `value` falls: 0 at the beginning, 1 at the end; `None` for what the scale cannot show.
    pub fn place(&self, value: f64) -> Option<f64> {
        let along = match self.scale {
            Scale::Linear => (value - self.low) / (self.high - self.low),
            Scale::Logarithmic if value > 0.0 => (value / self.low).ln() / (self.high / self.low).ln(),
            Scale::Logarithmic => return None,
        };
        along.is_finite().then_some(along)
    }
}

/// The smallest of 1, 2, 5 times a power of ten that is at least `rough`.
fn round_step(rough: f64) -> f64 {
    let power = 10_f64.powf(rough.log10().floor());
    let factor =
        [1.0, 2.0, 5.0, 10.0].into_iter().find(|f| f * power >= rough * (1.0 - 1e-9)).unwrap_or(10.0);
    factor * power
}

/// `value` with as many decimals as `step` needs.
fn decimal(value: f64, step: f64) -> String {
    let decimals = (-(step.log10() + 1e-9).floor()).clamp(0.0, 9.0) as usize;
    let text = format!("{value:.decimals$}");
    if text.trim_start_matches('-').chars().all(|c| matches!(c, '0' | '.')) {
        text.trim_start_matches('-').to_owned()
    } else {
        text
    }
}

fn power_of_ten(exponent: i64) -> String {
    match exponent {
        0..=4 => format!("{}", 10_i64.pow(exponent as u32)),
        -3..=-1 => format!("{}", 10_f64.powi(exponent as i32)),
        _ => format!("1e{exponent}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_cover_the_data() {
        let axis = Axis::new("x").fit([0.231, 0.779].into_iter());
        let labels: Vec<&str> = axis.ticks.iter().map(|tick| tick.1.as_str()).collect();
        assert_eq!(labels, ["0.2", "0.4", "0.6", "0.8"]);
        assert_eq!((axis.place(axis.low), axis.place(axis.high)), (Some(0.0), Some(1.0)));
        let epochs = Axis::new("epoch").fit([0.0, 2000.0].into_iter());
        assert_eq!(epochs.ticks.last().unwrap().1, "2000");
    }

    #[test]
    fn an_axis_ends_where_no_value_can_be() {
        let ends = |axis: Axis, values: &[f64]| {
            let fitted = axis.fit(values.iter().copied());
            let ticks = fitted.ticks.iter().map(|tick| tick.0);
            assert!(ticks.clone().count() > 1 && ticks.into_iter().all(|tick| tick <= fitted.high + 1e-9));
            (fitted.low, fitted.high)
        };
        assert_eq!(ends(Axis::of_share("share"), &[0.714; 3]), (0.2, 1.0));
        assert_eq!(ends(Axis::of_share("share"), &[0.0]), (0.0, 0.5));
        assert_eq!(ends(Axis::of_share("share"), &[1.0]), (0.5, 1.0));
        // A band may lie beyond, the axis does not.
        assert_eq!(ends(Axis::of_share("share"), &[0.75, 1.03]), (0.75, 1.0));
        assert_eq!(ends(Axis::of_r2("R2"), &[0.9]), (0.4, 1.0));
        assert_eq!(ends(Axis::of_r2("R2"), &[-5.0, 0.9]), (-6.0, 1.0));
        assert!(ends(Axis::new("loss"), &[0.714]).1 > 1.0);
    }

    #[test]
    fn empty_constant_and_broken_data_still_give_an_axis() {
        for values in [vec![], vec![3.0], vec![f64::NAN], vec![f64::INFINITY, 1.0]] {
            let axis = Axis::new("x").fit(values.into_iter());
            assert!(axis.low < axis.high && !axis.ticks.is_empty());
        }
        let log = Axis::new("x").logarithmic().fit([-1.0, 0.0, 0.02, 350.0].into_iter());
        assert!((log.low - 0.01).abs() < 1e-12 && (log.high - 1000.0).abs() < 1e-9);
        assert_eq!(log.place(0.0), None);
    }
}
