//! Files of every format: round trips, files that NumPy wrote, views of mapped files, and how files appear on disk.

use std::path::{Path, PathBuf};

use cuprum_backend_cpu as _;
use cuprum_core::{DType, NdArray, Result, arange, ones, s};
use cuprum_io as io;

fn corpus(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(name)
}

fn table(dtype: DType) -> NdArray {
    arange(0, 6, 1).unwrap().reshape([2, 3]).unwrap().astype(dtype).unwrap()
}

/// Returns the elements as complex numbers, whatever the dtype.
fn values(array: &NdArray) -> Vec<cuprum_core::Complex<f64>> {
    array.astype(DType::C128).unwrap().to_vec().unwrap()
}

fn names_in(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

#[test]
fn npy_files_of_numpy_are_read() {
    let mut count = 0;
    // Corpus files without this extension are inputs from which the fuzz target builds a file. They are not npy files.
    for name in names_in(&corpus("npy")).into_iter().filter(|name| name.ends_with(".npy")) {
        let path = corpus("npy").join(&name);
        if name == "structured.npy" {
            assert!(io::load(&path).unwrap_err().to_string().contains("structured dtype [('x', '<f4'), ('y', '<i4')]"));
            continue;
        }
        let want = match name.as_str() {
            "scalar.npy" => vec![2.5.into()],
            "empty.npy" => vec![],
            "c_bool.npy" => values(&table(DType::Bool)),
            _ => values(&table(DType::F64)),
        };
        for array in [io::load(&path).unwrap(), io::load_mapped(&path).unwrap(), io::read(&path).unwrap()] {
            assert_eq!(values(&array), want, "{name}");
            let dtype = name.trim_end_matches(".npy").rsplit('_').next().unwrap();
            assert!(DType::parse(dtype).is_err() || array.dtype().name() == dtype, "{name}: {}", array.dtype());
        }
        count += 1;
    }
    assert!(count >= 22, "{count} files");
    assert_eq!(io::load(corpus("npy/empty.npy")).unwrap().shape(), [0, 3]);
    for name in ["stored.npz", "deflated.npz", "zip64.npz"] {
        let file = io::Npz::open(corpus("npz").join(name)).unwrap();
        assert_eq!(file.names().collect::<Vec<_>>(), ["a", "b"]);
        for b in [file.read("b").unwrap(), file.map("b").unwrap()] {
            assert_eq!(b.to_vec::<f32>().unwrap(), [0.0, 1.0, 2.0]);
        }
        assert!(file.read("c").unwrap_err().to_string().contains("no array \"c\" in this file; it contains: a, b"));
    }
}

#[test]
fn every_dtype_and_layout_round_trips() {
    let folder = tempfile::tempdir().unwrap();
    for dtype in DType::ALL {
        let c = table(dtype);
        let big = arange(0, 300_000, 1).unwrap().reshape([300, 1000]).unwrap().astype(dtype).unwrap();
        let arrays = [
            ("c", c.clone()),
            ("fortran", c.t().unwrap()),
            ("steps", big.index(s![..;-3, 1..;2]).unwrap()),
            ("rows", big.t().unwrap().index(s![5..900, ..]).unwrap()),
            ("scalar", c.index(s![1, 2]).unwrap()),
            ("empty", c.index(s![0..0, ..]).unwrap()),
        ];
        let named: Vec<(&str, &NdArray)> = arrays.iter().map(|(name, array)| (*name, array)).collect();
        let mut read: Vec<(String, NdArray)> = Vec::new();
        if dtype != DType::BF16 {
            for (name, compressed) in [("s.npz", false), ("d.npz", true)] {
                let path = folder.path().join(name);
                if compressed { io::save_npz_compressed(&path, &named) } else { io::save_npz(&path, &named) }.unwrap();
                read.extend(io::load_npz(&path).unwrap());
                let file = io::Npz::open(&path).unwrap();
                read.extend(named.iter().map(|(name, _)| (name.to_string(), file.map(name).unwrap())));
            }
            for (name, array) in &named {
                let path = folder.path().join("a.npy");
                io::save(&path, array).unwrap();
                read.push((name.to_string(), io::load(&path).unwrap()));
            }
        }
        if dtype != DType::C128 {
            let path = folder.path().join("a.safetensors");
            io::save_safetensors(&path, &named).unwrap();
            read.extend(io::load_safetensors(&path).unwrap());
            read.extend(io::read_stream(&mut std::fs::File::open(&path).unwrap()).unwrap());
        }
        for (name, array) in read {
            let want = named.iter().find(|(n, _)| *n == name).unwrap().1;
            assert_eq!((array.dtype(), array.shape()), (dtype, want.shape()), "{name}");
            assert_eq!(array.to_bytes().unwrap(), want.to_bytes().unwrap(), "{name} of {dtype}");
        }
        let path = folder.path().join("a.bin");
        io::tofile(&path, named[2].1).unwrap();
        assert_eq!(io::fromfile(&path, dtype, None, 0).unwrap().to_bytes().unwrap(), named[2].1.to_bytes().unwrap());
        // Text of floats has the shortest digits that read back.
        let path = folder.path().join("a.csv");
        io::write(&path, named[3].1).unwrap();
        let back = io::loadtxt(&path, &io::TextOptions::default().delimiter(b',').dtype(dtype)).unwrap();
        assert_eq!(back.to_bytes().unwrap(), named[3].1.to_bytes().unwrap(), "csv of {dtype}");
    }
    assert!(io::save(folder.path().join("b.npy"), &table(DType::BF16)).unwrap_err().to_string().contains("bfloat16"));
    assert!(
        io::save_safetensors(folder.path().join("b.st"), &[("a", &table(DType::C128))]).unwrap_err().to_string().contains("complex128")
    );
    let twice = [("a", &table(DType::F32)), ("a", &table(DType::F32))];
    assert!(io::save_npz(folder.path().join("b.npz"), &twice).unwrap_err().to_string().contains("two arrays"));
    assert!(!names_in(folder.path()).iter().any(|n| n.starts_with("b.")));
}

#[test]
fn mapped_arrays_use_the_file_and_are_read_only() {
    let folder = tempfile::tempdir().unwrap();
    let a = arange(0, 1 << 20, 1).unwrap();
    let path = |name: &str| folder.path().join(name);
    io::save(path("a.npy"), &a).unwrap();
    io::save_npz(path("a.npz"), &[("odd", &ones(3, DType::U8).unwrap()), ("a", &a)]).unwrap();
    io::save_safetensors(path("a.safetensors"), &[("odd", &ones(3, DType::U8).unwrap()), ("a", &a)]).unwrap();
    io::tofile(path("a.bin"), &a).unwrap();
    let before: Vec<Vec<u8>> = names_in(folder.path()).iter().map(|n| std::fs::read(path(n)).unwrap()).collect();
    let used = || cuprum_core::Device::CPU.memory_stats().unwrap().used;
    let start = used();
    let mapped = [
        io::load_mapped(path("a.npy")).unwrap(),
        io::Npz::open(path("a.npz")).unwrap().map("a").unwrap(),
        io::Safetensors::open(path("a.safetensors")).unwrap().read("a").unwrap(),
        io::memmap(path("a.bin"), DType::I64, 0, 1 << 20).unwrap(),
    ];
    // Other tests of this process may allocate a little meanwhile; one copy would be 8 MiB.
    assert!(used() < start + (4 << 20), "mapped arrays take no memory");
    for mut array in mapped {
        assert_eq!(array.sum(()).unwrap().item().unwrap(), (1i64 << 19) * ((1 << 20) - 1));
        array += 1;
        array.assign(s![0], 7).unwrap();
        assert_eq!(array.index(s![..2]).unwrap().to_vec::<i64>().unwrap(), [7, 2]);
    }
    let after: Vec<Vec<u8>> = names_in(folder.path()).iter().map(|n| std::fs::read(path(n)).unwrap()).collect();
    assert!(before == after, "an assignment to a mapped array changed its file");
    // An open archive maps the file that it has opened, not the one that replaced it.
    let (archive, own) = (io::Npz::open(path("a.npz")).unwrap(), arange(0, 2, 1).unwrap());
    io::save_npz(path("a.npz"), &[("a", &own)]).unwrap();
    assert_eq!(archive.map("a").unwrap().to_bytes().unwrap(), a.to_bytes().unwrap());
    // A mapped file may be replaced by the array that it holds.
    let own = io::load_mapped(path("a.npy")).unwrap();
    io::save(path("a.npy"), &own).unwrap();
    assert_eq!(io::load(path("a.npy")).unwrap().to_bytes().unwrap(), a.to_bytes().unwrap());
}

#[test]
fn npz_names_are_declared_as_utf8_and_texts_may_be_empty() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.npz");
    let a = table(DType::F32);
    io::save_npz_with_texts(&path, &[("\u{e9}", &a), ("../\u{e9}", &a), ("../x", &a)], &[("none", "")], false).unwrap();
    let file = io::Npz::open(&path).unwrap();
    assert_eq!(file.names().collect::<Vec<_>>(), ["\u{e9}", "../\u{e9}", "../x", "none"]);
    assert_eq!(file.read_text("none").unwrap(), "");
    assert_eq!(file.map("\u{e9}").unwrap().shape(), [2, 3]);
    // The flags of the first local header: a data descriptor, and a name in UTF-8.
    assert_eq!(std::fs::read(&path).unwrap()[6..8], 0x808u16.to_le_bytes());
}

