//! `cuprum eval`: printed and written results.

use std::io::Write;
use std::process::Stdio;

use cuprum::io;

use crate::{Folder, command, load, run, succeed};

#[test]
fn prints_as_numpy_does() {
    let folder = Folder::new();
    let rows: &[(&[&str], &str)] = &[
        (&["eval", "sqrt(sum(a**2, axis=-1))", "a=a.npy"], "[ 5. 10.]\n"),
        (&["eval", "a", "a=a.npy"], "[[3. 4.]\n [6. 8.]]\n"),
        (&["eval", "a.sum()", "a=a.npy"], "21.0\n"),
        (&["eval", "a.shape, float32, 'x', None", "a=a.npy"], "((2, 2), dtype('float32'), 'x', None)\n"),
        (&["eval", "a.dtype", "a=a.npy"], "float64\n"),
        (&["eval", "(1 + 2) * 3"], "9\n"),
        (&["eval", "x * n", "x=a.npy", "n=3"], "[[ 9. 12.]\n [18. 24.]]\n"),
        (&["eval", "n * 2", "all.npz"], "[2 4 6]\n"),
        (&["eval", "x + 1", "x=all.npz:n"], "[2 3 4]\n"),
        (&["eval", "x + 1", "x=one.npz"], "[2 3 4]\n"),
        (&["eval", "n", "n=all.npz"], "[1 2 3]\n"),
        (&["eval", "m.shape", "k=2", "m=zeros((k, 3))"], "(2, 3)\n"),
        (&["eval", "x = 1; y = x + 1"], "x = 1\ny = 2\n"),
        (&["eval", "a[0] = 0; a[:, 1] += 1", "a=a.npy"], "a = array([[0., 1.],\n       [6., 9.]])\n"),
        (&["eval", "a[a > 4] = 0; a", "a=a.npy"], "[[3. 4.]\n [0. 0.]]\n"),
        (&["eval", "x=a.npy", "--", "-x"], "[[-3. -4.]\n [-6. -8.]]\n"),
        (&["eval", "print('n', 3); 4"], "n 3\n4\n"),
        (&["eval", "print(1)"], "1\n"),
        (&["eval", "a[0].sort(); np.put(a, 0, 9)", "a=a.npy"], "a = array([[9., 4.],\n       [6., 8.]])\n"),
        (&["eval", "x = 1; print(x)"], "1\n"),
    ];
    for (arguments, want) in rows {
        assert_eq!(succeed(&folder, arguments), *want, "{arguments:?}");
    }
    assert!(folder.new_files().is_empty());
}

#[test]
fn writes_npy() {
    let folder = Folder::new();
    assert_eq!(succeed(&folder, &["eval", "sqrt(sum(a**2, axis=-1))", "a=a.npy", "-o", "norms.npy"]), "");
    assert_eq!(load(folder.path("norms.npy")), [5.0, 10.0]);
    succeed(&folder, &["eval", "x = a + 1; y = x * 2", "a=a.npy", "--output", "last.npy"]);
    assert_eq!(load(folder.path("last.npy")), [8.0, 10.0, 14.0, 18.0]);
    // The output file can be one of the inputs.
    succeed(&folder, &["eval", "a[::-1]", "a=a.npy", "-o", "a.npy"]);
    assert_eq!(load(folder.path("a.npy")), [6.0, 8.0, 3.0, 4.0]);
    // A statement without a value writes the variable that it assigns to.
    succeed(&folder, &["eval", "a[0] = 1", "a=a.npy", "-o", "ones.npy"]);
    assert_eq!(load(folder.path("ones.npy")), [1.0, 1.0, 3.0, 4.0]);
    for (script, want) in [("np.put(a, 0, 1)", [1.0, 8.0, 3.0, 4.0]), ("b = a; c = b; b = a + 1", [7.0, 9.0, 4.0, 5.0])] {
        succeed(&folder, &["eval", script, "a=a.npy", "-o", "ones.npy"]);
        assert_eq!(load(folder.path("ones.npy")), want, "{script}");
    }
    let mut files = folder.new_files();
    files.sort();
    assert_eq!(files, ["last.npy", "norms.npy", "ones.npy"]);
}

