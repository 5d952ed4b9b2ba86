//! Counter-based random numbers: every draw is a pure function of `(seed, stream, index)`.
//!
//! Nothing in this project keeps a generator's state on disk or shares a generator between threads:
//! whoever needs randomness names its seed, its purpose (a [`Stream`]) and its position, and gets the same
//! numbers on any machine, with any number of threads, wherever a run was interrupted.
//!
//! The generator is Philox4x32-10 (Salmon et al., 2011). The 64-bit seed is the key; the 128-bit counter holds
//! the stream's hash, the index and the block number.

/// What a sequence of random numbers is for. Two purposes never share numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream(u32);

impl Stream {
    /// The stream named `name`, for example `"latents"` or `"epoch-order"`.
    pub const fn new(name: &str) -> Self {
        let hash = fnv1a(name.as_bytes());
        Self((hash ^ (hash >> 32)) as u32)
    }
}

/// 64-bit FNV-1a: turns names and ids into indices that do not depend on their position in a list.
pub const fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = Fnv1a::new();
    hash.add(bytes);
    hash.value()
}

/// 64-bit FNV-1a of bytes that come piece by piece.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fnv1a(u64);

impl Fnv1a {
    /// The hash of nothing.
    pub const fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    /// Goes on with `bytes`.
    pub const fn add(&mut self, bytes: &[u8]) {
        let mut i = 0;
        while i < bytes.len() {
            self.0 = (self.0 ^ bytes[i] as u64).wrapping_mul(0x0000_0100_0000_01b3);
            i += 1;
        }
    }

    /// The hash of all bytes so far.
    pub const fn value(self) -> u64 {
        self.0
    }
}

impl Default for Fnv1a {
    fn default() -> Self {
        Self::new()
    }
}

/// One Philox4x32-10 block: 128 random bits for a counter and a key.
pub fn philox(mut counter: [u32; 4], mut key: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            key = [key[0].wrapping_add(0x9E37_79B9), key[1].wrapping_add(0xBB67_AE85)];
        }
        let a = u64::from(counter[0]) * 0xD251_1F53;
        let b = u64::from(counter[2]) * 0xCD9E_8D57;
        counter = [
            (b >> 32) as u32 ^ counter[1] ^ key[0],
            b as u32,
            (a >> 32) as u32 ^ counter[3] ^ key[1],
            a as u32,
        ];
    }
    counter
}

/// The random numbers of one `(seed, stream, index)`, drawn in order.
#[derive(Clone, Debug)]
pub struct Random {
    key: [u32; 2],
    stream: u32,
    index: [u32; 2],
    block: u32,
    buffer: [u32; 4],
    used: usize,
}

impl Random {
    /// The sequence at `index` of `stream` under `seed`.
    pub fn new(seed: u64, stream: Stream, index: u64) -> Self {
        Self {
            key: [seed as u32, (seed >> 32) as u32],
            stream: stream.0,
            index: [index as u32, (index >> 32) as u32],
            block: 0,
            buffer: [0; 4],
            used: 4,
        }
    }

    /// Uniform 32 random bits.
    pub fn next_u32(&mut self) -> u32 {
        if self.used == 4 {
            self.buffer = philox([self.block, self.stream, self.index[0], self.index[1]], self.key);
            self.block = self.block.wrapping_add(1);
            self.used = 0;
        }
        self.used += 1;
        self.buffer[self.used - 1]
    }

    /// Uniform 64 random bits.
    pub fn next_u64(&mut self) -> u64 {
        u64::from(self.next_u32()) << 32 | u64::from(self.next_u32())
    }

    /// Uniform in `[0, 1)`, 53 bits.
    pub fn uniform(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Uniform in `[low, high)`.
    pub fn range(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.uniform()
    }

    /// Uniform integer in `0..bound` without bias; `bound` must be positive.
    pub fn below(&mut self, bound: u64) -> u64 {
        debug_assert!(bound > 0);
        let reject_from = u64::MAX - u64::MAX % bound;
        loop {
            let bits = self.next_u64();
            if bits < reject_from {
                return bits % bound;
            }
        }
    }

    /// Standard normal (Box-Muller, cosine branch).
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.uniform()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.uniform()).cos()
    }

    /// Shuffles `items` in place (Fisher-Yates).
    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for last in (1..items.len()).rev() {
            items.swap(last, self.below(last as u64 + 1) as usize);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fnv1a_agrees_with_the_published_values_in_any_pieces() {
        assert_eq!(fnv1a(b""), 0xcbf2_9ce4_8422_2325);
        assert_eq!(fnv1a(b"foobar"), 0x8594_4171_f739_67e8);
        let mut pieces = Fnv1a::new();
        [&b"f"[..], b"", b"oobar"].iter().for_each(|piece| pieces.add(piece));
        assert_eq!(pieces.value(), fnv1a(b"foobar"));
    }

    #[test]
    fn philox_agrees_with_the_published_test_vectors() {
        assert_eq!(philox([0; 4], [0; 2]), [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        assert_eq!(
            philox([u32::MAX; 4], [u32::MAX; 2]),
            [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]
        );
        assert_eq!(
            philox([0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344], [0xa409_3822, 0x299f_31d0]),
            [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]
        );
    }

    #[test]
    fn sequences_depend_on_every_part_of_their_position() {
        let draw = |seed, name, index| Random::new(seed, Stream::new(name), index).next_u64();
        let base = draw(1, "a", 1);
        assert_eq!(base, draw(1, "a", 1));
        assert!([draw(2, "a", 1), draw(1, "b", 1), draw(1, "a", 2)].iter().all(|&other| other != base));
    }

    #[test]
    fn uniform_and_normal_have_their_moments() {
        let mut random = Random::new(7, Stream::new("moments"), 0);
        let n = 200_000;
        let (mut mean, mut normal_mean, mut normal_square) = (0.0, 0.0, 0.0);
        for _ in 0..n {
            mean += random.uniform() / n as f64;
            let z = random.normal();
            normal_mean += z / n as f64;
            normal_square += z * z / n as f64;
        }
        assert!((mean - 0.5).abs() < 3e-3 && normal_mean.abs() < 1e-2 && (normal_square - 1.0).abs() < 2e-2);
    }

    #[test]
    fn every_order_is_equally_likely() {
        let mut counts = std::collections::HashMap::new();
        for index in 0..12_000 {
            let mut items = [0, 1, 2];
            Random::new(5, Stream::new("orders"), index).shuffle(&mut items);
            *counts.entry(items).or_insert(0) += 1;
        }
        assert_eq!(counts.len(), 6);
        assert!(counts.values().all(|count| (1850..2150).contains(count)), "{counts:?}");
    }

    #[test]
    fn a_shuffle_is_a_permutation() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(3, Stream::new("shuffle"), 9).shuffle(&mut items);
        assert_ne!(items, (0..100).collect::<Vec<_>>());
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