#[test]
fn raw_files_are_checked() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.bin");
    std::fs::write(&path, [1u8, 0, 2, 0, 3]).unwrap();
    assert_eq!(io::fromfile(&path, DType::I16, Some(1), 2).unwrap().to_vec::<i16>().unwrap(), [2]);
    assert_eq!(io::fromfile(&path, DType::Bool, None, 0).unwrap().to_vec::<bool>().unwrap(), [true, false, true, false, true]);
    let message = |result: Result<NdArray>| result.unwrap_err().to_string();
    assert!(message(io::fromfile(&path, DType::I16, None, 0)).contains("5 bytes after byte 0 are not a whole number of int16"));
    assert!(message(io::fromfile(&path, DType::I16, Some(3), 0)).contains("truncated: 5 bytes after byte 0"));
    assert!(message(io::memmap(&path, DType::I16, 0, 3)).contains("truncated: 5 bytes after byte 0, int16 (3,) needs 6"));
    assert!(message(io::memmap(&path, DType::I16, 1, 2)).contains("not a multiple of the element size 2"));
    assert!(message(io::memmap(&path, DType::Bool, 0, 2)).contains("bool cannot be mapped"));
    assert!(message(io::memmap(&path, DType::U8, u64::MAX, 1)).contains("truncated: 0 bytes"));
    assert_eq!(io::memmap(&path, DType::U8, 5, 0).unwrap().size(), 0);
}