#[test]
fn scripts_write_every_name() {
    let folder = Folder::new();
    let script = "import numpy as np\n# squares\ny = x**2\ntotal = np.sum(y)\nshape = y.shape; dtype = y.dtype\ny += 1\n";
    std::fs::write(folder.path("script.txt"), script).unwrap();
    let output = run(&folder, &["eval", "--file", "script.txt", "x=one.npz", "-o", "out.npz"]);
    assert_eq!(output.status.code(), Some(0), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(String::from_utf8_lossy(&output.stderr).contains("dtype is not written"));
    let members = io::load_npz(folder.path("out.npz")).unwrap();
    let names: Vec<&str> = members.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["y", "total", "shape"]);
    assert_eq!(members[0].1.to_vec::<i64>().unwrap(), [2, 5, 10]);
    assert_eq!(members[1].1.item().unwrap(), 14);
    // Updates in place count as assignments.
    succeed(&folder, &["eval", "np.put(a, 0, 9); n.sort(); np.sqrt(a, out=a)", "all.npz", "-o", "updated.npz"]);
    let updated = io::load_npz(folder.path("updated.npz")).unwrap();
    assert_eq!(updated.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>(), ["a", "n"]);
    assert_eq!(updated[0].1.ravel().unwrap().to_vec::<f64>().unwrap()[0], 3.0);
    // Values that are not arrays are skipped, whatever they are.
    for other in ["b = 's'", "b = [[1], [2, 3]]", "b = (1, 'x')", "b = 2**100", "b = sparse.eye_array(2)"] {
        let output = run(&folder, &["eval", &format!("a = ones(2); {other}"), "-o", "some.npz"]);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && errors.contains("note: b is not written"), "{other}: {errors}");
        assert_eq!(io::load_npz(folder.path("some.npz")).unwrap().len(), 1, "{other}");
    }
    // The contents of a file decide, not its extension.
    std::fs::copy(folder.path("some.npz"), folder.path("renamed.safetensors")).unwrap();
    io::save_safetensors(folder.path("renamed.npz"), &[("a", &cuprum::ones(3, cuprum::DType::F32).unwrap())]).unwrap();
    assert_eq!(succeed(&folder, &["eval", "sum(a)", "a=renamed.safetensors"]), "2.0\n");
    assert_eq!(succeed(&folder, &["eval", "sum(a)", "a=renamed.npz:a"]), "3.0\n");
    std::fs::copy(folder.path("all.npz"), folder.path("renamed.npy")).unwrap();
    std::fs::copy(folder.path("a.npy"), folder.path("single.npz")).unwrap();
    assert_eq!(succeed(&folder, &["eval", "n, x", "n=renamed.npy", "x=renamed.npy:n"]), "(array([1, 2, 3]), array([1, 2, 3]))\n");
    assert_eq!(succeed(&folder, &["eval", "sum(x)", "x=single.npz"]), "21.0\n");
    let output = run(&folder, &["eval", "x", "x=renamed.npy"]);
    assert_eq!(output.status.code(), Some(2));
    let wanted = "renamed.npy: several arrays in this file; it contains: a, n; choose one, such as renamed.npy:a";
    assert!(String::from_utf8_lossy(&output.stderr).contains(wanted), "{}", String::from_utf8_lossy(&output.stderr));
    succeed(&folder, &["eval", "x * 2", "x=one.npz", "-o", "one_value.npz"]);
    assert_eq!(io::load_npz(folder.path("one_value.npz")).unwrap()[0].0, "arr_0");
}

