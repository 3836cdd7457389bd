//! Randomness by name: a seed and a stable name give a stream.
//!
//! Adding a flow, a port or a controller draws from a stream of its own, so that it never reshuffles the others. The
//! generators are named algorithms with fixed outputs, the same on every machine and in every version.

#![allow(clippy::cast_possible_truncation, reason = "the high half of a product of two u64 is a u64")]

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{Rng, SeedableRng};

/// A stream of random integers: ChaCha with 8 rounds, keyed by the run's seed, its stream number a hash of the name.
#[derive(Clone, Debug)]
pub struct Stream(ChaCha8Rng);

impl Stream {
    /// The stream called `name` of the run with this `seed`.
    pub fn named(seed: u64, name: &str) -> Stream {
        let mut generator = ChaCha8Rng::seed_from_u64(seed);
        generator.set_stream(fnv1a(name));
        Stream(generator)
    }

    /// Uniform over all of `u64`.
    pub fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform over `0..bound`; `bound` is at least 1. The bias of the multiply-shift method is below `bound`/2⁶⁴.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// A small generator seeded from this stream, for one of very many objects.
    pub fn small(&mut self) -> SmallStream {
        SmallStream(self.next_u64())
    }
}

/// Eight bytes of state, for what exists once per connection or port (SplitMix64, [Steele, Lea, Flood 2014]).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SmallStream(u64);

impl SmallStream {
    /// A generator with this state.
    pub const fn new(state: u64) -> SmallStream {
        SmallStream(state)
    }

    /// Uniform over all of `u64`.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// Uniform over `0..bound`; `bound` is at least 1.
    pub fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.next_u64()) * u128::from(bound)) >> 64) as u64
    }
}

/// SplitMix64's finaliser: a bijection of `u64` in which every input bit moves every output bit. Hashes flows onto paths.
pub const fn mix(value: u64) -> u64 {
    let value = (value ^ (value >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

/// The 64-bit FNV-1a hash of a name: stable for ever, unlike the standard library's.
const fn fnv1a(name: &str) -> u64 {
    let bytes = name.as_bytes();
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut i = 0;
    while i < bytes.len() {
        hash = (hash ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
        i += 1;
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_of_names_is_the_published_fnv1a() {
        assert_eq!(fnv1a(""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a("a"), 0xaf63_dc4c_8601_ec8c);
        assert_eq!(fnv1a("foobar"), 0x8594_4171_f739_67e8);
    }

    #[test]
    fn splitmix_gives_its_published_first_outputs() {
        let mut stream = SmallStream::new(1_234_567);
        assert_eq!(stream.next_u64(), 6_457_827_717_110_365_317);
        assert_eq!(stream.next_u64(), 3_203_168_211_198_807_973);
    }

    #[test]
    fn streams_of_one_seed_differ_by_name_and_repeat_by_name() {
        let first = |seed, name| Stream::named(seed, name).next_u64();
        assert_eq!(first(7, "traffic/0"), first(7, "traffic/0"));
        assert_ne!(first(7, "traffic/0"), first(7, "traffic/1"));
        assert_ne!(first(7, "traffic/0"), first(8, "traffic/0"));
    }

    #[test]
    fn below_stays_below_and_reaches_both_ends() {
        let mut stream = Stream::named(1, "test");
        let mut seen = [false; 8];
        for _ in 0..1_000 {
            seen[usize::try_from(stream.below(8)).unwrap()] = true;
        }
        assert_eq!(seen, [true; 8]);
    }
}
