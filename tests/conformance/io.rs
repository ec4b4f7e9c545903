//! npy and npz files: round trips for every dtype and layout, and errors for damaged files.

use cuprum::core::testing::{Tolerance, compare};
use cuprum::{DType, NdArray, Result, io};

use crate::checks::{Check, Subject, same};

pub fn checks() -> Vec<Check> {
    let mut checks = Vec::new();
    for dtype in DType::ALL.into_iter().filter(|d| *d != DType::BF16) {
        checks.push(Check::plain(format!("io: npy and npz of {dtype}"), move |subject| {
            let arrays = layouts(subject, dtype)?;
            round_trip(&arrays).map_err(|e| e.to_string())?
        }));
    }
    checks.push(Check::plain("io: bfloat16, which the format lacks, is an error", |subject| {
        let array = subject.eval("a_bf16")?;
        let path = scratch("bf16.npy");
        let refused = io::save(&path, &array).is_err();
        same((refused, path.exists()), (true, false))
    }));
    checks.push(Check::plain("io: damaged files are errors", |subject| {
        let array = subject.eval("m_f32")?;
        let path = scratch("whole.npy");
        let whole = (|| {
            io::save(&path, &array)?;
            let bytes = std::fs::read(&path).map_err(|e| cuprum::Error::io(&path, e))?;
            std::fs::remove_file(&path).map_err(|e| cuprum::Error::io(&path, e))?;
            Ok::<_, cuprum::Error>(bytes)
        })()
        .map_err(|e| e.to_string())?;
        for length in 0..whole.len() {
            if io::load_bytes(&whole[..length]).is_ok() {
                return Err(format!("the first {length} of {} bytes are taken for a file", whole.len()));
            }
        }
        same(io::load_npz_bytes(&whole).is_err(), true)
    }));
    checks
}

fn scratch(name: &str) -> std::path::PathBuf {
    std::env::temp_dir().join(format!("cuprum-conformance-{}-{name}", std::process::id()))
}

fn layouts(subject: &mut Subject, dtype: DType) -> std::result::Result<Vec<NdArray>, String> {
    let short = format!("{dtype:?}").to_lowercase();
    let of = ["a_{d}", "m_{d}.T", "c_{d}[::-1, :, ::2]", "z_{d}", "e_{d}", "s_{d}"];
    of.iter().map(|text| subject.eval(&text.replace("{d}", &short))).collect()
}

fn round_trip(arrays: &[NdArray]) -> Result<std::result::Result<(), String>> {
    let (npy, npz) = (scratch("a.npy"), scratch("a.npz"));
    let names: Vec<String> = (0..arrays.len()).map(|i| format!("array {i}")).collect();
    let named: Vec<(&str, &NdArray)> = names.iter().map(String::as_str).zip(arrays).collect();
    let mut back: Vec<(NdArray, &NdArray)> = Vec::new();
    for array in arrays {
        io::save(&npy, array)?;
        back.push((io::load(&npy)?, array));
    }
    for save in [io::save_npz, io::save_npz_compressed] {
        save(&npz, &named)?;
        let read = io::load_npz(&npz)?;
        if read.iter().map(|(name, _)| name).ne(&names) {
            return Ok(Err("members have other names or another order".into()));
        }
        back.extend(read.into_iter().map(|(_, array)| array).zip(arrays));
    }
    for path in [npy, npz] {
        std::fs::remove_file(&path).map_err(|e| cuprum::Error::io(&path, e))?;
    }
    Ok(back.into_iter().try_for_each(|(got, want)| compare(&got, want, Tolerance::EXACT).map_err(|d| d.to_string())))
}
