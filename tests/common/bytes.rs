//! What lies in the buffers of tests.

/// The byte at a place of a message.
pub fn byte(place: usize, mark: usize) -> u8 {
    (place.wrapping_mul(2_654_435_761) >> 7) as u8 ^ (mark.wrapping_mul(37)) as u8
}
