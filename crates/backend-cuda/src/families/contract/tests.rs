use cuprum_core::host_buffer::element_offsets;

use super::*;

/// Computes the cuBLAS call `p` on the host. The addresses in `p` are byte offsets into `a`, `b` and `c`.
fn emulate(p: &cublas::Gemm, a: &[f64], b: &[f64], c: &mut [f64], swapped: bool) {
    let at = |base: u64, index: i64| (base / 8) as usize + index as usize;
    let element = |transpose: Transpose, lead: i64, row: i64, column: i64| match transpose {
        Transpose::No => row + column * lead,
        _ => column + row * lead,
    };
    let (a, b) = if swapped { (b, a) } else { (a, b) };
    for batch in 0..p.batch {
        for i in 0..p.m {
            for j in 0..p.n {
                let sum = (0..p.k).map(|k| {
                    let x = a[at(p.a, batch * p.stride_a + element(p.transpose.0, p.lda, i, k))];
                    x * b[at(p.b, batch * p.stride_b + element(p.transpose.1, p.ldb, k, j))]
                });
                c[at(p.c, batch * p.stride_c + i + j * p.ldc)] = sum.sum();
            }
        }
    }
}

fn packed(values: &[f64], from: &Layout, to: &Layout) -> Vec<f64> {
    let mut out = vec![f64::NAN; to.buffer_range().1 as usize];
    for (x, y) in element_offsets(from).zip(element_offsets(to)) {
        out[y as usize] = values[x as usize];
    }
    out
}

/// Checks a contraction by the emulated cuBLAS against sums over all modes. Returns for a, b and c whether each was packed.
fn check(a: (&str, &Layout), b: (&str, &Layout), out: &str) -> [bool; 3] {
    let modes = |text: &str| text.bytes().map(|c| c - b'a').collect::<Vec<_>>();
    let (ma, mb, mc) = (modes(a.0), modes(b.0), modes(out));
    let count = ma.iter().chain(&mb).max().unwrap() + 1;
    let extent = |m: u8| {
        ma.iter().position(|&x| x == m).map(|i| a.1.shape()[i]).or(mb.iter().position(|&x| x == m).map(|i| b.1.shape()[i])).unwrap_or(1)
    };
    let extents: Vec<usize> = (0..count).map(extent).collect();
    let shape: Vec<usize> = mc.iter().map(|&m| extents[m as usize]).collect();
    let c = Layout::contiguous(&shape).unwrap();
    let values =
        |l: &Layout, seed: usize| (0..l.buffer_range().1 as usize).map(|i| ((i * 7 + seed) % 23) as f64 - 11.0).collect::<Vec<_>>();
    let (va, vb) = (values(a.1, 1), values(b.1, 2));

    let plan = ContractPlan::new(&ma, &mb, &mc, &extents);
    let (layouts, which, gemm) =
        find_packing_that_fits(&plan, [a.1, b.1, &c], |g| column_major_and_batch_axis(g).is_some()).expect("packing everything fits");
    let pa = if which[0] { packed(&va, a.1, &layouts[0]) } else { va.clone() };
    let pb = if which[1] { packed(&vb, b.1, &layouts[1]) } else { vb.clone() };
    let mut pc = vec![f64::NAN; c.size()];
    let addresses = [0, 1, 2].map(|n| layouts[n].offset() as u64 * 8);
    let swapped = column_major_and_batch_axis(&gemm).unwrap().0.swapped;
    for product in make_blas_calls(BlasType::F64, MatmulPrecision::Float32, &gemm, addresses).unwrap() {
        emulate(&product, &pa, &pb, &mut pc, swapped);
    }
    let got = if which[2] { packed(&pc, &layouts[2], &c) } else { pc };

    let mut want = vec![0.0; c.size()];
    let all = Layout::contiguous(&extents).unwrap();
    let steps = |modes: &[u8], l: &Layout| -> Vec<isize> {
        (0..count).map(|m| modes.iter().position(|&x| x == m).map_or(0, |i| l.strides()[i])).collect()
    };
    let walk =
        |modes: &[u8], l: &Layout| element_offsets(&Layout::strided(&extents, &steps(modes, l), l.offset()).unwrap()).collect::<Vec<_>>();
    let (wa, wb, wc) = (walk(&ma, a.1), walk(&mb, b.1), walk(&mc, &c));
    for i in 0..all.size() {
        want[wc[i] as usize] += va[wa[i] as usize] * vb[wb[i] as usize];
    }
    assert_eq!(got, want, "{} {:?}, {} {:?} -> {out}", a.0, a.1, b.0, b.1);
    which
}

fn c(shape: &[usize]) -> Layout {
    Layout::contiguous(shape).unwrap()
}

const NONE: [bool; 3] = [false; 3];

