//! Bad input: exit code 2, one clear message, no file written, no panic.

use crate::{Folder, command, run};

/// A failing command line: (arguments, parts of the message).
type Row = (&'static [&'static str], &'static [&'static str]);

#[rustfmt::skip]
const TABLE: &[Row] = &[
    // Errors in the expression.
    (&["eval", "smu(a)", "a=a.npy"], &["no variable or function `smu`", "column 1", "did you mean `sum`?", "^^^"]),
    (&["eval", "sum(a, axis=2)", "a=a.npy"], &["axis 2 is out of bounds for an array of dimension 2", "column 1"]),
    (&["eval", "a +", "a=a.npy"], &["expected an expression after `+`", "column 4"]),
    (&["eval", "a.reshape(3)", "a=a.npy"], &["cannot reshape array of shape (2, 2)"]),
    (&["eval", "a[7]", "a=a.npy"], &["index 7 is out of bounds for axis 0 with size 2"]),
    (&["eval", "take(a, [9])", "a=a.npy"], &["out of bounds"]),
    (&["eval", "a + zeros(3)", "a=a.npy"], &["(2, 2)", "(3,)", "column 3"]),
    (&["eval", "a & 1", "a=a.npy"], &["floating point", "float64"]),
    (&["eval", "astype(a, 'float8')", "a=a.npy"], &["unknown dtype 'float8'", "float32"]),
    (&["eval", "zeros((10**12, 10**12))"], &["zeros"]),
    (&["eval", "zeros((10**7, 10**7)) + 1"], &["out of memory"]),
    (&["eval", "1 / 0"], &["division by zero"]),
    (&["eval", "a and a", "a=a.npy"], &["ambiguous"]),
    (&["eval", "a[2] = 1", "a=a.npy"], &["index 2 is out of bounds for axis 0 with size 2"]),
    (&["eval", "a[0] = 'x'", "a=a.npy"], &["'str' cannot be assigned to elements of an array of float64"]),
    (&["eval", "a.T[0] = 1", "a=a.npy"], &["only elements of a variable can be assigned"]),
    (&["eval", ""], &["the expression is empty"]),
    (&["eval", "# nothing"], &["the expression is empty"]),
    (&["eval", "a + 1"], &["no variable or function `a`", "define a variable by `a=file.npy` or `a=EXPRESSION`"]),
    (&["eval", "x = 'text'"], &["nothing to write"]),
    // Errors in files and bindings.
    (&["eval", "a", "a=missing.npy"], &["missing.npy", "No such file"]),
    (&["eval", "a", "a=cut.npy"], &["cut.npy"]),
    (&["eval", "a", "a=text.npy"], &["text.npy"]),
    (&["eval", "a", "a=words.csv"], &["words.csv", "line 2, column 2: 'b' is not a valid float64"]),
    (&["eval", "a", "a=noise.bin"], &["noise.bin", "not a format that can be recognised"]),
    (&["eval", "a", "a=-"], &["a: standard input: not a format"]),
    (&["eval", "a", "a=missing.csv"], &["missing.csv: no such file"]),
    (&["eval", "a", "a=missing.npz"], &["missing.npz"]),
    (&["eval", "a", "a=\u{1b}[2J\t.npy"], &["error: a: \\u{1b}[2J\\t.npy: No such file"]),
    (&["eval", "a", "a=text.npy:x"], &["text.npy"]),
    (&["eval", "a", "a=a.npy:x"], &["a.npy: no array 'x' in this file; its array has no name"]),
    (&["eval", "a", "a=."], &["a: .: is a directory"]),
    (&["eval", "x + y", "x=-", "y=-:b"], &["standard input can be read once, but 'x=-' and 'y=-:b' name it"]),
    (&["eval", "--file", "-", "x=-.csv"], &["standard input is the script, so 'x=-.csv' cannot read it too"]),
    (&["eval", "1", "for=3"], &["'for=3': `for` is a reserved word and cannot name a variable"]),
    (&["eval", "1", "True=a.npy"], &["`True` is a reserved word"]),
    (&["eval", "np.pi", "np=3"], &["'int' has no attribute `pi`", "`np` is a variable here"]),
    (&["eval", "x", "x=all.npz"], &["several arrays", "a, n", "all.npz:a"]),
    (&["eval", "x", "x=none.npz"], &["none.npz: the file has no array"]),
    (&["eval", "x", "x=all.npz:m"], &["no array 'm'", "a, n"]),
    (&["eval", "x", "x=one.npz:m"], &["no array 'm'", "only"]),
    (&["eval", "x", "a.npy"], &["needs a name"]),
    (&["eval", "x", "y + 1"], &["'y + 1' is not a binding"]),
    (&["eval", "x", "x=smu(3)"], &["x: no variable or function `smu`"]),
    (&["eval", "x", "x="], &["x: "]),
    (&["eval", "a=a.npy"], &["no expression", "--help"]),
    (&["eval", "x=1+1"], &["no expression", "spaces around"]),
    (&["eval"], &["no expression"]),
    // Errors in scripts.
    (&["eval", "--file", "missing.txt"], &["missing.txt", "No such file"]),
    (&["eval", "--file", "latin.txt"], &["latin.txt", "UTF-8"]),
    // Errors in device and accelerators.
    (&["eval", "1 + 1", "--device", "tpu"], &["--device", "'tpu' is not a device", "cpu"]),
    (&["eval", "1 + 1", "--device", "cpu:9"], &["--device", "there is no cpu:9"]),
    (&["eval", "1 + 1", "--device", "mesh"], &["--device", "there is no mesh:0: this process has 0 mesh(es)", "the option --mesh creates one"]),
    (&["eval", "1 + 1", "--accelerators", "cud"], &["--accelerators", "unknown accelerator 'cud'", "cutensor"]),
    (&["bench", "smu(a)", "a=a.npy"], &["`smu`"]),
    (&["bench", "a + 1", "a=missing.npy"], &["missing.npy"]),
    (&["bench", "a + 1", "a=a.npy", "--repeat", "0"], &["--repeat"]),
    (&["bench", "a + 1", "a=a.npy", "--device", "tpu"], &["'tpu'"]),
    (&["bench"], &["EXPR"]),
    (&["bench", "--report", "page"], &["--from"]),
    (&["bench", "--from", "a.npy"], &["--report"]),
    (&["bench", "1", "--report", "page", "--from", "a.npy"], &["cannot be used with"]),
    (&["bench", "--report", "page", "--from", "a.npy", "--json"], &["cannot be used with", "--json"]),
    (&["bench", "--report", "page", "--from", "a.npy", "--repeat", "3"], &["cannot be used with", "--repeat"]),
    (&["bench", "--report", "page", "--from", "missing.log"], &["missing.log", "o such file"]),
    (&["bench", "--report", "page", "--from", "a.npy"], &["--from: no measurement of cuprum in a.npy"]),
    (&["bench", "--report", "page", "--from", "a.npy", "--limit", "GB=3"], &["--limit", "GB_s or GFLOP_s"]),
    (&["eval", "1 + 1", "--accelerators", "auto,cub"], &["--accelerators", "'auto' cannot be combined with names"]),
    (&["tune"], &["nothing to tune", "--suite"]),
    (&["tune", "smu(a)", "a=a.npy"], &["`smu`"]),
    (&["tune", "# nothing"], &["the expression is empty"]),
    (&["tune", "a", "a=missing.npy"], &["missing.npy"]),
    (&["tune", "--suite", "--device", "tpu"], &["--device", "'tpu'"]),
    // Errors in the command line.
    (&["evla", "1"], &["evla"]),
    (&["eval", "1", "--no-such-option"], &["--no-such-option"]),
    (&["eval", "-.5"], &["'5'", "begins with a minus after `--`"]),
    (&[], &["Usage"]),
];