#[test]
#[cfg(unix)]
fn a_closed_standard_error_does_not_prevent_writing() {
    let folder = Folder::new();
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    let mut command = command(folder.0.path());
    command.args(["eval", "y = 1; text = 'x'", "-o", "out.npz"]).stderr(writer).status().unwrap();
    assert_eq!(io::Npz::open(folder.path("out.npz")).unwrap().names().collect::<Vec<_>>(), ["y"]);
}

/// Output to `/dev/stdout` continues a file that standard output is redirected to.
#[test]
#[cfg(target_os = "linux")]
fn a_link_to_standard_output_appends() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("/dev/stdout", folder.path("link.csv")).unwrap();
    std::fs::write(folder.path("log"), "head\n").unwrap();
    let log = std::fs::File::options().append(true).open(folder.path("log")).unwrap();
    let mut command = command(folder.0.path());
    assert!(command.args(["eval", "array([7])", "-o", "link.csv"]).stdout(log).status().unwrap().success());
    assert_eq!(std::fs::read_to_string(folder.path("log")).unwrap(), "head\n7\n");
}

#[test]
fn reads_and_writes_every_format() {
    let folder = Folder::new();
    assert_eq!(succeed(&folder, &["eval", "d", "d=data.csv"]), "[[ 1.  2.]\n [ 3. nan]]\n");
    for name in ["out.npy", "out.npz", "out.safetensors", "out.csv", "out.tsv", "out.txt"] {
        succeed(&folder, &["eval", "b = a * 2", "a=a.npy", "-o", name]);
        assert_eq!(succeed(&folder, &["eval", "b.sum()", &format!("b={name}")]), "42.0\n", "{name}");
    }
    assert_eq!(succeed(&folder, &["eval", "b.sum()", "out.safetensors"]), "42.0\n");
    assert_eq!(succeed(&folder, &["eval", "x.sum()", "x=out.safetensors:b"]), "42.0\n");
    succeed(&folder, &["eval", "a", "a=a.npy", "-o", "out.png"]);
    assert!(std::fs::read(folder.path("out.png")).unwrap().starts_with(b"\x89PNG"));
}

/// Runs `cuprum` with `input` on standard input. Returns its standard output.
fn pipe(folder: &Folder, arguments: &[&str], input: &[u8]) -> Vec<u8> {
    let mut command = command(folder.0.path());
    let mut child = command.args(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(0), "{arguments:?}");
    output.stdout
}

#[test]
fn standard_input_and_output_carry_arrays() {
    let folder = Folder::new();
    let whole = std::fs::read(folder.path("a.npy")).unwrap();
    let doubled = pipe(&folder, &["eval", "print('note'); x * 2", "x=-", "-o", "-"], &whole);
    assert_eq!(io::load_bytes(&doubled).unwrap().to_vec::<f64>().unwrap(), [6.0, 8.0, 12.0, 16.0]);
    assert_eq!(pipe(&folder, &["eval", "x + 1", "x=-", "-o", "-.csv"], b"1 2\n3 4\n"), b"2.0,3.0\n4.0,5.0\n");
    // The extension names the format of text, so that empty fields are missing values.
    assert_eq!(pipe(&folder, &["eval", "x", "x=-.tsv"], b"1\t2\n\t4\n"), b"[[ 1.  2.]\n [nan  4.]]\n");
    assert_eq!(pipe(&folder, &["eval", "x.sum(0)", "x=-.csv", "-o", "-.tsv"], b"1,2\n3,4\n"), b"4.0\n6.0\n");
    assert_eq!(pipe(&folder, &["eval", "x.sum()", "x=-.csv"], &whole), b"21.0\n");
    assert_eq!(pipe(&folder, &["eval", "x", "x=-.npz:n"], &std::fs::read(folder.path("all.npz")).unwrap()), b"[1 2 3]\n");
    let archive = std::fs::read(folder.path("all.npz")).unwrap();
    assert_eq!(pipe(&folder, &["eval", "n", "n=-"], &archive), b"[1 2 3]\n");
    assert_eq!(pipe(&folder, &["eval", "x", "x=-:n"], &archive), b"[1 2 3]\n");
    assert_eq!(pipe(&folder, &["eval", "n + a[0, 0]", "-"], &archive), b"[4. 5. 6.]\n");
    assert_eq!(pipe(&folder, &["eval", "n + a[0, 0]", "-.npz", "-o", "-.txt"], &archive), b"4.0\n5.0\n6.0\n");
    let tensors = pipe(&folder, &["eval", "y = x", "x=-", "-o", "-.safetensors"], &whole);
    assert_eq!(io::load_safetensors_bytes(&tensors).unwrap()[0].0, "y");
    assert!(folder.new_files().is_empty());
}

