//! What is kept as long as there is room: where there is none, the oldest goes, one by one.

use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::hash::Hash;

/// Values by their keys, of which all together weigh no more than they may, but for one.
#[derive(Debug)]
pub struct Oldest<K, V> {
    values: FxHashMap<K, (V, usize)>,
    /// The keys, the oldest first.
    order: VecDeque<K>,
    /// What all weigh together.
    weight: usize,
    most: usize,
}

impl<K: Copy + Eq + Hash, V> Oldest<K, V> {
    /// None yet, of which all may weigh so much.
    pub fn new(most: usize) -> Oldest<K, V> {
        Oldest { values: FxHashMap::default(), order: VecDeque::new(), weight: 0, most }
    }

    /// The value of a key, if it is still there.
    pub fn get(&self, key: &K) -> Option<&V> {
        self.values.get(key).map(|(value, _)| value)
    }

    /// The value of a key; one is made, weighed and kept if there is none.
    ///
    /// # Errors
    /// Of making it.
    pub fn get_or_keep<E>(&mut self, key: K, weight: impl Fn(&V) -> usize, make: impl FnOnce() -> Result<V, E>) -> Result<&V, E> {
        if !self.values.contains_key(&key) {
            let value = make()?;
            let weight = weight(&value);
            self.keep(key, value, weight);
        }
        Ok(&self.values[&key].0)
    }

    /// Keeps a value of a key that there is not, and lets the oldest others go while all are too heavy.
    pub fn keep(&mut self, key: K, value: V, weight: usize) {
        self.weight += weight;
        while self.weight > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.weight -= self.values.remove(&oldest).map_or(0, |(_, weight)| weight);
        }
        self.order.push_back(key);
        self.values.insert(key, (value, weight));
    }

    /// Lets all go.
    pub fn clear(&mut self) {
        *self = Oldest::new(self.most);
    }

    /// What all weigh together.
    pub fn weight(&self) -> usize {
        self.weight
    }
}

#[cfg(test)]
mod tests {
    use super::Oldest;

    #[test]
    fn the_oldest_go_one_by_one() {
        let mut kept = Oldest::new(10);
        (0..4).for_each(|k| kept.keep(k, k * 10, 3));
        assert_eq!((0..4).map(|k| kept.get(&k).copied()).collect::<Vec<_>>(), [None, Some(10), Some(20), Some(30)]);
        assert_eq!(kept.get_or_keep(3, |_| 3, || Err("made anew")), Ok(&30));
        // one that is too heavy alone stays until the next comes
        assert_eq!(kept.get_or_keep(4, |_| 11, || Ok::<i32, ()>(40)), Ok(&40));
        assert_eq!((kept.get(&3), kept.get(&4), kept.weight()), (None, Some(&40), 11));
        assert_eq!(kept.get_or_keep(5, |_| 1, || Err("no")), Err("no"));
        assert_eq!((kept.get(&4), kept.get(&5), kept.weight()), (Some(&40), None, 11));
        kept.keep(5, 50, 1);
        assert_eq!((kept.get(&4), kept.get(&5), kept.weight()), (None, Some(&50), 1));
        kept.clear();
        assert_eq!((kept.get(&5), kept.weight()), (None, 0));
    }
}