#[test]
fn tables_are_read_with_every_option() {
    let read = |text: &str, options: io::TextOptions| io::load_table_bytes(text.as_bytes(), &options).unwrap();
    let options = || io::TextOptions::default().delimiter(b',');
    let floats = |text: &str, options: io::TextOptions| read(text, options).values.to_vec::<f64>().unwrap();
    assert_eq!(floats("1 2\t3\n 4 5 6 \n", io::TextOptions::default()), [1.0, 2.0, 3.0, 4.0, 5.0, 6.0]);
    assert_eq!(floats("1,2\r\n3,4\r\n", options()), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(floats("1\n\x0c\n2\x0b\n3 \x0c\x1f4 \x0c\n", io::TextOptions::default().usecols([0])), [1.0, 2.0, 3.0]);
    assert_eq!(floats("3 \x0c 4\n", io::TextOptions::default()), [3.0, 4.0]);
    assert_eq!(floats("1,\x0c2\n", options()), [1.0, 2.0]);
    assert!(io::load_table_bytes("1\n\u{a0}\n2\n".as_bytes(), &io::TextOptions::default()).is_err(), "white space outside ASCII");
    assert_eq!(floats("# c\r1,2\r\r3,4\r\n5,6\n7,8\r", options().skip_rows(2)), [3.0, 4.0, 5.0, 6.0, 7.0, 8.0]);
    assert_eq!(floats("head\n\n1,2 # x\n#c\n3,4", options().skip_rows(1)), [1.0, 2.0, 3.0, 4.0]);
    assert_eq!(floats("% c\n1,2 // x\n", options().comments(["%", "//"])), [1.0, 2.0]);
    assert_eq!(floats("1,\"a, \"\"b\"\"\",\"3\"\n", options().usecols([2, 0, -1])), [3.0, 1.0, 3.0]);
    assert_eq!(floats("1,2,x\n3,4\n", options().usecols([1])), [2.0, 4.0]);
    let uneven = "1,2\n4,5,6\n6,\"7,\",8,9\n";
    assert_eq!(floats(uneven, options().usecols([-1])), [2.0, 6.0, 9.0]);
    assert_eq!(floats(uneven, options().usecols([-2, 0, -1])), [1.0, 1.0, 2.0, 5.0, 4.0, 6.0, 8.0, 6.0, 9.0]);
    let error = io::load_table_bytes(b"1,2,3\n4,5\n", &options().usecols([-3])).err().unwrap().to_string();
    assert!(error.contains("usecols -3 is out of bounds for a row of 2 columns") && error.contains("line 2"), "{error}");
    assert_eq!(floats("1,\n-,4\n", options().missing_values(["-"]).fill_value(9.0)), [1.0, 9.0, 9.0, 4.0]);
    let bytes = |fill: i64, dtype: DType| read("1,\n", options().dtype(dtype).fill_value(fill)).values.to_bytes().unwrap()[1];
    assert_eq!([bytes(-1000, DType::I8), bytes(1000, DType::I8), bytes(-1, DType::U8)], [0x80, 0x7f, 0xff]);
    assert_eq!(floats("1\n2\n3\n4\n", options().max_rows(3).skip_footer(2)), [1.0, 2.0]);
    let table = read("# x y\n1 2\n3 4\n", io::TextOptions::default().names_in_first_line());
    assert_eq!(table.names, ["x", "y"]);
    let table = read("x,\"y, z\"\n1,2\n3,4\n", options().columns(["y, z"]));
    assert_eq!((table.names, table.values.to_vec::<f64>().unwrap()), (vec!["y, z".to_string()], vec![2.0, 4.0]));
    let tabs = read("\tx\ty\n0\t1.5\t2.5\n1\t3.5\t4.5\n", io::TextOptions::default().delimiter('\t').columns(["x"]));
    assert_eq!(tabs.values.to_vec::<f64>().unwrap(), [1.5, 3.5]);
    for (text, delimiter, want) in
        [("192.168.1.1\n", '.', &[192.0, 168.0, 1.0, 1.0][..]), ("1e5\n", 'e', &[1.0, 5.0]), ("1-5\n", '-', &[1.0, 5.0])]
    {
        assert_eq!(floats(text, io::TextOptions::default().delimiter(delimiter)), want, "{text:?} by {delimiter}");
    }
    assert_eq!(floats("1e5\n", options().comments(["e"])), [1.0]);
    let nan = cuprum_core::Complex::new(0.0, f64::NAN);
    let complex = read("1+-2j,\n", options().dtype(DType::C128).fill_value(nan)).values.to_vec::<cuprum_core::Complex<f64>>().unwrap();
    assert!(complex[0] == cuprum_core::Complex::new(1.0, -2.0) && complex[1].re == 0.0 && complex[1].im.is_nan(), "{complex:?}");
    assert_eq!(read("1,2\n", options().detect_names_in_first_line()).values.shape(), [2]);
    assert_eq!(read("x,y\n1,2\n", options().detect_names_in_first_line().columns(["y"])).names, ["y"]);
    assert_eq!(read("x,\n1,2\n", options().detect_names_in_first_line()).names, ["x", ""]);
    // A line with a number, or with a field that starts like one, has values.
    for text in ["a,2\n1,2\n", "1.2.3,x\n1,2\n", "-4;5\n", ",2020-01-01\n3,4\n"] {
        assert!(io::load_table_bytes(text.as_bytes(), &options().detect_names_in_first_line()).is_err(), "{text}");
    }
    for (text, ndmin, shape) in [
        ("1,2\n3,4\n", 0, &[2, 2][..]),
        ("1,2\n", 0, &[2]),
        ("1,2\n", 2, &[1, 2]),
        ("1\n2\n", 0, &[2]),
        ("1\n2\n", 2, &[2, 1]),
        ("1\n", 0, &[]),
        ("1\n", 1, &[1]),
        ("", 0, &[0]),
        ("# c\n", 0, &[0]),
        ("# c\n", 2, &[0, 1]),
    ] {
        assert_eq!(read(text, options().ndmin(ndmin)).values.shape(), shape, "{text:?} {ndmin}");
    }
    assert_eq!(read("1,2\n", options().max_rows(0)).values.shape(), [0]);
    for column in [1 << 40, isize::MAX, -1] {
        assert_eq!(read("# c\n", options().usecols([column, 0])).values.shape(), [0, 2]);
    }
    let bools = read("1,0\nTrue,false\n", options().dtype(DType::Bool)).values;
    assert_eq!(bools.to_vec::<bool>().unwrap(), [true, false, true, false]);
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, uneven).unwrap();
    let by_first_row = io::genfromtxt(&path, &options().usecols([-1]).max_rows(2)).unwrap();
    assert_eq!(by_first_row.to_vec::<f64>().unwrap(), [2.0, 5.0]);
    std::fs::write(&path, "# c\n").unwrap();
    assert_eq!(io::genfromtxt(&path, &options().usecols([-1, 0]).ndmin(2)).unwrap().shape(), [0, 1]);
    std::fs::write(&path, "1,,\n,5,6\n").unwrap();
    let unsigned = io::genfromtxt(&path, &options().dtype(DType::U8)).unwrap();
    assert_eq!(unsigned.to_vec::<u8>().unwrap(), [1, 255, 255, 255, 5, 6]);
    assert!(io::genfromtxt(&path, &options()).unwrap().isnan().unwrap().any(()).unwrap().item_as::<bool>().unwrap());
}

