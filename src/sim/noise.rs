//! Noise of a simulated measurement.

use crate::platform::Noise;
use crate::stats::Random;
use rand::Rng;
use rand_distr::{Distribution, Normal};

/// Draws the factor by which one repetition takes longer than in a quiet machine room.
#[derive(Debug, Clone)]
pub struct Disturbance {
    noise: Noise,
    random: Random,
    chances: u64,
}

impl Disturbance {
    /// A source of disturbance with a seed.
    pub fn new(noise: Noise, seed: u64) -> Disturbance {
        Disturbance { noise, random: crate::stats::random(seed), chances: 0 }
    }

    /// The next factor, 1 or more: `1 + |N(0, sigma)|`, times the outlier factor for the stated share of repetitions.
    pub fn factor(&mut self) -> f64 {
        let Noise { sigma, outlier_share, outlier_factor } = self.noise;
        let mut factor = 1.0;
        if sigma > 0.0 {
            // sigma is checked when a platform is read; an impossible one means no noise
            factor += Normal::new(0.0, sigma).map_or(0.0, |n| n.sample(&mut self.random).abs());
        }
        if outlier_share > 0.0 && self.random.random::<f64>() < outlier_share {
            factor *= outlier_factor.max(1.0);
        }
        factor
    }

    /// A share of events happens: is this one of them?
    pub fn happens(&mut self, share: f64) -> bool {
        self.chances += u64::from(share > 0.0);
        share > 0.0 && self.random.random::<f64>() < share
    }

    /// How many events might have happened so far: a run that adds none takes as long each time.
    pub fn chances(&self) -> u64 {
        self.chances
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn noise_has_the_stated_size_and_share_of_outliers() {
        let mut d = Disturbance::new(Noise { sigma: 0.05, outlier_share: 0.02, outlier_factor: 10.0 }, 7);
        let factors: Vec<f64> = (0..20_000).map(|_| d.factor()).collect();
        let outliers = factors.iter().filter(|&&f| f >= 9.0).count() as f64 / 20_000.0;
        let quiet: Vec<f64> = factors.iter().copied().filter(|&f| f < 9.0).collect();
        let mean = crate::stats::mean(&quiet).unwrap();
        assert!((outliers - 0.02).abs() < 0.004, "{outliers}");
        // the mean of |N(0, s)| is s sqrt(2/pi)
        assert!((mean - 1.0 - 0.05 * (2.0 / std::f64::consts::PI).sqrt()).abs() < 0.002, "{mean}");
        assert_eq!(Disturbance::new(Noise::default(), 1).factor(), 1.0);
    }
}
