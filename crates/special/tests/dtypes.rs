//! The dtypes of results, by SciPy's rules and by the keyword `dtype`.

use cuprum_core::{DType, Result, ones};
use cuprum_special as special;

#[test]
fn each_argument_casts_safely_to_float32() -> Result<()> {
    let (i8, i16, u16) = (ones(1, DType::I8)?, ones(1, DType::I16)?, ones(1, DType::U16)?);
    for (a, b) in [(&u16, &i8), (&i16, &u16)] {
        for result in [special::huber(a, b)?, special::jv(a, b)?, special::zeta(a, Some(b))?, special::betainc(1, a, b)?] {
            assert_eq!(result.dtype(), DType::F32);
        }
    }
    assert_eq!(special::huber(&u16, ones(1, DType::I32)?)?.dtype(), DType::F64);
    assert_eq!(special::huber(&i8, 1.0)?.dtype(), DType::F64);
    Ok(())
}