#[test]
fn savetxt_comments_each_line_of_a_header() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("a.txt");
    let text = |header: &str| {
        io::savetxt(&path, &arange(0, 2, 1).unwrap(), &io::TextFormat::default().header(header).footer("end")).unwrap();
        std::fs::read_to_string(&path).unwrap()
    };
    // As in NumPy, the last line may be empty.
    assert_eq!(text("a\nb\n"), "# a\n# b\n# \n0\n1\n# end\n");
    assert_eq!(text("\n"), "# \n# \n0\n1\n# end\n");
    assert_eq!(text("a\r\nb"), "# a\n# b\n0\n1\n# end\n");
    assert_eq!(text(""), "0\n1\n# end\n");
}

#[test]
fn savetxt_writes_rows_without_columns() {
    let mut text = Vec::new();
    io::write_stream(&mut text, io::Format::Text, &[("", &ones([3, 0], DType::F64).unwrap())]).unwrap();
    assert_eq!(text, b"\n\n\n");
}

/// Tests that a table of several parser blocks reads back as the numbers that it was written from.
#[test]
fn long_tables_are_parsed_by_all_threads() {
    let numbers = cuprum_core::linspace(-1e3, 1e3, 600_000).unwrap().reshape([100_000, 6]).unwrap();
    let mut text = b"# comment\n".to_vec();
    io::write_stream(&mut text, io::Format::Csv, &[("", &numbers)]).unwrap();
    assert!(text.len() > 4 << 20);
    let options = io::TextOptions::default().delimiter(b',');
    let back = io::load_table_bytes(&text, &options).unwrap().values;
    assert_eq!(back.to_bytes().unwrap(), numbers.to_bytes().unwrap());
    let part = io::load_table_bytes(&text, &options.skip_rows(50_001).max_rows(20_000).usecols([5])).unwrap().values;
    assert_eq!(part.to_bytes().unwrap(), numbers.index(s![50_000..70_000, 5]).unwrap().to_bytes().unwrap());
}

