//! A mini-application: conjugate gradients for Poisson's equation on a square, five-point stencil, rows divided among processes.
//!
//! ```text
//! COLLWISE_PROFILE=cg.8.mpiP mpirun -n 8 target/release/examples/conjugate_gradient [POINTS A SIDE] [ITERATIONS]
//! ```
//!
//! Each iteration exchanges a row with both neighbours and sums up two numbers. The right-hand side is made from a known solution:
//! the program fails if it does not find that again (with iterations enough), or if the residual does not fall.

#[path = "profiled/mod.rs"]
mod profiled;

use profiled::Profiled;

/// The solution that the right-hand side is made of, at a point of the unit square: a sine would be an eigenvector, and found at once.
fn solution(x: f64, y: f64) -> f64 {
    x * (1.0 - x) * y * (1.0 - y) * (1.0 + x + 2.0 * y * y) * 16.0
}

/// Rows of a square, with one more above and below.
struct Strip<'a> {
    mpi: &'a Profiled,
    side: usize,
    rows: usize,
}

impl Strip<'_> {
    fn zeros(&self) -> Vec<f64> {
        vec![0.0; (self.rows + 2) * self.side]
    }

    fn inner<'v>(&self, v: &'v [f64]) -> &'v [f64] {
        &v[self.side..(self.rows + 1) * self.side]
    }

    /// Fetches the neighbours' rows.
    fn exchange(&self, v: &mut [f64]) {
        let (rank, side, end) = (self.mpi.rank(), self.side, (self.rows + 1) * self.side);
        let (above, below) = (rank.checked_sub(1), Some(rank + 1).filter(|r| *r < self.mpi.size()));
        let (first, last) = (v[side..2 * side].to_vec(), v[end - side..end].to_vec());
        self.mpi.exchange(above, &first, below, &mut v[end..]);
        self.mpi.exchange(below, &last, above, &mut v[..side]);
    }

    /// out = A v
    fn apply(&self, v: &mut [f64], out: &mut [f64]) {
        self.exchange(v);
        let side = self.side;
        for row in 1..=self.rows {
            for column in 0..side {
                let k = row * side + column;
                let west = if column > 0 { v[k - 1] } else { 0.0 };
                let east = if column + 1 < side { v[k + 1] } else { 0.0 };
                out[k] = 4.0 * v[k] - west - east - v[k - side] - v[k + side];
            }
        }
        self.mpi.computed(6.0 * (self.rows * side) as f64);
    }

    fn dot(&self, a: &[f64], b: &[f64]) -> f64 {
        let own: f64 = self.inner(a).iter().zip(self.inner(b)).map(|(x, y)| x * y).sum();
        self.mpi.computed(2.0 * (self.rows * self.side) as f64);
        self.mpi.sum(own)
    }

    /// a += f b
    fn add(&self, a: &mut [f64], f: f64, b: &[f64]) {
        a.iter_mut().zip(b).for_each(|(x, y)| *x += f * y);
        self.mpi.computed(2.0 * (self.rows * self.side) as f64);
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mpi = Profiled::start()?;
    let argument = |k: usize, or: usize| std::env::args().nth(k).map_or(Ok(or), |n| n.parse());
    let (side, iterations) = (argument(1, 512)?, argument(2, 100)?);
    let (rank, size) = (mpi.rank(), mpi.size());
    if side < size {
        return Err(format!("a square of {side} rows cannot be divided among {size} processes").into());
    }
    let start = rank * side / size;
    let strip = Strip { mpi: &mpi, side, rows: (rank + 1) * side / size - start };

    let step = 1.0 / (side + 1) as f64;
    let mut wanted = strip.zeros();
    for row in 0..strip.rows {
        for column in 0..side {
            wanted[(row + 1) * side + column] = solution((column + 1) as f64 * step, (start + row + 1) as f64 * step);
        }
    }
    let mut b = strip.zeros();
    strip.apply(&mut wanted, &mut b);
    let (mut x, mut r, mut p, mut q) = (strip.zeros(), b.clone(), b.clone(), strip.zeros());
    let first = strip.dot(&r, &r);
    let mut rr = first;
    let mut done = 0;
    while done < iterations && rr > first * 1e-24 {
        strip.apply(&mut p, &mut q);
        let alpha = rr / strip.dot(&p, &q);
        strip.add(&mut x, alpha, &p);
        strip.add(&mut r, -alpha, &q);
        let next = strip.dot(&r, &r);
        let beta = next / rr;
        p.iter_mut().zip(&r).for_each(|(p, r)| *p = r + beta * *p);
        mpi.computed(2.0 * (strip.rows * side) as f64);
        (rr, done) = (next, done + 1);
    }
    // the energy norm of the error falls in each iteration (Hestenes, Stiefel 1952), and so does this scalar product of b and x rise to
    // that of b and the solution
    let (found, all) = (strip.dot(&b, &x), strip.dot(&b, &wanted));
    let mut error = x.clone();
    strip.add(&mut error, -1.0, &wanted);
    let distance = (strip.dot(&error, &error) / strip.dot(&wanted, &wanted)).sqrt();
    if rank == 0 {
        println!("{side}x{side}, {size} processes, {done} iterations: residual {:.1e}, error {distance:.1e}", (rr / first).sqrt());
    }
    if !(found > 0.0 && found <= all * (1.0 + 1e-9) && distance < 1.0) || (rr <= first * 1e-24 && distance > 1e-6) {
        return Err(format!("the solution is wrong: error {distance:e}").into());
    }
    mpi.finish()
}
