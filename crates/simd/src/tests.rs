//! Every level of this processor against plain arithmetic, bit by bit.

use crate::{Floats, Lanes, Mask, Vector, WIDTH, available, multiversion};

/// Numbers that comparisons and rounding find hard.
const HARD: [f32; WIDTH] = [
    0.0,
    -0.0,
    1.0,
    -1.5,
    f32::NAN,
    f32::INFINITY,
    f32::NEG_INFINITY,
    f32::MIN_POSITIVE,
    1e-40,
    f32::MAX,
    0.1,
    3.3,
    -7.7e8,
    1.000_000_1,
    16_777_217.0,
    -2.5e-20,
];

/// `[a + b, a - b, a * b, a / b, min, max, selected]`, and the lanes where `a < b` and `a <= b`.
type Results = ([Floats; 7], [Mask; 2]);

#[inline(always)]
fn operate<L: Lanes>(a: &Floats, b: &Floats, mask: Mask) -> Results {
    let (a, b) = (L::load(a), L::load(b));
    let values = [a.add(b), a.sub(b), a.mul(b), a.div(b), a.min(b), a.max(b), L::select(mask, a, b)];
    let mut results = [Floats::splat(0.0); 7];
    for (value, result) in values.into_iter().zip(&mut results) {
        value.store(result);
    }
    (results, [a.lt(b), a.le(b)])
}

multiversion! {
    unsafe fn operate_at<S>(level: Level; a: &Floats, b: &Floats, mask: Mask) -> Results {
        operate::<S::Sixteen>(a, b, mask)
    }
}

fn expected(a: &Floats, b: &Floats, mask: Mask) -> Results {
    let by_lane = |f: &dyn Fn(f32, f32) -> f32| Floats(std::array::from_fn(|lane| f(a.0[lane], b.0[lane])));
    let lanes = |f: &dyn Fn(f32, f32) -> bool| {
        (0..WIDTH).map(|lane| Mask::from(f(a.0[lane], b.0[lane])) << lane).sum()
    };
    let selected = std::array::from_fn(|lane| if mask >> lane & 1 != 0 { a.0[lane] } else { b.0[lane] });
    let values = [
        by_lane(&|a, b| a + b),
        by_lane(&|a, b| a - b),
        by_lane(&|a, b| a * b),
        by_lane(&|a, b| a / b),
        by_lane(&|a, b| if a < b { a } else { b }),
        by_lane(&|a, b| if a > b { a } else { b }),
        Floats(selected),
    ];
    (values, [lanes(&|a, b| a < b), lanes(&|a, b| a <= b)])
}

/// Bits, with all NaN alike: which payload an operation keeps is not defined.
fn bits(values: &Floats) -> [u32; WIDTH] {
    values.0.map(|value| if value.is_nan() { f32::NAN.to_bits() } else { value.to_bits() })
}

#[test]
fn every_level_has_the_bits_of_plain_arithmetic() {
    let a = Floats(HARD);
    for turn in 0..WIDTH {
        let mut b = Floats(HARD);
        b.0.rotate_left(turn);
        for mask in [0, 0xffff, 0x00ff, 0x5a3c, 1 << turn] {
            let (values, masks) = expected(&a, &b, mask);
            for level in available() {
                // SAFETY: the level is one of this processor's.
                let (found, found_masks) = unsafe { operate_at(level, &a, &b, mask) };
                assert_eq!(
                    found.each_ref().map(bits),
                    values.each_ref().map(bits),
                    "{level:?} {turn} {mask:x}"
                );
                assert_eq!(found_masks, masks, "{level:?} {turn}");
            }
        }
    }
}

#[inline(always)]
unsafe fn copy_first<V: Vector>(from: &[f32], to: &mut [f32], count: usize) {
    // SAFETY: the caller's promise.
    unsafe { V::load_first(from.as_ptr(), count).store_first(to.as_mut_ptr(), count) }
}

#[inline(always)]
fn products<V: Vector>(a: f32, b: f32, c: f32) -> f32 {
    let mut sums = [0.0; WIDTH];
    // SAFETY: no vector has more than sixteen lanes.
    unsafe { V::splat(a).add_product(V::splat(b), V::splat(c)).store_at(sums.as_mut_ptr()) };
    assert!(
        sums[..V::LANES].iter().all(|&sum| sum == sums[0]) && sums[V::LANES..].iter().all(|&sum| sum == 0.0)
    );
    sums[0]
}

multiversion! {
    /// Copies `count` floats through a part of a register and through a part of sixteen lanes.
    unsafe fn copy_at<S>(level: Level; from: &[f32], to: [&mut [f32]; 2], count: usize) {
        let [one, sixteen] = to;
        // SAFETY: the caller's promise.
        unsafe {
            copy_first::<S::Register>(from, one, count.min(S::Register::LANES));
            copy_first::<S::Sixteen>(from, sixteen, count);
        }
    }
}

multiversion! {
    unsafe fn products_at<S>(level: Level; a: f32, b: f32, c: f32) -> [f32; 2] {
        [products::<S::Register>(a, b, c), products::<S::Sixteen>(a, b, c)]
    }
}

#[test]
fn parts_of_registers_touch_nothing_else() {
    for level in available() {
        let lanes = match level {
            crate::Level::Portable => 4,
            crate::Level::Avx2 => 8,
            crate::Level::Avx512 => 16,
        };
        for count in 0..=WIDTH {
            // Exactly as long as what may be read.
            let from: Vec<f32> = (0..count).map(|lane| 1.0 + lane as f32).collect();
            let (mut one, mut sixteen) = ([-1.0; WIDTH], [-1.0; WIDTH]);
            // SAFETY: the level is one of this processor's; all lie within the slices.
            unsafe { copy_at(level, &from, [&mut one, &mut sixteen], count) };
            for (to, count) in [(one, count.min(lanes)), (sixteen, count)] {
                assert_eq!(to[..count], from[..count], "{level:?}");
                assert!(to[count..].iter().all(|&value| value == -1.0), "{level:?} {count}");
            }
        }
    }
}

#[test]
fn products_are_added_and_fused_where_the_processor_can() {
    let (a, b, c) = (-1.0_f32, 1.000_000_1_f32, 0.999_999_9_f32);
    let (fused, apart) = (b.mul_add(c, a), a + b * c);
    assert_ne!(fused, apart);
    for level in available() {
        let wanted = if level == crate::Level::Portable { apart } else { fused };
        // SAFETY: the level is one of this processor's.
        assert_eq!(unsafe { products_at(level, a, b, c) }, [wanted; 2], "{level:?}");
    }
}