#[test]
fn images_have_the_bytes_of_the_array() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.png");
    let decode = || {
        let mut reader = png::Decoder::new(std::io::BufReader::new(std::fs::File::open(&path).unwrap())).read_info().unwrap();
        let mut bytes = vec![0; reader.output_buffer_size().unwrap()];
        let info = reader.next_frame(&mut bytes).unwrap();
        bytes.truncate(info.buffer_size());
        (info.width, info.height, info.color_type, bytes)
    };
    let grey = arange(0, 6, 1).unwrap().reshape([2, 3]).unwrap();
    io::write(&path, &grey.astype(DType::U8).unwrap()).unwrap();
    assert_eq!(decode(), (3, 2, png::ColorType::Grayscale, vec![0, 1, 2, 3, 4, 5]));
    io::write(&path, &grey.astype(DType::F32).unwrap().t().unwrap()).unwrap();
    assert_eq!(decode(), (2, 3, png::ColorType::Grayscale, vec![0, 153, 51, 204, 102, 255]));
    io::save_image(&path, &grey, &io::ImageOptions::default().range(2.0, 4.0)).unwrap();
    assert_eq!(decode().3, [0, 0, 0, 128, 255, 255]);
    io::write(&path, &grey.equal(2).unwrap()).unwrap();
    assert_eq!(decode().3, [0, 0, 255, 0, 0, 0]);
    let wide = NdArray::from_vec([-1e308, 0.0, 1e308], [1, 3]).unwrap();
    io::write(&path, &wide).unwrap();
    assert_eq!(decode().3, [0, 128, 255], "the difference of the extremes overflows");
    io::write(&path, &NdArray::from_vec([0.0, 1e-310, 2e-310], [1, 3]).unwrap()).unwrap();
    assert_eq!(decode().3, [0, 128, 255], "the quotient by the difference overflows");
    io::write(&path, &NdArray::from_vec([i64::MAX - 2, i64::MAX - 1, i64::MAX], [1, 3]).unwrap()).unwrap();
    assert_eq!(decode().3, [0, 128, 255], "float64 does not hold the values");
    io::write(&path, &NdArray::from_vec([i64::MIN, 0, i64::MAX], [1, 3]).unwrap()).unwrap();
    assert_eq!(decode().3, [0, 128, 255], "the difference overflows int64");
    io::write(&path, &NdArray::from_vec([u64::MAX, u64::MAX - 1], [1, 2]).unwrap()).unwrap();
    assert_eq!(decode().3, [255, 0]);
    let special = NdArray::from_vec([f64::NAN, f64::NEG_INFINITY, 1.0, 3.0], [1, 4]).unwrap();
    io::write(&path, &special).unwrap();
    assert_eq!(decode().3, [0, 0, 0, 255]);
    for (channels, color) in
        [(1, png::ColorType::Grayscale), (2, png::ColorType::GrayscaleAlpha), (3, png::ColorType::Rgb), (4, png::ColorType::Rgba)]
    {
        io::write(&path, &ones([2, 5, channels], DType::F64).unwrap()).unwrap();
        assert_eq!(decode(), (5, 2, color, vec![255; 10 * channels]));
    }
    let ppm = folder.path().join("a.ppm");
    io::write(&ppm, &ones([1, 1, 3], DType::U8).unwrap()).unwrap();
    assert_eq!(std::fs::read(&ppm).unwrap(), b"P6\n1 1\n255\n\x01\x01\x01");
    for bad in [ones([2, 2, 5], DType::U8), ones([2], DType::U8), ones([0, 2], DType::U8), ones([2, 2], DType::C64)] {
        assert!(io::write(&path, &bad.unwrap()).is_err());
    }
    assert!(io::write(&ppm, &ones([2, 2, 4], DType::U8).unwrap()).is_err());
    assert!(io::read(&path).unwrap_err().to_string().contains("images are only written"));
}

