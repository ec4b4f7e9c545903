//! Contractions beyond matrix products: high ranks, small extents, permuted outputs, batch modes in the middle. The suite compares
//! accelerator orders. Several contractions are from the TCCG benchmark (Springer and Bientinesi, "Design of a high-performance GEMM-like
//! tensor-tensor multiplication", ACM TOMS 2018).

use cuprum::{DType, NdArray, Result, einsum};

use super::{Suite, Workload, limit, uniform, workloads};

/// Returns the two operands of the contraction `subscripts`. `extents` has the extents of the modes `a`, `b`, ... in this order.
fn operands(subscripts: &str, extents: &[usize], dtype: DType) -> Result<Vec<NdArray>> {
    let inputs = subscripts.split("->").next().unwrap_or_default();
    let shapes: Vec<Vec<usize>> = inputs.split(',').map(|modes| modes.bytes().map(|m| extents[(m - b'a') as usize]).collect()).collect();
    let [first, second] = &shapes[..] else { return Ok(Vec::new()) };
    // Complex operands have a zero imaginary part, as the time does not depend on the values.
    let real = if dtype.is_complex() { dtype.real() } else { dtype };
    uniform([first, second], real)?.iter().map(|a| a.astype(dtype)).collect()
}

/// Returns the number of multiplications and additions of a contraction whose modes have these extents.
const fn flops(extents: &[usize]) -> usize {
    let (mut product, mut n) = (2, 0);
    while n < extents.len() {
        product *= extents[n];
        n += 1;
    }
    product
}

/// Builds the workloads of the suite from rows: name, subscripts, extents of the modes in alphabetical order, dtype.
macro_rules! contractions {
    ($($name:literal: $subscripts:literal $extents:expr, $dtype:ident;)*) => {
        workloads! {
            $($name: operands($subscripts, &$extents, DType::$dtype) => |x| einsum($subscripts, [&x[0], &x[1]]), flops flops(&$extents);)*
        }
    };
}

/// The suite of tensor contractions.
pub static SUITE: Suite = Suite {
    name: "contractions",
    device: "cuda",
    workloads: contractions! {
        "abc_bda_dc_f32": "abc,bda->dc" [312, 312, 296, 312], F32;
        "ab_cad_dcb_f32": "ab,cad->dcb" [384, 376, 384, 24], F32;
        "abcd_dbea_ec_f32": "abcd,dbea->ec" [72, 72, 72, 72, 72], F32;
        "abcde_efbad_cf_f32": "abcde,efbad->cf" [48, 32, 24, 32, 48, 32], F32;
        "abcdef_dega_gfbc_f32": "abcdef,dega->gfbc" [24, 16, 16, 24, 16, 16, 24], F32;
        "abcdef_gdab_efgc_f64": "abcdef,gdab->efgc" [24, 16, 16, 24, 16, 16, 24], F64;
        "batch_in_the_middle_f32": "abc,dbc->abd" [256, 128, 256, 256], F32;
        "permuted_output_f32": "abc,cd->dba" [256, 256, 256, 256], F32;
        "small_extents_f32": "abcdefgh,ghij->jabicdef" [8, 8, 8, 8, 8, 8, 8, 8, 8, 8], F32;
        "outer_batch_c64": "abcd,bed->aebc" [32, 64, 32, 64, 64], C64;
        "matrix_f16": "ab,cb->ca" [4096, 4096, 4096], F16;
    },
};
