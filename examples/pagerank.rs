//! PageRank by power iteration on a random graph whose numbers of links follow a power law. One sparse product per step.
//!
//!     cargo run --release --example pagerank -- [pages] [links per page] [device]

use cuprum::random::Generator;
use cuprum::sparse::{CooArray, CsrArray, Sparse, SparseMath, connected_components};
use cuprum::{DType, Device, NdArray, Result, full, maximum, ones, with_device};

/// Probability of following a link instead of a jump to any page.
const DAMPING: f64 = 0.85;

fn main() -> Result<()> {
    let mut args = std::env::args().skip(1);
    let pages = args.next().and_then(|a| a.parse().ok()).unwrap_or(100_000);
    let links = args.next().and_then(|a| a.parse().ok()).unwrap_or(16);
    let device = Device::parse(&args.next().unwrap_or_else(|| "auto".into()))?;
    with_device(device, || run(pages, links))
}

fn run(pages: usize, links: usize) -> Result<()> {
    let graph = random_graph(pages, links)?;
    println!("{pages} pages, {} links, {} components", graph.nnz(), connected_components(&graph)?.0);
    let rank = page_rank(&graph)?;
    let total = rank.sum(())?.item()?.as_f64();
    println!("highest rank {} at page {}, on {}", rank.max(())?, rank.argmax(())?, rank.device());
    assert!((total - 1.0).abs() < 1e-9, "the ranks sum to {total}");
    // Popular pages have small numbers, so the first page in a hundred has far more than its share.
    let popular = rank.index(cuprum::s![..pages / 100])?.sum(())?.item()?.as_f64();
    assert!(popular > 0.05, "the first hundredth of the pages has a rank of {popular}");
    Ok(())
}

/// Returns a graph in which an element in row i and column j is the number of links from page j to page i.
fn random_graph(pages: usize, links: usize) -> Result<CsrArray> {
    let random = Generator::new(1);
    let count = pages * links;
    let from = random.integers(0, pages as i64, count, DType::I64)?;
    // The cubes of uniform numbers favour pages with small numbers.
    let to = random.random(count, DType::F64)?.power(3)?.multiply(pages as f64)?.astype(DType::I64)?;
    CooArray::new(&ones(count, DType::F64)?, &to, &from, [pages, pages])?.to_csr()
}

/// Returns the stationary distribution of a reader who follows links, and sometimes jumps to any page.
fn page_rank(graph: &CsrArray) -> Result<NdArray> {
    let pages = graph.indptr().size() - 1;
    // Each column is divided by the number of links from its page. Pages without links keep a column of zeros.
    let share = maximum(graph.sum(0)?, 1.0)?;
    let follow = graph.divide_dense(&share)?.to_csr()?;
    let mut rank = full(pages, 1.0 / pages as f64, DType::F64)?;
    for step in 1..=100 {
        let spread = follow.matmul(&rank)? * DAMPING;
        // The rest is the probability of a jump, from pages without links as well.
        let jump = (1.0 - spread.sum(())?.item()?.as_f64()) / pages as f64;
        let next = spread + jump;
        let change = (&next - &rank).abs()?.sum(())?.item()?.as_f64();
        rank = next;
        if change < 1e-10 {
            println!("converged after {step} steps");
            return Ok(rank);
        }
    }
    panic!("the ranks have not converged");
}