/// A named pipe can be read only once, so its contents are not examined first.
#[test]
#[cfg(target_os = "linux")]
fn named_pipes_carry_arrays() {
    let folder = Folder::new();
    for (name, binding, input) in
        [("p.npz", "x=p.npz:n", "all.npz"), ("p", "x=p:n", "all.npz"), ("q", "n=q", "all.npz"), ("r", "n=r", "one.npz")]
    {
        assert!(std::process::Command::new("mkfifo").arg(folder.path(name)).status().unwrap().success());
        let (pipe, bytes) = (folder.path(name), std::fs::read(folder.path(input)).unwrap());
        let writer = std::thread::spawn(move || std::fs::write(pipe, bytes));
        let variable = &binding[..1];
        assert_eq!(succeed(&folder, &["eval", variable, binding]), "[1 2 3]\n", "{binding}");
        writer.join().unwrap().unwrap();
    }
}

/// A signal in the middle of a long write leaves no file.
#[test]
#[cfg(target_os = "linux")]
fn a_signal_leaves_no_partial_file() {
    let folder = Folder::new();
    for signal in ["INT", "TERM", "KILL"] {
        // The process that runs the tests may ignore SIGINT, which its children inherit.
        let mut command = std::process::Command::new("env");
        command.args(["--default-signal=INT", env!("CARGO_BIN_EXE_cuprum")]).current_dir(folder.0.path()).env("CUPRUM_DEVICE", "cpu");
        let mut child = command.args(["eval", "broadcast_to(1.0, (10**10,))", "-o", "out.csv"]).spawn().unwrap();
        std::thread::sleep(std::time::Duration::from_millis(1500));
        assert!(child.try_wait().unwrap().is_none(), "the write is not finished");
        let id = child.id().to_string();
        assert!(std::process::Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        assert_eq!(child.wait().unwrap().code(), None, "{signal}");
        assert!(folder.new_files().is_empty(), "{signal}: {:?}", folder.new_files());
    }
}

/// Shells make the background jobs of scripts ignore SIGINT.
#[test]
#[cfg(target_os = "linux")]
fn an_ignored_signal_does_not_end_a_write() {
    let folder = Folder::new();
    let script = format!("trap '' INT; exec {} eval 'broadcast_to(1.0, (10**10,))' -o out.csv", env!("CARGO_BIN_EXE_cuprum"));
    let mut child = std::process::Command::new("sh").args(["-c", &script]).current_dir(folder.0.path()).spawn().unwrap();
    let id = child.id().to_string();
    for (signal, ends) in [("INT", false), ("TERM", true)] {
        std::thread::sleep(std::time::Duration::from_millis(1500));
        assert!(std::process::Command::new("kill").args(["-s", signal, &id]).status().unwrap().success());
        std::thread::sleep(std::time::Duration::from_millis(500));
        assert_eq!(child.try_wait().unwrap().is_some(), ends, "{signal}");
    }
    assert!(folder.new_files().is_empty(), "{:?}", folder.new_files());
}

#[test]
fn scripts_come_from_standard_input() {
    let folder = Folder::new();
    let mut child =
        command(folder.0.path()).args(["eval", "--file", "-", "x=one.npz"]).stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(b"y = x + 1\ny.sum()\n").unwrap();
    assert_eq!(String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap(), "9\n");
}

#[test]
fn explains_and_times() {
    let folder = Folder::new();
    let output = run(&folder, &["eval", "(a + 1).sum(-1)", "a=a.npy", "--explain", "--time"]);
    let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert_eq!(stdout, "[ 9. 16.]\n");
    assert!(stderr.contains("sum [Reduce] float64 (2, 2) -> float64 (2,), axis=1 on cpu: cpu"), "{stderr}");
    assert!(stderr.contains("computed in") && stderr.contains("on cpu"), "{stderr}");
}

#[test]
fn lists_its_functions() {
    let folder = Folder::new();
    let listing = succeed(&folder, &["eval", "--functions"]);
    assert!(listing.contains("cumsum(a, axis=None, dtype=None, out=None)") && listing.contains("linalg.norm("));
    let selected = succeed(&folder, &["eval", "--functions", "np.linalg.nor", "ARCCOSH"]);
    assert!(selected.lines().count() == 6 && selected.contains("linalg.norm(") && selected.contains("(also arccosh)"), "{selected}");
    let output = run(&folder, &["eval", "--functions", "smu"]);
    assert_eq!((output.status.code(), output.stdout.len()), (Some(2), 0));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no function has a name that contains 'smu'"));
}

/// Evaluates the scripts for compute-sanitizer with small arrays.
#[test]
fn scripts_of_large_arrays_evaluate() {
    let folder = Folder::new();
    let scripts = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/large");
    let mut count = 0;
    for entry in std::fs::read_dir(scripts).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        assert!(text.contains("\nn = 30_000_000\n"), "{}: grid-stride loops need this size for a second iteration", path.display());
        std::fs::write(folder.path("script.txt"), text.replace("n = 30_000_000", "n = 60_000")).unwrap();
        let printed = succeed(&folder, &["eval", "--file", "script.txt"]);
        assert_eq!(printed.lines().count(), text.matches("\nprint(").count(), "{}", path.display());
        count += 1;
    }
    assert!(count >= 7, "{count} scripts");
}