#[test]
#[cfg(unix)]
fn a_script_without_end_is_an_error() {
    let output = run(&Folder::new(), &["eval", "--file", "/dev/zero"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("/dev/zero: a script is at most 16 MiB long"));
}

#[test]
fn bad_input_gives_one_message_and_no_file() {
    let folder = Folder::new();
    let mut wrong = Vec::new();
    for (arguments, wanted) in TABLE {
        let mut all = arguments.to_vec();
        if arguments.first() == Some(&"eval") && *arguments != ["eval"] {
            all.extend(["-o", if arguments.get(1).is_some_and(|e| e.contains("'text'")) { "out.npz" } else { "out.npy" }]);
        }
        let output = run(&folder, &all);
        let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
        let fits = output.status.code() == Some(2)
            && output.stdout.is_empty()
            && wanted.iter().all(|text| stderr.contains(text))
            && stderr.matches("error:").count() <= 1
            && !stderr.contains("panicked")
            && folder.new_files().is_empty();
        if !fits {
            wrong.push(format!("{all:?}: exit {:?}, files {:?}\n{stderr}", output.status.code(), folder.new_files()));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn the_output_path_is_checked_before_the_script_runs() {
    let folder = Folder::new();
    let output = run(&folder, &["eval", "1 + 1", "-o", "out.xyz"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("the extension of the output must be .npy, .npz,"));
    let output = run(&folder, &["eval", "print(1)", "-o", "no/such/folder/out.npy"]);
    assert_eq!((output.status.code(), &output.stdout[..]), (Some(2), &b""[..]));
    assert!(String::from_utf8_lossy(&output.stderr).contains("no/such/folder/out.npy: there is no folder no/such/folder"));
    assert!(folder.new_files().is_empty());
}

#[test]
fn a_failure_keeps_the_existing_output_file() {
    let folder = Folder::new();
    let before = std::fs::read(folder.path("a.npy")).unwrap();
    let output = run(&folder, &["eval", "a.sum(axis=5)", "a=a.npy", "-o", "a.npy"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(std::fs::read(folder.path("a.npy")).unwrap(), before);
    assert!(folder.new_files().is_empty());
}

/// A wrong path is bad input in each command that opens it.
#[test]
#[cfg(unix)]
fn wrong_paths_have_one_exit_code() {
    let folder = Folder::new();
    std::os::unix::fs::symlink("loop.npy", folder.path("loop.npy")).unwrap();
    std::fs::create_dir(folder.path("folder.npy")).unwrap();
    std::fs::write(folder.path("lines"), "{\"peer\": \"cuprum\", \"workload\": \"add\", \"us\": 2.0}\n").unwrap();
    let long = "x".repeat(300) + ".npy";
    for path in ["loop.npy", "folder.npy", "a.npy/x.npy", &long, "missing/x.npy"] {
        let binding = format!("a={path}");
        for arguments in [
            &["eval", "a", &binding][..],
            &["eval", "--file", path],
            &["eval", "1", "-o", path],
            &["bench", "a", &binding],
            &["bench", "--report", "page", "--from", path],
            &["bench", "--report", "page", "--from", "lines", "--machine", path],
            &["tune", "a", &binding],
        ] {
            let output = run(&folder, arguments);
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert!(output.status.code() == Some(2) && stderr.matches("error:").count() == 1, "{arguments:?}: {stderr}");
        }
    }
    for path in ["loop.npy", "lines", "a.npy/x", &long] {
        let output = run(&folder, &["bench", "--report", path, "--from", "lines"]);
        assert_eq!(output.status.code(), Some(2), "{path}: {}", String::from_utf8_lossy(&output.stderr));
    }
}

#[test]
fn settings_are_checked() {
    let folder = Folder::new();
    let rows = [
        ("CUPRUM_ACCELERATORS", "cub,nosuch", "unknown accelerator 'nosuch'"),
        ("CUPRUM_DEVICE", "gpu", "'gpu' is not a device"),
        ("CUPRUM_FUSION", "maybe", "'maybe' is not a switch"),
        ("CUPRUM_NUM_THREADS", "many", "'many' is not a number of threads"),
        ("CUPRUM_CPU_MEMORY_LIMIT", "lots", "'lots' is not a memory limit"),
        ("CUPRUM_HOST_FALLBACK", "perhaps", "'perhaps' is not known"),
        ("CUPRUM_LOG", "cuprum=loud=1", "CUPRUM_LOG"),
    ];
    for (variable, value, message) in rows {
        for arguments in [&["eval", "1 + 1"][..], &["info"]] {
            let output = command(folder.0.path()).args(arguments).env(variable, value).output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(2), "{variable} {arguments:?}: {stderr}");
            assert!(stderr.contains(message) && stderr.contains(variable), "{variable} {arguments:?}: {stderr}");
        }
    }
}

#[test]
fn a_memory_limit_is_enforced() {
    let folder = Folder::new();
    let output = command(folder.0.path()).args(["eval", "(zeros(10**7) + 1).sum()"]).env("CUPRUM_CPU_MEMORY_LIMIT", "1M").output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("out of memory") && stderr.contains("80000000 bytes"), "{stderr}");

    // The limit allows an array and its sorted copy, but not the scratch buffer of the sort.
    let limits = [("CUPRUM_CPU_MEMORY_LIMIT", "17M"), ("CUPRUM_NUM_THREADS", "1")];
    let output =
        command(folder.0.path()).args(["eval", "sort(random.random((4, 250000)))", "--device", "cpu"]).envs(limits).output().unwrap();
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(2), "{stderr}");
    assert!(stderr.contains("out of memory") && stderr.contains("2000000 bytes"), "{stderr}");
}
