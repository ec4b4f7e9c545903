//! The limit of host memory covers reading and writing of files. A single test, because the limit and the peak belong to the process.
#![allow(clippy::unwrap_used)]

#[path = "../../backend-cpu/tests/memory_limit/mod.rs"]
mod memory_limit;

use std::io::{Seek, SeekFrom, Write};

use cuprum_backend_cpu::with_threads;
use cuprum_core::DType;
use cuprum_io as io;
use memory_limit::{MIB, ones, runs_out, succeeds};

#[test]
fn the_limit_covers_files() {
    // This first evaluation allocates the threads' stacks and spare blocks, so that they do not count later.
    with_threads(2, || (&ones(&[1 << 20], DType::F32) + 1).eval().cloned()).unwrap().unwrap();

    let folder = std::env::temp_dir().join(format!("cuprum-limits-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (npy, npz) = (folder.join("a.npy"), folder.join("a.npz"));
    // Loading needs 32 MiB for the elements.
    io::save(&npy, &ones(&[32 * MIB], DType::U8)).unwrap();
    runs_out("load", 20 * MIB, || io::load(&npy));
    assert_eq!(succeeds("load", 33 * MIB, || io::load(&npy)).size(), 32 * MIB);

    let columns = ones(&[8 * MIB, 2], DType::U8).copy().unwrap();
    let reversed = columns.t().unwrap();
    succeeds("save of a transposed array", MIB, || io::save(&npy, &reversed));
    succeeds("save_npz of a transposed array", MIB, || io::save_npz_compressed(&npz, &[("a", &reversed)]));
    runs_out("load_npz", 8 * MIB, || io::load_npz(&npz));
    let (_, back) = succeeds("load_npz", 17 * MIB, || io::load_npz(&npz)).remove(0);
    assert_eq!(back.sum(()).unwrap().item().unwrap(), 16 * MIB as u64);

    // Reading holds the elements once, whatever their form in the file.
    let header = |descr: &str, fortran: &str| {
        let text = format!(
            "{{'descr': '{descr}', 'fortran_order': {fortran}, 'shape': (2, {}), }}\n",
            8 * MIB / if descr == ">i4" { 4 } else { 1 }
        );
        [b"\x93NUMPY\x01\x00".as_slice(), &(text.len() as u16).to_le_bytes(), text.as_bytes()].concat()
    };
    for (descr, fortran, sum) in
        [(">i4", "False", 0x01010101i64 * 4 * MIB as i64), ("|b1", "True", 16 * MIB as i64), ("|i1", "True", 16 * MIB as i64)]
    {
        std::fs::write(&npy, [header(descr, fortran), vec![1; 16 * MIB]].concat()).unwrap();
        let array = succeeds(&format!("load of {descr}, Fortran order {fortran}"), 17 * MIB, || io::load(&npy));
        assert_eq!(array.sum(()).unwrap().item().unwrap(), sum);
        drop(array);
        runs_out("load", 15 * MIB, || io::load(&npy));
    }
    // The parsed pairs take far more memory than their text of 0.6 MB.
    let pairs = vec![r#""":"""#; 100_000].join(",");
    let text = format!(r#"{{"__metadata__":{{{pairs}}}}}"#);
    let bytes = [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
    runs_out("metadata", 8 * MIB, || io::load_safetensors_bytes(&bytes));
    succeeds("metadata", 16 * MIB, || io::load_safetensors_bytes(&bytes));
    let (csv, tensors) = (folder.join("a.csv"), folder.join("a.safetensors"));
    let wide = ones(&[4, 250_000], DType::F64).copy().unwrap();
    let tall = wide.t().unwrap();
    succeeds("savetxt of a transposed array", 3 * MIB, || io::write(&csv, &tall));
    succeeds("save_safetensors of a transposed array", MIB, || io::save_safetensors(&tensors, &[("a", &tall)]));
    succeeds("save_image of a transposed array", 9 * MIB, || io::write(folder.join("a.png"), &tall));
    let options = io::TextOptions::default().delimiter(b',');
    // The text takes 3.8 MiB, the values 7.6.
    let table = succeeds("loadtxt", 12 * MIB, || io::loadtxt(&csv, &options));
    assert_eq!(table.shape(), tall.shape());
    drop(table);
    runs_out("loadtxt", 11 * MIB, || io::loadtxt(&csv, &options));
    let mapped = succeeds("load_safetensors", MIB, || io::load_safetensors(&tensors)).remove(0).1;
    assert_eq!(mapped.shape(), tall.shape());

    // Files with an impossible size in the header, and with a very long header.
    let mut file = std::fs::File::create(&npy).unwrap();
    let header = "{'descr': '<f8', 'fortran_order': False, 'shape': (1000000000000,), }\n";
    file.write_all(b"\x93NUMPY\x01\x00").unwrap();
    file.write_all(&(header.len() as u16).to_le_bytes()).unwrap();
    file.write_all(header.as_bytes()).unwrap();
    let message = succeeds("load", MIB, || Ok(io::load(&npy).unwrap_err().to_string()));
    assert!(message.contains("truncated: 0 bytes"), "{message}");
    file.seek(SeekFrom::Start(6)).unwrap();
    file.write_all(b"\x02\x00\xff\xff\xff\xff").unwrap();
    let message = succeeds("load", MIB, || Ok(io::load(&npy).unwrap_err().to_string()));
    assert!(message.contains("4294967295 bytes"), "{message}");
    std::fs::remove_dir_all(&folder).unwrap();
}
