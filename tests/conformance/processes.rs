//! A sample of the cases on meshes over several processes on the host. Each process of a mesh is this program with `--mesh env`.

use std::net::TcpListener;
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::args::Args;

/// Numbers of processes. Each runs another sample.
const SIZES: [usize; 3] = [2, 3, 4];
/// A mesh runs one of about so many cases.
const SAMPLE: usize = 150;

/// Runs the samples. Returns false if a case failed in any process.
pub fn run(args: &Args) -> Result<bool, String> {
    let program = std::env::current_exe().map_err(|e| format!("the path of this program: {e}"))?;
    let mut passed = true;
    for size in SIZES {
        let started = Instant::now();
        // The port is free a moment before rank 0 listens at it.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.map_err(|e| format!("a port on 127.0.0.1: {e}"))?.port().to_string();
        let mut children = Vec::new();
        for rank in 0..size {
            let mut command = Command::new(&program);
            command.args(args.forwarded()).args(["--mesh", "env", "--every"]).arg((SAMPLE + size).to_string());
            let (rank, size) = (rank.to_string(), size.to_string());
            command.envs([("RANK", &rank), ("LOCAL_RANK", &rank), ("WORLD_SIZE", &size), ("MASTER_PORT", &port)]);
            command.envs([("MASTER_ADDR", "127.0.0.1"), ("CUPRUM_DEVICE", "cpu"), ("CUPRUM_NUM_THREADS", "1")]);
            command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
            children.push(command.spawn().map_err(|e| format!("{}: {e}", program.display()))?);
        }
        for (rank, child) in children.into_iter().enumerate() {
            let output = child.wait_with_output().map_err(|e| format!("process {rank} of {size}: {e}"))?;
            let text = String::from_utf8_lossy(&output.stdout);
            if !output.status.success() || !text.contains(" 0 failed") {
                println!("FAILED process {rank} of {size}: {}\n{text}{}", output.status, String::from_utf8_lossy(&output.stderr));
                passed = false;
            }
        }
        println!("{size} processes, one of {} cases: {:.1} s", SAMPLE + size, started.elapsed().as_secs_f64());
    }
    Ok(passed)
}
