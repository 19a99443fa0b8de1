//! What the router counts.

use std::fmt::Write;

/// Traffic between two groups.
#[derive(Clone, Copy, Default)]
pub struct Flow {
    /// Packets passed on.
    pub packets: u64,
    /// Their bytes on the wire.
    pub bytes: u64,
    /// Packets dropped since the queue was full.
    pub drops: u64,
}

/// How late packets were given out, in buckets of powers of two of a microsecond.
#[derive(Default)]
pub struct Lateness {
    n: u64,
    sum_ns: u64,
    max_ns: u64,
    buckets: [u64; 24],
}

impl Lateness {
    /// Notes one packet.
    pub fn add(&mut self, ns: u64) {
        self.n += 1;
        self.sum_ns += ns;
        self.max_ns = self.max_ns.max(ns);
        let bucket = (64 - (ns / 1000).leading_zeros() as usize).min(23);
        self.buckets[bucket] += 1;
    }

    /// The upper edge, in microseconds, of the bucket that holds a quantile.
    fn quantile_us(&self, q: f64) -> u64 {
        let want = (self.n as f64 * q).ceil() as u64;
        let mut count = 0;
        let found = self.buckets.iter().position(|b| {
            count += b;
            count >= want
        });
        1 << found.unwrap_or(0)
    }

    /// In words.
    pub fn text(&self) -> String {
        let mut out = format!("late: {} packets, mean {:.2} us", self.n, self.sum_ns as f64 / 1e3 / self.n.max(1) as f64);
        for (name, q) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
            let _ = write!(out, ", {name} <= {} us", self.quantile_us(q));
        }
        out + &format!(", max {:.1} us", self.max_ns as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_upper_edges_of_buckets() {
        let mut late = Lateness::default();
        (0..99).for_each(|_| late.add(500));
        late.add(70_000);
        assert_eq!((late.quantile_us(0.5), late.quantile_us(0.99), late.quantile_us(0.999)), (1, 1, 128));
    }
}
