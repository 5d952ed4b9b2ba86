//! Eigenvalues of a symmetric matrix: Householder reflections make it tridiagonal, implicit QL steps diagonal.

/// The eigenvalues of `a`, `n` rows of `n`, in no particular order.
pub(crate) fn eigenvalues(mut a: Vec<f64>, n: usize) -> Vec<f64> {
    let (mut diagonal, mut beside) = tridiagonal(&mut a, n);
    diagonalise(&mut diagonal, &mut beside);
    diagonal
}

/// The diagonal and, one shorter and ended by a zero, the entries beside it of a tridiagonal matrix similar to `a`.
fn tridiagonal(a: &mut [f64], n: usize) -> (Vec<f64>, Vec<f64>) {
    let (mut diagonal, mut beside) = (vec![0.0; n], vec![0.0; n]);
    let (mut v, mut w) = (vec![0.0; n], vec![0.0; n]);
    for k in 0..n {
        diagonal[k] = a[k * n + k];
        if k + 1 >= n {
            break;
        }
        // The part of column k below the diagonal, to be reflected onto its first entry.
        let below = k + 1..n;
        for i in below.clone() {
            v[i] = a[i * n + k];
        }
        let norm = v[below.clone()].iter().map(|x| x * x).sum::<f64>().sqrt();
        let onto = if v[k + 1] > 0.0 { -norm } else { norm };
        beside[k] = onto;
        v[k + 1] -= onto;
        let length = v[below.clone()].iter().map(|x| x * x).sum::<f64>();
        if k + 2 >= n || length <= f64::MIN_POSITIVE {
            beside[k] = a[(k + 1) * n + k];
            continue;
        }
        // A <- H A H with H = 1 - 2 v v^T / length: A - v w^T - w v^T.
        let scale = 2.0 / length;
        for i in below.clone() {
            let row = &a[i * n + k + 1..(i + 1) * n];
            w[i] = scale * row.iter().zip(&v[below.clone()]).map(|(a, v)| a * v).sum::<f64>();
        }
        let along =
            0.5 * scale * w[below.clone()].iter().zip(&v[below.clone()]).map(|(w, v)| w * v).sum::<f64>();
        for i in below.clone() {
            w[i] -= along * v[i];
        }
        for i in below.clone() {
            let (vi, wi) = (v[i], w[i]);
            let row = &mut a[i * n + k + 1..(i + 1) * n];
            for ((a, v), w) in row.iter_mut().zip(&v[below.clone()]).zip(&w[below.clone()]) {
                *a -= vi * w + wi * v;
            }
        }
    }
    (diagonal, beside)
}

/// Steps until an entry beside the diagonal is given up on; three are usual.
const MOST_STEPS: usize = 60;

/// Makes `d` the eigenvalues of the tridiagonal matrix with the diagonal `d` and the entries `e` beside it.
fn diagonalise(d: &mut [f64], e: &mut [f64]) {
    let n = d.len();
    for l in 0..n {
        for _ in 0..MOST_STEPS {
            let is_small = |i: usize| e[i].abs() <= f64::EPSILON * (d[i].abs() + d[i + 1].abs());
            let m = (l..n - 1).find(|&i| is_small(i)).unwrap_or(n - 1);
            if m == l {
                break;
            }
            let mut g = (d[l + 1] - d[l]) / (2.0 * e[l]);
            let root = g.hypot(1.0);
            g = d[m] - d[l] + e[l] / (g + root.copysign(g));
            let (mut sine, mut cosine, mut shift) = (1.0, 1.0, 0.0);
            let mut is_split = false;
            for i in (l..m).rev() {
                let (f, b) = (sine * e[i], cosine * e[i]);
                let r = f.hypot(g);
                e[i + 1] = r;
                if r == 0.0 {
                    d[i + 1] -= shift;
                    e[m] = 0.0;
                    is_split = true;
                    break;
                }
                (sine, cosine) = (f / r, g / r);
                g = d[i + 1] - shift;
                let t = (d[i] - g) * sine + 2.0 * cosine * b;
                shift = sine * t;
                d[i + 1] = g + shift;
                g = cosine * t - b;
            }
            if !is_split {
                d[l] -= shift;
                e[l] = g;
                e[m] = 0.0;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use random::{Random, Stream};

    fn sorted(mut values: Vec<f64>) -> Vec<f64> {
        values.sort_by(f64::total_cmp);
        values
    }

    #[test]
    fn small_matrices_have_their_known_eigenvalues() {
        let close = |a: Vec<f64>, n, expected: &[f64]| {
            for (value, expected) in sorted(eigenvalues(a, n)).iter().zip(expected) {
                assert!((value - expected).abs() < 1e-12, "{value} for {expected}");
            }
        };
        close(vec![3.0], 1, &[3.0]);
        close(vec![2.0, 1.0, 1.0, 2.0], 2, &[1.0, 3.0]);
        close(vec![0.0; 16], 4, &[0.0; 4]);
        close(
            vec![2.0, -1.0, 0.0, -1.0, 2.0, -1.0, 0.0, -1.0, 2.0],
            3,
            &[2.0 - 2.0_f64.sqrt(), 2.0, 2.0 + 2.0_f64.sqrt()],
        );
        // All ones: n once, zero otherwise.
        close(vec![1.0; 25], 5, &[0.0, 0.0, 0.0, 0.0, 5.0]);
    }

    #[test]
    fn a_turned_diagonal_matrix_keeps_its_eigenvalues() {
        let n = 60;
        let mut random = Random::new(1, Stream::new("eigenvalues"), 0);
        let expected: Vec<f64> = (0..n).map(|k| (k * k) as f64 - 100.0).collect();
        let mut a = vec![0.0; n * n];
        (0..n).for_each(|k| a[k * n + k] = expected[k]);
        // Reflections by random vectors: A <- H A H.
        for _ in 0..3 {
            let v: Vec<f64> = (0..n).map(|_| random.normal()).collect();
            let scale = 2.0 / v.iter().map(|x| x * x).sum::<f64>();
            for turned in [false, true] {
                for i in 0..n {
                    let at = |k: usize| if turned { k * n + i } else { i * n + k };
                    let along = scale * (0..n).map(|k| a[at(k)] * v[k]).sum::<f64>();
                    (0..n).for_each(|k| a[at(k)] -= along * v[k]);
                }
            }
        }
        for (value, expected) in sorted(eigenvalues(a, n)).iter().zip(sorted(expected)) {
            assert!((value - expected).abs() < 1e-8, "{value} for {expected}");
        }
    }

    #[test]
    fn what_is_not_a_number_ends_too() {
        assert_eq!(eigenvalues(vec![f64::NAN; 100], 10).len(), 10);
        assert!(eigenvalues(Vec::new(), 0).is_empty());
    }
}
