//! Changes of the usual kinds: bits, bytes, numbers at borders, parts left out, repeated, or taken from another input.

use random::Random;

const INTERESTING: [u64; 10] = [0, 1, 0x7f, 0x80, 0xff, 0x7fff, 0xffff, 0x7fff_ffff, 0xffff_ffff, u64::MAX];
const WORDS: [&[u8]; 16] = [
    b"-1",
    b"nan",
    b"1e999",
    b"-0",
    b"4294967296",
    b"18446744073709551615",
    b"99999999999999999999999",
    b"null",
    b"{}",
    b"[",
    b"\"",
    b"\0",
    b"../",
    b"\n",
    b"\xff\xfe",
    b"\xc3\xa9",
];

/// One of `seeds` with a few changes.
pub fn mutate(seeds: &[Vec<u8>], random: &mut Random) -> Vec<u8> {
    let mut below = |bound: usize| random.below(bound.max(1) as u64) as usize;
    let mut input = seeds[below(seeds.len())].clone();
    for _ in 0..1 + below(6) {
        let length = input.len();
        let at = below(length);
        match below(9) {
            0 if length > 0 => input[at] ^= 1 << below(8),
            1 if length > 0 => input[at] = below(256) as u8,
            2 => input.truncate(at),
            3 => {
                let word = WORDS[below(WORDS.len())];
                input.splice(at..at, word.iter().copied());
            }
            4 => {
                let width = [1, 2, 4, 8][below(4)];
                let number = INTERESTING[below(INTERESTING.len())];
                let bytes = if below(2) == 0 { number.to_le_bytes() } else { number.to_be_bytes() };
                let bytes = if below(2) == 0 { &bytes[..width] } else { &bytes[8 - width..] };
                for (to, from) in input.iter_mut().skip(at).zip(bytes) {
                    *to = *from;
                }
            }
            5 => {
                let end = (at + below(64)).min(length);
                let part = input[at..end].to_vec();
                // Now and then very often: depth of nesting, length of lists.
                let times = if below(20) == 0 { 1 + below(20_000) } else { 1 + below(20) };
                input.splice(at..at, part.repeat(times));
            }
            6 => {
                let end = (at + below(64)).min(length);
                input.drain(at..end);
            }
            7 => {
                // A number in a text becomes another one.
                let digits = |byte: &u8| byte.is_ascii_digit();
                let start = at + input[at.min(length)..].iter().position(|byte| digits(byte)).unwrap_or(0);
                let end = start + input[start.min(length)..].iter().take_while(|byte| digits(byte)).count();
                let word = INTERESTING[below(INTERESTING.len())].to_string();
                input.splice(start.min(length)..end.min(length), word.bytes());
            }
            _ => {
                let other = &seeds[below(seeds.len())];
                let from = below(other.len());
                let end = (from + below(256)).min(other.len());
                let part = other[from..end].to_vec();
                input.splice(at..at, part);
            }
        }
        input.truncate(1 << 20);
    }
    input
}
