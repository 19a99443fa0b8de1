//! What a contestant works on: filled before, checked after.

use crate::collective::{Collective, Shape};
use crate::schedule::{Buffer, Elements, Layout, Piece};
use crate::topology::Rank;
use crate::transport::Buffers;
use crate::transport::library::{Arguments, Operation};

/// Bytes of a number of double precision.
pub const NUMBER: usize = size_of::<f64>();

/// Bytes where numbers of double precision may lie.
pub struct Words {
    words: Vec<f64>,
    len: usize,
}

impl Words {
    fn new(len: usize) -> Words {
        Words { words: vec![0.0; len.div_ceil(NUMBER)], len }
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
    /// How long they are.
    pub layout: Layout,
    combines: bool,
    size: usize,
    root: Rank,
    /// What this rank gives, and what it must get.
    before: Vec<Piece>,
    after: Vec<Piece>,
}

impl Memory {
    /// For a shape, as large as the collective's layout says.
    pub fn new(collective: &Collective, shape: &Shape, me: Rank) -> Memory {
        let mut specification = (collective.specification)(shape);
        let layout = (collective.layout)(shape, me);
        Memory {
            input: Words::new(layout.input),
            output: Words::new(layout.output),
            elements: shape.elements,
            layout,
            combines: collective.combines,
            size: shape.bytes,
            root: shape.root,
            before: specification.before.swap_remove(me),
            after: specification.after.swap_remove(me),
        }
    }

    /// What a collective is called with.
    pub fn arguments(&mut self) -> Arguments {
        let operation = self.combines.then(|| Operation::measured(self.elements));
        let input: &[u8] = self.input.bytes();
        Arguments { buffers: Buffers::of(input, self.output.bytes()), bytes: self.size, root: self.root, operation }
    }

    /// What this rank gives, and where it gets something, bytes of which some of each number are wrong. All ranks know what all give.
    pub fn fill(&mut self, mark: usize) {
        let Memory { input, output, before, after, .. } = self;
        for piece in after.iter() {
            let wrong: Vec<u8> = values(self.elements, piece, mark).iter().map(|byte| !byte).collect();
            output.bytes()[piece.at..piece.at + piece.len].copy_from_slice(&wrong);
        }
        for piece in before.iter() {
            let buffer = if piece.buffer == Buffer::Input { &mut *input } else { &mut *output };
            buffer.bytes()[piece.at..piece.at + piece.len].copy_from_slice(&values(self.elements, piece, mark));
        }
    }

    /// True if the result is what it must be.
    pub fn is_right(&mut self, mark: usize) -> bool {
        let Memory { output, after, elements, .. } = self;
        after.iter().all(|piece| output.bytes()[piece.at..piece.at + piece.len] == values(*elements, piece, mark))
    }
}

/// What lies in the bytes of a piece.
fn values(elements: Elements, piece: &Piece, mark: usize) -> Vec<u8> {
    let ranks: Vec<Rank> = piece.of.ranks().collect();
    if elements.bytes == NUMBER {
        // sums of whole numbers are exact in any order
        let among = ranks.iter().sum::<usize>() as f64;
        let number = |k: usize| ranks.len() as f64 * f64::from(byte(k, mark)) + among;
        return (piece.from / NUMBER..(piece.from + piece.len) / NUMBER).flat_map(|k| number(k).to_ne_bytes()).collect();
    }
    // of one rank another byte for each of another's
    let of_rank = |k: usize, rank: Rank| byte(k, mark).wrapping_mul((2 * rank + 1) as u8) ^ (rank * 59) as u8;
    (piece.from..piece.from + piece.len).map(|k| ranks.iter().fold(0, |all, &rank| all ^ of_rank(k, rank))).collect()
}

fn byte(place: usize, mark: usize) -> u8 {
    (place.wrapping_mul(31) ^ (place >> 8) ^ mark.wrapping_mul(37)) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::collective::{COLLECTIVES, Parameters};
    use crate::transport::threads::run_with;

    #[test]
    fn what_was_not_brought_about_is_wrong_and_what_was_is_right() {
        for (collective, bytes) in COLLECTIVES.iter().copied().filter(|c| c.sized()).flat_map(|c| [(c, 13), (c, 48)]) {
            let shape = collective.shape(3, 1, bytes);
            let shape = Shape { root: if collective.rooted { 1 } else { 0 }, ..shape };
            let mut all: Vec<Memory> = (0..3).map(|me| Memory::new(collective, &shape, me)).collect();
            for memory in &mut all {
                memory.fill(5);
                // who gets nothing has it already, and who gives the result
                let has = memory.after.iter().all(|after| memory.before.contains(after));
                assert_eq!(memory.is_right(5), has, "{}", collective.name);
            }
            let inputs: Vec<Vec<u8>> = all.iter_mut().map(|m| m.input.bytes().to_vec()).collect();
            let mut outputs: Vec<Vec<u8>> = all.iter_mut().map(|m| m.output.bytes().to_vec()).collect();
            let sum = |left: &[u8], into: &mut [u8]| {
                if shape.elements.bytes == NUMBER {
                    for (x, y) in into.chunks_exact_mut(NUMBER).zip(left.chunks_exact(NUMBER)) {
                        let number = |b: &[u8]| f64::from_ne_bytes(b.try_into().unwrap());
                        x.copy_from_slice(&(number(x) + number(y)).to_ne_bytes());
                    }
                } else {
                    into.iter_mut().zip(left).for_each(|(x, y)| *x ^= y);
                }
                Ok(())
            };
            let schedule = collective.fallback.schedule(&shape, &Parameters::default()).unwrap();
            run_with(&schedule, &inputs, &mut outputs, sum).unwrap();
            for (memory, output) in all.iter_mut().zip(&outputs) {
                memory.output.bytes().copy_from_slice(output);
                assert!(memory.is_right(5) && (memory.after.is_empty() || !memory.is_right(6)), "{}", collective.name);
            }
        }
    }
}
