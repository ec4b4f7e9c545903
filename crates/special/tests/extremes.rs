//! Arguments for which a factor of the result overflows, underflows or loses digits. The values are SciPy's or those of mpmath.

use cuprum_core::{Complex, DType, NdArray, Result, zeros};
use cuprum_special as special;

#[test]
fn values_far_from_the_mean() -> Result<()> {
    let inf = f64::INFINITY;
    check(vec![
        ("gammainc", special::gammainc(10.0, 1e-3)?, 2.753227859428452e-37),
        ("gammainc", special::gammainc(20.0, 1e-12)?, 4.1103176233083764e-259),
        ("gammainc", special::gammainc(3.0, 1e250)?, 1.0),
        ("gammaincc", special::gammaincc(3.0, 1e250)?, 0.0),
        ("gammaincinv", special::gammaincinv(10.0, 1e-200)?, 4.528728688116768e-20),
        ("gammainccinv", special::gammainccinv(100.0, 1e-300)?, 1017.3104288547139),
        ("betainc", special::betainc(10.0, 20.0, 1e-12)?, 2.0030009999654032e-113),
        ("beta", special::beta(2.0, inf)?, 0.0),
        ("betaln", special::betaln(2.0, inf)?, -inf),
        ("beta", special::beta(-0.5, 1e16)?, -354490770.18110335),
        ("beta", special::beta(1e8, -1.5)?, 2363271756896.0117),
        ("betaln", special::betaln(-0.5, 1e16)?, 19.68619286743701),
        ("iv", special::iv(170.0, 1e4)?, inf),
        ("zeta", special::zeta(2.0, Some(1e200))?, 1e-200),
        ("logsumexp", special::logsumexp(&zeros(0, DType::F64)?, (), None)?, -inf),
        ("logsumexp", special::logsumexp(&zeros(2, DType::F64)?, (), Some(&NdArray::from_slice(&[inf, 0.0])?))?, inf),
    ])
}

#[test]
fn zeta_and_polygamma() -> Result<()> {
    check(vec![
        ("zeta(-300)", special::zeta(-300.0, None::<f64>)?, 0.0),
        ("zeta(-256)", special::zeta(-256.0, None::<f64>)?, 0.0),
        ("zeta(-255.5)", special::zeta(-255.5, None::<f64>)?, 1.401011708795898e301),
        ("zeta(-257)", special::zeta(-257.0, None::<f64>)?, -5.17549774703668e303),
        ("1 / zeta(-54)", cuprum_core::divide(1.0, special::zeta(-54.0, None::<f64>)?)?, f64::INFINITY),
        ("1 / gammaln(1)", cuprum_core::divide(1.0, special::gammaln(1.0)?)?, f64::INFINITY),
        ("zeta(1.5, 1e308)", special::zeta(1.5, Some(1e308))?, 2e-154),
        ("zeta(1.01, 1.7e308)", special::zeta(1.01, Some(1.7e308))?, 0.08273618867007179),
        ("zeta(1 + 2^-52, 1e300)", special::zeta(1.0 + f64::EPSILON, Some(1e300))?, 4503599627369805.0),
        ("zeta(1 + 2^-52, 5e-19)", special::zeta(1.0 + f64::EPSILON, Some(5e-19))?, 2.0045035996273892e+18),
        ("zeta(1.001, 1e-20)", special::zeta(1.001, Some(1e-20))?, 1.0471285480508944e+20),
        ("zeta(2, -1e-16)", special::zeta(2.0, Some(-1e-16))?, 1e32),
        ("zeta(3, -1e-17)", special::zeta(3.0, Some(-1e-17))?, -1e51),
        ("zeta(41, -2.5)", special::zeta(41.0, Some(-2.5))?, 4.934290736177757e-23),
        ("polygamma(1, -1e-15)", special::polygamma(1, -1e-15)?, 1e30),
        ("polygamma(240, 1000)", special::polygamma(240, 1000.0)?, -1.906508177093419e-254),
        ("polygamma(260, 300)", special::polygamma(260, 300.0)?, -1.95646829041441e-130),
        ("polygamma(500, 100)", special::polygamma(500, 100.0)?, -1.2285417212563916e132),
        ("polygamma(1000, 0.5)", special::polygamma(1000, 0.5)?, f64::NEG_INFINITY),
        ("polygamma(1e6, 367900)", special::polygamma(1_000_000, 367_900.0)?, -3.919927832268393e-27),
        ("polygamma(172, -5.5)", special::polygamma(172, -5.5)?, -4.957878196054799e170),
        ("polygamma(140, -3.45)", special::polygamma(140, -3.45)?, 1.0620514259476177e290),
        ("polygamma(100, -10000.5)", special::polygamma(100, -10000.5)?, -9.239726151928563e-245),
        ("polygamma(250, -20.5)", special::polygamma(250, -20.5)?, -1.1682553146009758e158),
        ("polygamma(400, -2.25)", special::polygamma(400, -2.25)?, f64::INFINITY),
        ("polygamma(400, -2.75)", special::polygamma(400, -2.75)?, f64::NEG_INFINITY),
        ("polygamma(300, inf)", special::polygamma(300, f64::INFINITY)?, 0.0),
    ])
}

