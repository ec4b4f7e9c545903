//! Arguments for which a factor of the result overflows, underflows or loses digits. The values are SciPy's.

use cuprum_core::{DType, NdArray, Result, zeros};
use cuprum_special as special;

#[test]
fn values_far_from_the_mean() -> Result<()> {
    let inf = f64::INFINITY;
    let cases: Vec<(&str, NdArray, f64)> = vec![
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
    ];
    for (name, result, want) in cases {
        let got = result.item_as::<f64>()?;
        assert!(got == want || (got / want - 1.0).abs() < 1e-12, "{name}: {got:e}, not {want:e}");
    }
    Ok(())
}