#[test]
fn processes_of_a_launcher_share_a_mesh() {
    let folder = Folder::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let start = |rank: &str| {
        let mut command = command(folder.0.path());
        command.args(["eval", "--mesh", "env", "--explain", "arange(1000).sum()"]);
        command.envs([("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", "2"), ("MASTER_ADDR", "127.0.0.1"), ("MASTER_PORT", &port)]);
        command.env("CUPRUM_MESH_TIMEOUT", "20").stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    };
    for (rank, size, wanted) in [
        ("x", "2", "error: --mesh: RANK: 'x' is not a number"),
        ("", "2", "error: --mesh: RANK: is not set, but WORLD_SIZE is 2"),
        ("0", "193", "error: --mesh: a mesh axis of 193 ranks; the maximum is 192"),
    ] {
        let mut command = command(folder.0.path());
        command.args(["eval", "--mesh", "env", "1"]).envs([("RANK", rank), ("LOCAL_RANK", rank), ("WORLD_SIZE", size)]);
        let output = command.env("CUPRUM_MESH_ADDRESS", format!("127.0.0.1:{port}")).output().unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.code() == Some(2) && stderr.starts_with(wanted), "{stderr}");
    }
    let processes = ["0", "1"].map(start);
    for process in processes {
        let output = process.wait_with_output().unwrap();
        let (stdout, stderr) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert_eq!(output.status.code(), Some(0), "{stderr}");
        assert!(stdout.contains("499500"), "{stdout}{stderr}");
        assert!(format!("{stdout}{stderr}").contains("tcp"), "{stdout}{stderr}");
    }
}
