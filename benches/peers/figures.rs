//! Medians and quartiles, and ratios of what was measured side by side.

use std::time::Duration;

pub fn millis(length: Duration) -> f64 {
    length.as_secs_f64() * 1e3
}

/// Measured values of one program in one scenario, in the order of the rounds.
#[derive(Clone, Default, Debug)]
pub struct Series(pub Vec<f64>);

/// The quartiles.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Spread {
    pub low: f64,
    pub median: f64,
    pub high: f64,
}

impl Series {
    pub fn spread(&self) -> Option<Spread> {
        let at = |share| self.quantile(share);
        Some(Spread { low: at(0.25)?, median: at(0.5)?, high: at(0.75)? })
    }

    pub fn quantile(&self, share: f64) -> Option<f64> {
        let mut sorted = self.0.clone();
        sorted.sort_by(f64::total_cmp);
        quantile(&sorted, share)
    }

    /// Round by round, so that what disturbs a round disturbs both sides.
    pub fn ratio_to(&self, other: &Self) -> Option<Spread> {
        Self(self.0.iter().zip(&other.0).map(|(ours, theirs)| ours / theirs).collect()).spread()
    }
}

/// Between the two values that are next to it.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "a small index"
)]
fn quantile(sorted: &[f64], share: f64) -> Option<f64> {
    let at = share * sorted.len().checked_sub(1)? as f64;
    let (low, high) = (sorted.get(at.floor() as usize)?, sorted.get(at.ceil() as usize)?);
    Some(low + (high - low) * at.fract())
}
