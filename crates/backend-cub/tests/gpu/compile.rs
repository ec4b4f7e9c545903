//! What happens while a kernel is compiled.

use cuprum_backend_cub::CUB;
use cuprum_core::{Availability, Device, NdArray, Result, add, explain, multiply, registry, with_accelerators, with_device};

#[test]
fn the_base_serves_while_a_kernel_is_compiled() {
    if let Availability::Missing { why, help } = registry::availability(&CUB) {
        return println!("skipped: {why}; {help}");
    }
    if std::env::var_os("CUPRUM_COMPILE").is_some() || std::env::var_os("CUPRUM_ACCELERATORS").is_some() {
        return println!("skipped: settings decide");
    }
    let Ok(device) = Device::parse("cuda") else { return println!("skipped: no device") };
    let test = || -> Result<()> {
        // An expression that no cache has: 20 bits of the time choose its operations.
        let bits = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap().as_micros();
        let x = NdArray::from_slice(&(0..1000i64).collect::<Vec<_>>())?;
        let condition = || {
            let term = |sum: NdArray, bit: u32| if bits >> bit & 1 == 1 { add(&sum, &x) } else { multiply(&sum, &x) };
            (0..20).try_fold(x.clone(), term)?.greater(0)
        };
        let want = condition()?.to_vec::<bool>()?;
        let want: Vec<i64> = (0..1000i64).filter(|i| want[*i as usize]).collect();
        let start = std::time::Instant::now();
        let mut first = None;
        loop {
            let (places, records) = explain(|| condition()?.flatnonzero());
            assert_eq!(places?.to_vec::<i64>()?, want);
            let select = records.iter().find(|r| r.op == "flatnonzero").expect("a selection");
            first = first.or(Some(select.to_string()));
            match select.served_by {
                Some("cub") => break,
                _ => assert!(select.declined.iter().any(|(who, why)| *who == "cub" && why.contains("being compiled")), "{select}"),
            }
            assert!(start.elapsed().as_secs() < 60, "{select}");
            std::thread::sleep(std::time::Duration::from_millis(10));
        }
        println!("at first: {}", first.unwrap_or_default());
        Ok(())
    };
    with_device(device, || with_accelerators(None::<&str>, test)).unwrap().unwrap();
}