#[test]
fn formats_are_recognised_by_contents_first() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let a = table(DType::F64);
    for format in [io::Format::Npy, io::Format::Npz, io::Format::Safetensors, io::Format::Csv, io::Format::Text] {
        let mut bytes = Vec::new();
        io::write_stream(&mut bytes, format, &[("a", &a)]).unwrap();
        for name in ["a", "a.unknown"] {
            std::fs::write(path(name), &bytes).unwrap();
            assert_eq!(io::read(path(name)).unwrap().to_bytes().unwrap(), a.to_bytes().unwrap(), "{format:?} {name}");
        }
        assert_eq!(io::read_stream(&mut bytes.as_slice()).unwrap()[0].1.shape(), [2, 3], "{format:?}");
    }
    std::fs::write(path("noise"), [1, 2, 3, 0]).unwrap();
    assert!(io::read(path("noise")).unwrap_err().to_string().contains("not a format that can be recognised"));
    std::fs::write(path("compressed.csv"), [0x1f, 0x8b, 8, 0, 0]).unwrap();
    assert!(io::read(path("compressed.csv")).unwrap_err().to_string().contains("binary data, although the name is that of text"));
    std::fs::write(path("long.csv"), format!("\"{}abc\",2\n3,4\n", " ".repeat(61))).unwrap();
    assert!(io::read(path("long.csv")).unwrap_err().to_string().contains("is not a valid float64"));
    let split_character = format!("{}\u{e9}\n1\n", "a".repeat(511));
    assert_eq!(io::read_stream(&mut split_character.as_bytes()).unwrap()[0].1.size(), 1);
    for unknown in [&b"\x93NUM"[..], b"P", b"PK", b"1 2\n\xe9\n", b"1 2 \xc3"] {
        let message = io::read_stream(&mut &unknown[..]).unwrap_err().to_string();
        assert!(message.contains("not a format that can be recognised"), "{unknown:?}: {message}");
    }
    // A comma in a comment does not make a text with blanks a csv.
    for text in ["# comment, with comma\n1 2\n3 4\n", "1 2 # a, b\n3 4\n"] {
        assert_eq!(io::read_stream(&mut text.as_bytes()).unwrap()[0].1.to_vec::<f64>().unwrap(), [1.0, 2.0, 3.0, 4.0], "{text:?}");
    }
    io::write_named(path("hostile.npz"), &[("\u{1b}[31mred", &a), ("b\nerror: forged", &a)]).unwrap();
    let message = io::read(path("hostile.npz")).unwrap_err().to_string();
    assert!(message.contains("\\u{1b}[31mred, b\\nerror: forged"), "{message}");
    io::write_named(path("two.npz"), &[("a", &a), ("b", &a)]).unwrap();
    let message = io::read(path("two.npz")).unwrap_err().to_string();
    assert!(message.contains("the file has 2 arrays, not one: a, b; `read_named` reads all of them"), "{message}");
    assert!(io::write(path("a.xyz"), &a).unwrap_err().to_string().contains("names no format"));
    assert!(io::write_named(path("a.csv"), &[("a", &a), ("b", &a)]).unwrap_err().to_string().contains("holds one"));
    assert!(io::write(path("a.csv"), &ones([2, 2, 2], DType::F32).unwrap()).is_err() && !path("a.csv").exists());
    assert!(io::read(path("missing.npy")).unwrap_err().to_string().contains("No such file"));
}

