//! A mini-application: two-dimensional fast Fourier transforms, rows divided among processes, transposed by all-to-all.
//!
//! ```text
//! COLLWISE_PROFILE=fft.8.mpiP mpirun -n 8 target/release/examples/fourier_2d [POINTS A SIDE] [ROUNDS]
//! ```
//!
//! Each round transforms there and back. The input holds three waves: the program fails if the spectrum is not theirs, or if the way
//! back does not give the input again.

#[path = "profiled/mod.rs"]
mod profiled;

use profiled::Profiled;
use std::f64::consts::TAU;

/// So many rows are transposed at once.
const ROWS_AT_ONCE: usize = 8;

/// Waves: their numbers along both sides, and how high they are.
const WAVES: [(usize, usize, f64); 3] = [(1, 2, 1.0), (3, 0, 0.5), (5, 7, 0.25)];

/// Transforms one row in place (Cooley, Tukey 1965, radix 2): complex numbers as pairs; `roots` are those of unity, the sign of the
/// exponent in them.
fn transform(row: &mut [f64], roots: &[f64]) {
    let n = row.len() / 2;
    let bits = n.trailing_zeros();
    for k in 0..n {
        let other = if bits == 0 { 0 } else { k.reverse_bits() >> (usize::BITS - bits) };
        if other > k {
            row.swap(2 * k, 2 * other);
            row.swap(2 * k + 1, 2 * other + 1);
        }
    }
    let mut half = 1;
    while half < n {
        let stride = n / (2 * half);
        for block in (0..n).step_by(2 * half) {
            for k in 0..half {
                let (c, s) = (roots[2 * k * stride], roots[2 * k * stride + 1]);
                let (a, b) = (2 * (block + k), 2 * (block + k + half));
                let (re, im) = (row[b] * c - row[b + 1] * s, row[b] * s + row[b + 1] * c);
                (row[b], row[b + 1]) = (row[a] - re, row[a + 1] - im);
                (row[a], row[a + 1]) = (row[a] + re, row[a + 1] + im);
            }
        }
        half *= 2;
    }
}

struct Square<'a> {
    mpi: &'a Profiled,
    side: usize,
}

impl Square<'_> {
    /// The rows of a process, from and to.
    fn rows(&self, rank: usize) -> (usize, usize) {
        (rank * self.side / self.mpi.size(), (rank + 1) * self.side / self.mpi.size())
    }

    fn count(&self, rank: usize) -> usize {
        self.rows(rank).1 - self.rows(rank).0
    }

    /// Transforms all rows, and lays columns out as rows; `packed` and `received` are as long as the data.
    fn pass(&self, data: &mut [f64], roots: &[f64], packed: &mut [f64], received: &mut [f64]) {
        let (side, own) = (self.side, self.count(self.mpi.rank()));
        data.chunks_exact_mut(2 * side).for_each(|row| transform(row, roots));
        self.mpi.computed(5.0 * (own * side) as f64 * (side as f64).log2());
        // for each process: the columns that will be its rows, column by column
        let (mut parts, mut their_parts) = (Vec::new(), Vec::new());
        let (mut ours, mut theirs) = (0, 0);
        for rank in 0..self.mpi.size() {
            let (from, to) = self.rows(rank);
            // a few rows at a time: all of them, a power of two apart, would meet in a few lines of a cache
            for first in (0..own).step_by(ROWS_AT_ONCE) {
                for column in from..to {
                    for row in first..own.min(first + ROWS_AT_ONCE) {
                        let place = ours + 2 * ((column - from) * own + row);
                        packed[place..place + 2].copy_from_slice(&data[2 * (row * side + column)..][..2]);
                    }
                }
            }
            let count = 2 * own * (to - from);
            parts.push((count, ours));
            their_parts.push((count, theirs));
            ours += count;
            theirs += count;
        }
        self.mpi.all_to_all(packed, &parts, received, &their_parts);
        for (rank, (_, place)) in their_parts.iter().enumerate() {
            let (from, to) = self.rows(rank);
            for row in 0..own {
                let piece = &received[place + 2 * row * (to - from)..][..2 * (to - from)];
                data[2 * (row * side + from)..2 * (row * side + to)].copy_from_slice(piece);
            }
        }
    }
}

/// The roots of unity, their exponents with this sign.
fn roots(side: usize, sign: f64) -> Vec<f64> {
    (0..side)
        .flat_map(|k| {
            let angle = sign * TAU * k as f64 / side as f64;
            [angle.cos(), angle.sin()]
        })
        .collect()
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mpi = Profiled::start()?;
    let argument = |k: usize, or: usize| std::env::args().nth(k).map_or(Ok(or), |n| n.parse());
    let (side, rounds) = (argument(1, 512)?, argument(2, 10)?);
    let (rank, size) = (mpi.rank(), mpi.size());
    if !side.is_power_of_two() || side < size.max(16) {
        return Err(format!("a side of {side} points: use a power of two, at least 16 and the {size} processes").into());
    }
    let square = Square { mpi: &mpi, side };
    let (from, to) = square.rows(rank);
    let wave = |row: usize, column: usize| -> f64 {
        WAVES.iter().map(|&(a, b, high)| high * (TAU * (a * row + b * column) as f64 / side as f64).cos()).sum()
    };
    let input: Vec<f64> = (from..to).flat_map(|row| (0..side).flat_map(move |column| [wave(row, column), 0.0])).collect();
    let (there, back) = (roots(side, -1.0), roots(side, 1.0));
    let mut data = input.clone();
    let (mut packed, mut received) = (vec![0.0; data.len()], vec![0.0; data.len()]);
    let mut pass = |data: &mut [f64], roots: &[f64]| square.pass(data, roots, &mut packed, &mut received);
    let (mut worst, scale) = (0.0f64, 1.0 / (side * side) as f64);
    for round in 0..rounds {
        pass(&mut data, &there);
        pass(&mut data, &there);
        if round == 0 {
            worst = worst.max(spectrum_error(&data, from, side));
        }
        pass(&mut data, &back);
        pass(&mut data, &back);
        data.iter_mut().for_each(|x| *x *= scale);
        mpi.computed(2.0 * ((to - from) * side) as f64);
    }
    worst = data.iter().zip(&input).fold(worst, |w, (a, b)| w.max((a - b).abs()));
    let wrong = mpi.sum(if worst < 1e-9 { 0.0 } else { 1.0 });
    if rank == 0 {
        println!("{side}x{side}, {size} processes, {rounds} rounds: error {worst:.1e} on rank 0");
    }
    if wrong > 0.0 {
        return Err(format!("the transform is wrong on {wrong} processes; by {worst:e} on rank {rank}").into());
    }
    mpi.finish()
}

/// How far the spectrum is from that of the waves: each stands at its two numbers and at their negatives, half as high.
fn spectrum_error(data: &[f64], from: usize, side: usize) -> f64 {
    let mut worst = 0.0f64;
    for (k, value) in data.chunks_exact(2).enumerate() {
        let (row, column) = (from + k / side, k % side);
        let is = |a: usize, b: usize| row == a && column == b;
        let wanted: f64 =
            WAVES.iter().map(|&(a, b, high)| if is(a, b) || is((side - a) % side, (side - b) % side) { high / 2.0 } else { 0.0 }).sum();
        let scale = 1.0 / (side * side) as f64;
        worst = worst.max((value[0] * scale - wanted).abs()).max((value[1] * scale).abs());
    }
    worst
}
