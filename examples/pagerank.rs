//! PageRank by power iteration. The sparse matrix-vector product is `take` and `segment_sum`, the damping step one fused pass.
//!
//!     cargo run --release --example pagerank -- [pages] [links per page] [device]

use cuprum::{DType, Device, Result, arange, full, random::Generator, segment_sum, with_device};

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let pages = args.next().and_then(|a| a.parse().ok()).unwrap_or(100_000);
    let links = args.next().and_then(|a| a.parse().ok()).unwrap_or(16);
    let device = Device::parse(&args.next().unwrap_or_else(|| "auto".into()))?;
    with_device(device, || run(pages, links))
}

fn run(pages: usize, links: usize) -> Result<()> {
    // CSR form: row i lists the pages that link to page i. Every page has the same number of random links.
    let sources = Generator::new(1).integers(0, pages as i64, pages * links, DType::I64)?;
    let offsets = arange(0, pages * links + 1, links)?;
    let share = 1.0 / links as f64;
    let damping = 0.85;

    let mut rank = full(pages, 1.0 / pages as f64, DType::F64)?;
    for step in 1..=50 {
        let incoming = segment_sum(&rank.take(&sources, 0)?, &offsets)?;
        let spread = &incoming * (damping * share);
        let total = spread.sum(())?.item_as::<f64>()?;
        let next = spread + (1.0 - total) / pages as f64;
        let change = (&next - &rank).abs()?.sum(())?.item()?;
        rank = next;
        if change < 1e-10 {
            println!("converged after {step} steps on {}", rank.device());
            break;
        }
    }
    println!("sum of ranks {}", rank.sum(())?);
    println!("highest rank {} at page {}", rank.max(())?, rank.argmax(())?);
    Ok(())
}