#[test]
#[cfg(unix)]
fn writing_keeps_permissions_and_follows_links() {
    use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let mode = |name: &str| std::fs::metadata(path(name)).unwrap().mode() & 0o7777;
    let a = table(DType::F32);

    std::fs::write(path("plain"), "").unwrap();
    io::save(path("a.npy"), &a).unwrap();
    assert_eq!(mode("a.npy"), mode("plain"), "new files have the permissions of other new files");
    std::fs::set_permissions(path("a.npy"), std::fs::Permissions::from_mode(0o640)).unwrap();
    io::save(path("a.npy"), &a).unwrap();
    assert_eq!(mode("a.npy"), 0o640);

    std::fs::create_dir(path("folder")).unwrap();
    symlink("folder/real.npy", path("link.npy")).unwrap();
    symlink("link.npy", path("second.npy")).unwrap();
    for _ in 0..2 {
        io::save(path("second.npy"), &a).unwrap();
        assert!(path("link.npy").is_symlink() && path("second.npy").is_symlink() && !path("folder/real.npy").is_symlink());
        assert_eq!(io::load(path("folder/real.npy")).unwrap().shape(), [2, 3]);
    }
    symlink("loop.npy", path("loop.npy")).unwrap();
    assert!(
        matches!(io::save(path("loop.npy"), &a), Err(cuprum_core::Error::Io { kind: None, .. })),
        "bad input, no failure of the system"
    );
    assert!(io::save(path("folder"), &a).unwrap_err().to_string().contains("directory"));
    assert!(io::save(path("none/a.npy"), &a).unwrap_err().to_string().contains("folder"));
    #[cfg(target_os = "linux")]
    assert!(io::save("/proc/a.npy", &a).unwrap_err().to_string().starts_with("/proc/a.npy: folder /proc: "));

    // A process of the superuser may write to every file.
    std::fs::set_permissions(path("a.npy"), std::fs::Permissions::from_mode(0o440)).unwrap();
    if std::fs::OpenOptions::new().write(true).open(path("a.npy")).is_err() {
        assert!(io::save(path("a.npy"), &a).is_err());
    }
    assert_eq!(names_in(folder.path()), ["a.npy", "folder", "link.npy", "loop.npy", "plain", "second.npy"]);
}