#[test]
fn matrices_in_either_order_need_no_copy() {
    let (a, b) = (c(&[4, 5]), c(&[5, 6]));
    let (at, bt) = (c(&[5, 4]).transpose(), c(&[6, 5]).transpose());
    for a in [&a, &at] {
        for b in [&b, &bt] {
            assert_eq!(check(("ab", a), ("bc", b), "ac"), NONE);
            assert_eq!(check(("ab", a), ("bc", b), "ca"), NONE);
        }
    }
    // Operands are rows of a wider matrix, or vectors of any stride.
    let part = Layout::strided(&[4, 5], &[9, 1], 2).unwrap();
    assert_eq!(check(("ab", &part), ("bc", &b), "ac"), NONE);
    let vector = Layout::strided(&[5], &[3], 1).unwrap();
    assert_eq!(check(("ab", &a), ("b", &vector), "a"), NONE);
    assert_eq!(check(("b", &vector), ("bc", &b), "c"), NONE);
    assert_eq!(check(("b", &vector), ("b", &vector), ""), NONE);
    assert_eq!(check(("a", &c(&[4])), ("b", &vector), "ab"), NONE);
}

#[test]
fn extents_of_one() {
    for (m, n, k) in [(1, 6, 5), (4, 1, 5), (4, 6, 1), (1, 1, 5), (1, 6, 1), (4, 1, 1), (1, 1, 1)] {
        assert_eq!(check(("ab", &c(&[m, k])), ("bc", &c(&[k, n])), "ac"), NONE);
        assert_eq!(check(("ab", &c(&[k, m]).transpose()), ("bc", &c(&[n, k]).transpose()), "ca"), NONE);
        assert_eq!(check(("dab", &c(&[3, m, k])), ("dbc", &c(&[3, k, n])), "dac"), NONE);
    }
}

#[test]
fn batches_are_split_into_cublas_calls() {
    assert_eq!(check(("abc", &c(&[3, 4, 5])), ("acd", &c(&[3, 5, 6])), "abd"), NONE);
    // One operand is broadcast over the batch.
    let one = c(&[5, 6]).broadcast_to(&[3, 5, 6]).unwrap();
    assert_eq!(check(("abc", &c(&[3, 4, 5])), ("acd", &one), "abd"), NONE);
    // Two batch axes do not merge, so there is one call for each index of the smaller axis.
    let b = c(&[2, 3, 5, 6]).permute(&[1, 0, 2, 3]).unwrap();
    assert_eq!(check(("abcd", &c(&[3, 2, 4, 5])), ("abde", &b), "abce"), NONE);
    let interleaved = c(&[4, 3, 5]).permute(&[1, 0, 2]).unwrap();
    assert_eq!(check(("abc", &interleaved), ("acd", &c(&[3, 5, 6])), "abd"), NONE);
    // The product would need more than the maximum number of calls, so one operand is packed.
    let many = c(&[40, 50, 2, 2]).permute(&[1, 0, 2, 3]).unwrap();
    assert_eq!(check(("abcd", &c(&[50, 40, 2, 2])), ("abde", &many), "abce").iter().filter(|p| **p).count(), 1);
}

#[test]
fn strides_that_cublas_cannot_take_are_packed() {
    let (a, b) = (c(&[4, 5]), c(&[5, 6]));
    assert_eq!(check(("ab", &a.flip(&[0])), ("bc", &b), "ac"), [true, false, false]);
    assert_eq!(check(("ab", &a), ("bc", &b.flip(&[1])), "ac"), [false, true, false]);
    let loose = Layout::strided(&[4, 5], &[20, 2], 0).unwrap();
    assert_eq!(check(("ab", &loose), ("bc", &b), "ac"), [true, false, false]);
    let repeated = c(&[5]).broadcast_to(&[4, 5]).unwrap();
    assert_eq!(check(("ab", &repeated), ("bc", &b), "ac"), [true, false, false]);
    // The batch axis is innermost, so no matrix has a unit stride.
    check(("abc", &c(&[4, 5, 3])), ("bdc", &c(&[5, 6, 3])), "adc");
}

#[test]
fn axes_that_do_not_merge_are_packed() {
    // k is (b, c) in a and (c, b) in b.
    let which = check(("abcd", &c(&[2, 3, 4, 5])), ("cbe", &c(&[4, 3, 6])), "ade");
    assert!(which[0] && !which[2]);
    // The result's axes are mixed.
    assert_eq!(check(("abx", &c(&[2, 3, 4])), ("xcd", &c(&[4, 5, 6])), "acbd"), [false, false, true]);
    check(("axby", &c(&[2, 3, 4, 5])), ("ycxd", &c(&[5, 2, 3, 6])), "dbca");
    check(("abcd", &c(&[2, 3, 4, 5])), ("dbea", &c(&[5, 3, 6, 2])), "bcea");
}

#[test]
fn sums_are_split_by_length() {
    assert_eq!(
        (partial_sum_count(1, 1), partial_sum_count(PARTIAL_SUM_LENGTH, 1), partial_sum_count(PARTIAL_SUM_LENGTH + 1, 1)),
        (1, 1, 2)
    );
    assert_eq!((partial_sum_count(1 << 40, 1), partial_sum_count(1 << 40, MAX_PARTIAL_SUMS + 1)), (MAX_PARTIAL_SUMS, 1));
}
