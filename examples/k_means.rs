//! A mini-application: k-means clustering (Lloyd, 1982), points divided among processes, centres broadcast and sums reduced.
//!
//! ```text
//! COLLWISE_PROFILE=means.8.mpiP mpirun -n 8 target/release/examples/k_means [POINTS OF A PROCESS] [CENTRES] [ROUNDS]
//! ```
//!
//! Each round broadcasts all centres, by `adaptive_bcast` if `COLLWISE_POLICY` names a policy. The points are drawn around known
//! centres: the program fails if it does not find these.

#[path = "profiled/mod.rs"]
mod profiled;

use profiled::Profiled;

const DIMENSIONS: usize = 16;

/// A number in [-0.5, 0.5) that looks random, the same everywhere (splitmix64, Steele, Lea, Flood 2014).
fn noise(k: u64) -> f64 {
    let mut z = k.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((z ^ (z >> 31)) >> 11) as f64 / (1u64 << 53) as f64 - 0.5
}

/// A coordinate of a known centre: centres are far from each other.
fn centre(k: usize, dimension: usize) -> f64 {
    10.0 * noise((k * DIMENSIONS + dimension) as u64 + 1)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mpi = Profiled::start()?;
    let argument = |k: usize, or: usize| std::env::args().nth(k).map_or(Ok(or), |n| n.parse());
    let (points, centres, rounds) = (argument(1, 1000)?, argument(2, 64)?, argument(3, 10)?);
    if points < centres || centres == 0 {
        return Err(format!("{points} points of a process around {centres} centres: use at least as many points").into());
    }
    let first = (mpi.rank() * points) as u64;
    let point = |p: usize, d: usize| centre(p % centres, d) + 0.2 * noise(((first + p as u64) * DIMENSIONS as u64 + d as u64) | 1 << 40);
    let data: Vec<f64> = (0..points).flat_map(|p| (0..DIMENSIONS).map(move |d| (p, d))).map(|(p, d)| point(p, d)).collect();

    // process 0 begins with its first points, which are near each of the centres
    let mut found = data[..centres * DIMENSIONS].to_vec();
    for _ in 0..rounds {
        mpi.broadcast(&mut found)?;
        // sums of the points nearest to each centre, and their number
        let mut sums = vec![0.0; centres * (DIMENSIONS + 1)];
        for p in data.chunks_exact(DIMENSIONS) {
            let distance = |c: &[f64]| c.iter().zip(p).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
            let distances = found.chunks_exact(DIMENSIONS).map(distance).enumerate();
            let nearest = distances.min_by(|a, b| a.1.total_cmp(&b.1)).map_or(0, |d| d.0);
            let sum = &mut sums[nearest * (DIMENSIONS + 1)..][..DIMENSIONS + 1];
            sum.iter_mut().zip(p.iter().chain([&1.0])).for_each(|(s, x)| *s += x);
        }
        mpi.computed(3.0 * (points * centres * DIMENSIONS) as f64);
        mpi.reduce(&mut sums);
        if mpi.rank() == 0 {
            for (c, sum) in found.chunks_exact_mut(DIMENSIONS).zip(sums.chunks_exact(DIMENSIONS + 1)) {
                c.iter_mut().zip(sum).for_each(|(c, s)| *c = s / sum[DIMENSIONS].max(1.0));
            }
        }
    }
    mpi.broadcast(&mut found)?;
    let distance = |c: usize, k: usize| (0..DIMENSIONS).map(|d| (found[c * DIMENSIONS + d] - centre(k, d)).powi(2)).sum::<f64>().sqrt();
    let worst = (0..centres).map(|k| distance(k, k)).fold(0.0, f64::max);
    if mpi.rank() == 0 {
        println!("{} processes, {points} points each, {centres} centres, {rounds} rounds: error {worst:.1e}", mpi.size());
    }
    // a mean of n points, each coordinate within 0.1
    if worst > 0.1 * (DIMENSIONS as f64).sqrt() {
        return Err(format!("the centres are wrong by {worst:e}").into());
    }
    mpi.finish()
}
