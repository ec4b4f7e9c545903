//! Reads the files that `scripts/differential_files.py` writes, and prints their values for comparison with NumPy and SciPy.
//!
//! Each line of the standard input names a reader, a file and options, separated by tabs. Each line of the output is `ok`, the seconds, and
//! the arrays as `name dtype shape bytes`, or `error`, the seconds, and a message.
#![allow(clippy::unwrap_used)]

use std::io::{BufRead, Write};
use std::path::Path;
use std::time::Instant;

use cuprum_backend_cpu as _;
use cuprum_core::{Array, DType, Device, NdArray, Result};
use cuprum_io::{self as io, TextFormat, TextOptions};
use cuprum_sparse::{self as sparse, CooArray, Sparse};

/// Limit on host memory, in bytes.
const MEMORY_LIMIT: usize = 256 << 20;

fn text_options(options: &str) -> TextOptions {
    let mut text = TextOptions::default();
    for (key, value) in options.split('&').filter_map(|option| option.split_once('=')) {
        let number = || value.parse::<usize>().unwrap();
        text = match key {
            "delimiter" => text.delimiter(value.parse::<u8>().unwrap()),
            "comments" => text.comments(Some(value).filter(|text| !text.is_empty())),
            "skip_rows" => text.skip_rows(number()),
            "max_rows" => text.max_rows(number()),
            "skip_footer" => text.skip_footer(number()),
            "fill_value" => text.fill_value(number() as i64),
            "ndmin" => text.ndmin(number()),
            "dtype" => text.dtype(value.parse::<DType>().unwrap()),
            "usecols" => text.usecols(value.split(',').map(|column| column.parse::<isize>().unwrap())),
            other => panic!("no option {other}"),
        };
    }
    text
}

/// The values of the options are bytes in hexadecimal digits.
fn text_format(options: &str) -> TextFormat {
    let mut text = TextFormat::default();
    for (key, value) in options.split('&').filter_map(|option| option.split_once('=')) {
        let bytes = (0..value.len() / 2).map(|n| u8::from_str_radix(&value[2 * n..2 * n + 2], 16).unwrap()).collect();
        let value = String::from_utf8(bytes).unwrap();
        text = match key {
            "fmt" => text.formats(value.split('\u{1}')),
            "delimiter" => text.delimiter(value),
            "newline" => text.newline(value),
            "header" => text.header(value),
            "footer" => text.footer(value),
            "comments" => text.comments(value),
            other => panic!("no option {other}"),
        };
    }
    text
}

fn read(reader: &str, path: &Path, options: &str) -> Result<Vec<(String, NdArray)>> {
    let lone = |array: NdArray| vec![(String::new(), array)];
    match reader {
        "npy" => io::load(path).map(lone),
        "npy_mapped" => io::load_mapped(path).map(lone),
        "npz" => io::load_npz(path),
        "safetensors" => io::load_safetensors(path),
        "loadtxt" => io::loadtxt(path, &text_options(options)).map(lone),
        "genfromtxt" => io::genfromtxt(path, &text_options(options)).map(lone),
        // The file is the array; the result is the text as bytes.
        "savetxt" => {
            let target = path.with_extension("txt");
            io::savetxt(&target, &io::load(path)?, &text_format(options))?;
            NdArray::from_slice(&std::fs::read(&target).unwrap()).map(lone)
        }
        "mtx" => coordinates(&sparse::read_matrix_market(path)?),
        "sparse_npz" => coordinates(&sparse::load_npz(path)?.to_coo()?),
        other => panic!("no reader {other}"),
    }
}

/// Returns the elements of a sparse array and its shape.
fn coordinates(a: &CooArray) -> Result<Vec<(String, NdArray)>> {
    let shape = NdArray::from_slice(&a.shape().iter().map(|&n| n as i64).collect::<Vec<_>>())?;
    Ok([("data", a.data()), ("row", a.row()), ("column", a.column()), ("shape", &shape)]
        .map(|(name, array)| (name.into(), array.clone()))
        .into())
}

fn main() {
    Device::CPU.set_memory_limit(Some(MEMORY_LIMIT)).unwrap();
    let mut out = std::io::stdout().lock();
    for line in std::io::stdin().lock().lines() {
        let line = line.unwrap();
        let mut fields = line.split('\t');
        let mut field = || fields.next().unwrap_or_default();
        let (reader, path, options) = (field(), field(), field());
        let start = Instant::now();
        let arrays = read(reader, Path::new(path), options);
        let seconds = start.elapsed().as_secs_f64();
        match arrays {
            Ok(arrays) => {
                write!(out, "ok\t{seconds}").unwrap();
                for (name, array) in arrays {
                    let shape = array.shape().iter().map(ToString::to_string).collect::<Vec<_>>().join(",");
                    let bytes: String = array.to_bytes().unwrap().iter().map(|byte| format!("{byte:02x}")).collect();
                    write!(out, "\t{}\t{}\t{shape}\t{bytes}", name.escape_default(), array.dtype()).unwrap();
                }
                writeln!(out).unwrap();
            }
            Err(error) => writeln!(out, "error\t{seconds}\t{}", error.to_string().escape_default()).unwrap(),
        }
    }
}