#[test]
fn bessel_functions() -> Result<()> {
    check(vec![
        ("jv(500, 5e4)", special::jv(500.0, 5e4)?, 0.003540073809406169),
        ("jv(1000, 1e5)", special::jv(1000.0, 1e5)?, 0.0012831781125024805),
        ("jv(300, 5e-324)", special::jv(300.0, 5e-324)?, 0.0),
        ("jv(-250, 5e-324)", special::jv(-250.0, 5e-324)?, 0.0),
        ("iv(-37.00000000000001, 16)", special::iv(-37.00000000000001, 16.0)?, -1.7852476997401811e-7),
        ("jv(-15.999999999999998, 3.5)", special::jv(-15.999999999999998, 3.5)?, -3.684567084130069e-7),
        ("iv(170, 5e-324)", special::iv(170.0, 5e-324)?, 0.0),
        ("iv(inf, 1)", special::iv(f64::INFINITY, 1.0)?, 0.0),
        ("iv(-inf, -1)", special::iv(f64::NEG_INFINITY, -1.0)?, 0.0),
        ("jv(inf, 1)", special::jv(f64::INFINITY, 1.0)?, 0.0),
        ("jv(-inf, 0)", special::jv(f64::NEG_INFINITY, 0.0)?, 0.0),
    ])?;
    assert!(special::iv(f64::INFINITY, f64::INFINITY)?.item_as::<f64>()?.is_nan());
    Ok(())
}

#[test]
fn quantiles_of_subnormal_probabilities() -> Result<()> {
    check(vec![
        ("gammaincinv(1000, 1e-315)", special::gammaincinv(1000.0, 1e-315)?, 223.68708404438246),
        ("gammaincinv(1e4, 5e-324)", special::gammaincinv(1e4, 5e-324)?, 6629.606484352349),
        ("gammainccinv(172, 1e-310)", special::gammainccinv(172.0, 1e-310)?, 1217.0541541913706),
        ("gammainccinv(0.5, 1e-320)", special::gammainccinv(0.5, 1e-320)?, 732.9556523387926),
        ("gammainccinv(1e-5, 5e-3)", special::gammainccinv(1e-5, 5e-3)?, 1.1412914567453435e-218),
        ("gammainccinv(1e-100, 1e-20)", special::gammainccinv(1e-100, 1e-20)?, 0.0),
    ])
}

#[test]
fn quantiles_at_the_ends_of_the_range() -> Result<()> {
    let inf = f64::INFINITY;
    check(vec![
        ("gammaincinv(0, 1)", special::gammaincinv(0.0, 1.0)?, inf),
        ("gammaincinv(inf, 1)", special::gammaincinv(inf, 1.0)?, inf),
        ("gammaincinv(inf, 0)", special::gammaincinv(inf, 0.0)?, 0.0),
        ("gammainccinv(0, 0)", special::gammainccinv(0.0, 0.0)?, inf),
        ("gammainccinv(0, 1)", special::gammainccinv(0.0, 1.0)?, 0.0),
        ("gammainccinv(inf, 1)", special::gammainccinv(inf, 1.0)?, 0.0),
    ])?;
    for a in [0.0, inf, -1.0, f64::NAN] {
        assert!(special::gammaincinv(a, 0.5)?.item_as::<f64>()?.is_nan(), "gammaincinv({a}, 0.5)");
    }
    Ok(())
}

