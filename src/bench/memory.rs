//! What a contestant works on: filled before, checked after.

use crate::collective::{Collective, Shape};
use crate::schedule::Elements;
use crate::topology::Rank;
use crate::transport::Buffers;
use crate::transport::library::{Arguments, Operation};

/// Bytes of a number of double precision.
pub const NUMBER: usize = size_of::<f64>();

/// Bytes that can be looked at as numbers of double precision.
pub struct Words {
    words: Vec<f64>,
    len: usize,
}

impl Words {
    fn new(len: usize) -> Words {
        Words { words: vec![0.0; len.div_ceil(NUMBER)], len }
    }

    /// As numbers.
    pub fn numbers(&mut self) -> &mut [f64] {
        &mut self.words
    }

    /// As bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        // SAFETY: any bytes are valid, as many as the words hold at least, borrowed like them
        #[allow(unsafe_code)]
        unsafe {
            std::slice::from_raw_parts_mut(self.words.as_mut_ptr().cast(), self.len)
        }
    }
}

/// A rank's buffers, and what must lie in them.
pub struct Memory {
    pub input: Words,
    pub output: Words,
    /// What is combined.
    pub elements: Elements,
    combines: bool,
    ranks: usize,
    size: usize,
}

impl Memory {
    /// For a shape, as large as the collective's layout says.
    pub fn new(collective: &Collective, shape: &Shape, me: Rank) -> Memory {
        let layout = (collective.layout)(shape, me);
        Memory {
            input: Words::new(layout.input),
            output: Words::new(layout.output),
            elements: shape.elements,
            combines: collective.combines,
            ranks: shape.ranks,
            size: shape.bytes,
        }
    }

    /// What a collective is called with.
    pub fn arguments(&mut self, root: Rank) -> Arguments {
        let operation = self.combines.then(|| Operation::sum(self.elements));
        let input: &[u8] = self.input.bytes();
        Arguments { buffers: Buffers::of(input, self.output.bytes()), bytes: self.size, root, operation }
    }

    /// What ranks give, and where they get something, bytes of which each is wrong. A root gives a message; without one every rank gives numbers
    /// whose sum over all of them every rank knows.
    pub fn fill(&mut self, mark: usize, me: Rank, root: Option<Rank>) {
        if !self.combines {
            let gives = root == Some(me);
            self.output.bytes().iter_mut().enumerate().for_each(|(k, b)| *b = if gives { byte(k, mark) } else { !byte(k, mark) });
        } else if self.elements.bytes == NUMBER {
            self.input.numbers().iter_mut().enumerate().for_each(|(k, x)| *x = f64::from(byte(k, mark)) + me as f64);
            self.output.numbers().fill(f64::NAN);
        } else {
            self.input.bytes().iter_mut().enumerate().for_each(|(k, b)| *b = byte(k, mark).wrapping_add(me as u8));
            let wrong = |k| !self.sum_of_bytes(k, mark);
            let bytes: Vec<u8> = (0..self.output.len).map(wrong).collect();
            self.output.bytes().copy_from_slice(&bytes);
        }
    }

    /// True if the result is what it must be.
    pub fn is_right(&mut self, mark: usize) -> bool {
        if !self.combines {
            return self.output.bytes().iter().enumerate().all(|(k, &b)| b == byte(k, mark));
        }
        if self.elements.bytes == NUMBER {
            // sums of whole numbers are exact in any order
            let (ranks, among) = (self.ranks as f64, (self.ranks * (self.ranks - 1) / 2) as f64);
            return self.output.numbers().iter().enumerate().all(|(k, &x)| x == ranks * f64::from(byte(k, mark)) + among);
        }
        let sums: Vec<u8> = (0..self.output.len).map(|k| self.sum_of_bytes(k, mark)).collect();
        *self.output.bytes() == *sums
    }

    fn sum_of_bytes(&self, k: usize, mark: usize) -> u8 {
        (0..self.ranks).fold(0u8, |sum, rank| sum.wrapping_add(byte(k, mark).wrapping_add(rank as u8)))
    }
}

fn byte(place: usize, mark: usize) -> u8 {
    (place.wrapping_mul(31) ^ (place >> 8) ^ mark.wrapping_mul(37)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{allreduce, bcast};

    #[test]
    fn what_was_not_brought_about_is_wrong_and_what_was_is_right() {
        for (collective, bytes) in [(&bcast::COLLECTIVE, 13), (&allreduce::COLLECTIVE, 13), (&allreduce::COLLECTIVE, 48)] {
            let shape = collective.shape(3, 1, bytes);
            let mut all: Vec<Memory> = (0..3).map(|me| Memory::new(collective, &shape, me)).collect();
            for (me, memory) in all.iter_mut().enumerate() {
                memory.fill(5, me, collective.rooted.then_some(1));
                assert_eq!(memory.is_right(5), collective.rooted && me == 1);
            }
            let result: Vec<u8> = if !collective.combines {
                all[1].output.bytes().to_vec()
            } else if shape.elements.bytes == NUMBER {
                let sum = |k: usize, all: &mut [Memory]| all.iter_mut().map(|m| m.input.numbers()[k]).sum::<f64>();
                (0..bytes / NUMBER).flat_map(|k| sum(k, &mut all).to_ne_bytes()).collect()
            } else {
                (0..bytes).map(|k| all.iter_mut().fold(0u8, |sum, m| sum.wrapping_add(m.input.bytes()[k]))).collect()
            };
            for memory in &mut all {
                memory.output.bytes().copy_from_slice(&result);
                assert!(memory.is_right(5) && !memory.is_right(6));
            }
        }
    }
}