#[test]
#[cfg(unix)]
fn pipes_and_devices_are_written_through() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe.npy");
    assert!(std::process::Command::new("mkfifo").arg(&path).status().unwrap().success());
    let a = table(DType::F32);
    let reader = std::thread::spawn({
        let path = path.clone();
        move || io::read(path).map(|a| a.to_vec::<f32>().unwrap())
    });
    io::save(&path, &a).unwrap();
    assert_eq!(reader.join().unwrap().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    let reader = std::thread::spawn({
        let path = path.clone();
        move || io::load_npz(path).map(|mut a| a.remove(0).1.to_vec::<f32>().unwrap())
    });
    io::save_npz(&path, &[("a", &a)]).unwrap();
    assert_eq!(reader.join().unwrap().unwrap().len(), 6);
    type Reader = fn(PathBuf) -> Result<NdArray>;
    type Writer = fn(&Path, &NdArray) -> Result<()>;
    let text: Writer = |path, a| io::savetxt(path, a, &io::TextFormat::default());
    let readers: [(Reader, Writer); 4] = [
        (|path| io::load_mapped(path), |path, a| io::save(path, a)),
        (|path| io::Safetensors::open(path)?.read("a"), |path, a| io::save_safetensors(path, &[("a", a)])),
        (|path| io::loadtxt(path, &io::TextOptions::default().dtype(DType::F32)), text),
        (|path| io::genfromtxt(path, &io::TextOptions::default().dtype(DType::F32)), text),
    ];
    // A reader that opens the pipe twice loses the data in most of the rounds.
    for (read, write) in readers.iter().cycle().take(12) {
        let reader = std::thread::spawn({
            let (path, read) = (path.clone(), *read);
            move || read(path).map(|a| a.to_vec::<f32>().unwrap())
        });
        write(&path, &a).unwrap();
        assert_eq!(reader.join().unwrap().unwrap(), [0.0, 1.0, 2.0, 3.0, 4.0, 5.0]);
    }
    assert_eq!(names_in(folder.path()), ["pipe.npy"]);
    io::save("/dev/null", &a).unwrap();
    assert!(!std::fs::metadata("/dev/null").unwrap().is_file(), "the device is not replaced");
    #[cfg(target_os = "linux")]
    assert!(io::save("/dev/full", &a).unwrap_err().to_string().contains("No space left"));
}

/// A regular file in `/dev/shm` is replaced as any other file. A file that is named by descriptor is emptied and written in place.
#[test]
#[cfg(target_os = "linux")]
fn shorter_arrays_replace_longer_ones() {
    use std::os::fd::AsRawFd;
    use std::os::unix::fs::MetadataExt;
    let folder = if Path::new("/dev/shm").is_dir() { tempfile::tempdir_in("/dev/shm") } else { tempfile::tempdir() }.unwrap();
    let path = folder.path().join("a.csv");
    let descriptor = |file: &std::fs::File| format!("/proc/self/fd/{}", file.as_raw_fd());
    let save = |path: &Path, n: i64| io::savetxt(path, &arange(0, n, 1).unwrap(), &io::TextFormat::default()).unwrap();
    save(&path, 5);
    let old = std::fs::File::open(&path).unwrap();
    save(&path, 1);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "0\n");
    assert_eq!(std::fs::read_to_string(descriptor(&old)).unwrap(), "0\n1\n2\n3\n4\n", "the old file is not changed");

    let open = std::fs::File::open(&path).unwrap();
    save(Path::new(&descriptor(&open)), 2);
    save(Path::new(&descriptor(&open)), 1);
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "0\n");
    assert_eq!(std::fs::metadata(&path).unwrap().ino(), open.metadata().unwrap().ino());
    assert_eq!(names_in(folder.path()), ["a.csv"]);
}

/// An error in the middle of a write leaves the old file and nothing else.
#[test]
fn an_error_leaves_the_old_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a.csv");
    std::fs::write(&path, "old").unwrap();
    let error = io::savetxt(&path, &table(DType::F32), &io::TextFormat::default().formats(["%d"; 7])).unwrap_err();
    assert!(error.to_string().contains("got 7 formats for"), "{error}");
    let error = io::savetxt(&path, &table(DType::F32), &io::TextFormat::default().format("%q")).unwrap_err();
    assert!(error.to_string().contains("%q"), "{error}");
    assert_eq!(std::fs::read_to_string(&path).unwrap(), "old");
    assert_eq!(names_in(folder.path()), ["a.csv"]);
}