#[test]
fn lambertw_of_subnormal_numbers() -> Result<()> {
    check(vec![
        ("lambertw(-1e-310, -1)", cuprum_core::real(special::lambertw(-1e-310, -1, 1e-8)?)?, -720.3811592879879),
        ("lambertw(-5e-324, -1)", cuprum_core::real(special::lambertw(-5e-324, -1, 1e-8)?)?, -751.0615595398791),
    ])
}

#[test]
fn lambertw_of_numbers_whose_magnitude_overflows() -> Result<()> {
    let w = |re: f64, im: f64, k: i64| special::lambertw(Complex::new(re, im), k, 1e-8)?.item_as::<Complex<f64>>();
    let cases = [
        (w(1.5e308, 1.5e308, 0)?, 703.3923319004384, 0.7842831628461722),
        (w(-1.5e308, 1.5e308, -1)?, 703.3923170031305, -3.9214158694811556),
        (w(f64::INFINITY, 0.0, 0)?, f64::INFINITY, 0.0),
    ];
    for (got, re, im) in cases {
        assert!(got.re == re || (got.re / re - 1.0).abs() < 1e-12, "{got}, not {re}");
        assert!((got.im - im).abs() < 1e-12, "{got}, not {im}");
    }
    let nan = special::lambertw(f64::NAN, 0, 1e-8)?.item_as::<Complex<f64>>()?;
    assert!(nan.re.is_nan() && nan.im == 0.0, "{nan}");
    Ok(())
}

#[test]
fn beta_functions() -> Result<()> {
    let inf = f64::INFINITY;
    let small = special::betaln(0.3617287981928812, 9.836217369393358)?.item_as::<f64>()?;
    assert!((small - 0.0852059109621581).abs() < 8.0 * f64::EPSILON, "{small:e}");
    check(vec![
        ("betaln(1000, -1e6)", special::betaln(1000.0, -1e6)?, -7909.790468255126),
        ("betaln near a pole", special::betaln(-7.8418310080059435, -1.1581689919944018)?, -22.46360358017368),
        ("betaln(-1e4, 200)", special::betaln(-1e4, 200.0)?, -982.1310374646604),
        ("beta(0.001, -5e-324)", special::beta(0.001, -5e-324)?, -inf),
        ("beta(1e-310, -0.5)", special::beta(1e-310, -0.5)?, inf),
        ("beta(-5e-324, 1e-310)", special::beta(-5e-324, 1e-310)?, -inf),
        ("beta(1e-20, -3e-20)", special::beta(1e-20, -3e-20)?, 6.666666666666667e19),
        ("beta(-99.5, -1e-200)", special::beta(-99.5, -1e-200)?, -1e200),
        ("betainc(1e17, 1e17, 0.5)", special::betainc(1e17, 1e17, 0.5)?, 0.5),
        ("betainc(1e10, 1e10, 0.49999)", special::betainc(1e10, 1e10, 0.49999)?, 0.0023388674886946027),
        ("betainc(1e10, 3e10, 0.250003)", special::betainc(1e10, 3e10, 0.250003)?, 0.9170713993761843),
        ("betainc(2e9, 1e15, 2e-6)", special::betainc(2e9, 1e15, 2e-6)?, 0.535637936222923),
        ("betainc(2^38, 2^20, 1 - 2^-18)", special::betainc(274877906944.0, 1048576.0, 1.0 - 2f64.powi(-18))?, 0.4983117725229793),
        ("betainc(4.8, 2e91, 0.75)", special::betainc(4.8, 2e91, 0.75)?, 1.0),
        ("betainc(1e9, 1e9, 0.50001)", special::betainc(1e9, 1e9, 0.50001)?, 0.814453315231583),
    ])
}

fn check(cases: Vec<(&str, NdArray, f64)>) -> Result<()> {
    for (name, result, want) in cases {
        let got = result.item_as::<f64>()?;
        assert!(got == want || (got / want - 1.0).abs() < 1e-12, "{name}: {got:e}, not {want:e}");
    }
    Ok(())
}
