//! Columns of a csv file with mean 0 and deviation 1, written to an npz file together with the means and deviations.
//!
//!     cargo run --release --example normalise -- [in.csv] [out.npz]
//!
//! Missing values count neither for means nor for deviations, and stay NaN. Without arguments it writes a table, and checks the result.

use std::fmt::Write;
use std::path::{Path, PathBuf};

use cuprum::io::{Npz, TextOptions, load_table, save_npz};
use cuprum::{Error, Result, isnan, nansum};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(PathBuf::from);
    match (arguments.next(), arguments.next()) {
        (Some(input), output) => normalise(&input, &output.unwrap_or("normalised.npz".into())),
        _ => check(),
    }
}

fn normalise(input: &Path, output: &Path) -> Result<()> {
    let table = load_table(input, &TextOptions::default().delimiter(b',').names_in_first_line().fill_value(f64::NAN).ndmin(2))?;
    let x = table.values;
    let count = isnan(&x)?.logical_not()?.sum(0)?;
    let mean = nansum(&x, 0)? / &count;
    let centred = &x - &mean;
    let deviation = (nansum(&centred.square()?, 0)? / &count).sqrt()?;
    let values = centred / &deviation;
    save_npz(output, &[("values", &values), ("mean", &mean), ("deviation", &deviation)])?;
    println!("{} -> {}: {:?}, columns {}", input.display(), output.display(), values.shape(), table.names.join(", "));
    Ok(())
}

/// Writes a table with a missing value in each hundredth row, and compares the result with the definition.
fn check() -> Result<()> {
    let folder = std::env::temp_dir().join(format!("cuprum-normalise-{}", std::process::id()));
    std::fs::create_dir_all(&folder).map_err(|e| Error::system(&folder, e))?;
    let (csv, npz) = (folder.join("table.csv"), folder.join("table.npz"));
    let rows: Vec<(f64, Option<f64>)> = (0..5000).map(|i| ((i % 97) as f64 * 0.5, (i % 100 != 7).then_some(1e3 - i as f64))).collect();
    let mut text = String::from("speed,height\n");
    for (speed, height) in &rows {
        let height = height.map(|h| h.to_string()).unwrap_or_default();
        writeln!(text, "{speed},{height}").map_err(|e| Error::io(&csv, e))?;
    }
    std::fs::write(&csv, text).map_err(|e| Error::system(&csv, e))?;

    normalise(&csv, &npz)?;
    let archive = Npz::open(&npz)?;
    let (values, mean, deviation) = (archive.read("values")?, archive.read("mean")?, archive.read("deviation")?);
    let known: Vec<f64> = rows.iter().filter_map(|(_, height)| *height).collect();
    let want = known.iter().sum::<f64>() / known.len() as f64;
    assert!((mean.to_vec::<f64>()?[1] - want).abs() < 1e-9 * want.abs());
    assert_eq!(isnan(&values)?.sum(0)?.to_vec::<i64>()?, [0, 50], "missing values stay missing");
    let moments = [nansum(&values, 0)?, nansum(&values.square()?, 0)? / isnan(&values)?.logical_not()?.sum(0)? - 1.0];
    for moment in moments {
        assert!(moment.abs()?.max(())?.item()?.as_f64() < 1e-9, "mean 0 and deviation 1");
    }
    let restored = (&values * &deviation + &mean).to_vec::<f64>()?;
    for ((speed, height), restored) in rows.iter().zip(restored.chunks(2)) {
        assert!((restored[0] - speed).abs() < 1e-9 && height.is_none_or(|height| (restored[1] - height).abs() < 1e-9));
    }
    std::fs::remove_dir_all(&folder).map_err(|e| Error::system(&folder, e))?;
    println!("{} rows, {} missing values, checked", rows.len(), rows.len() - known.len());
    Ok(())
}
