//! Order of accelerators: by rank and name, or as set for a scope, the process or the environment.

use std::sync::{Arc, Barrier};

use cuprum::core::registry;
use cuprum::{set_accelerators, with_accelerators};

use crate::test_accelerators::{GHOST_PROBES, first_element, process_order, run_under, set_up, u16_ones};

fn served(order: &str, shape: &[usize]) -> u64 {
    run_under(order, shape).0.unwrap()
}

#[test]
fn without_an_order_rank_decides_then_name_and_the_base_is_last() {
    let _turn = process_order();
    // Other tests of this process register these, before or after this one.
    let others = ["reader", "plain", "indexer", "adder"];
    let all: Vec<_> =
        registry::all_accelerators().iter().filter(|a| a.device == "cpu" && !others.contains(&a.name)).map(|a| a.name).collect();
    assert_eq!(all, ["broken", "liar", "ghost", "jumpy", "filtered", "alpha", "beta", "gamma", "cpu"]);
    let value = |shape: &[usize]| first_element(&u16_ones(shape).cumprod(0).unwrap()).unwrap();
    assert_eq!(value(&[4]), 11, "alpha, by rank");
    assert_eq!(value(&[20]), 12, "beta, by name before gamma, which was registered earlier");
    assert_eq!(value(&[20, 2]), 13, "gamma, after beta declined");
}

#[test]
fn a_named_order_is_followed_and_the_base_takes_the_rest() {
    assert_eq!(served("alpha,beta", &[4]), 11);
    assert_eq!(served("beta,alpha", &[4]), 12);
    assert_eq!(served("gamma,alpha,beta", &[4]), 13);
    assert_eq!(served("alpha", &[20]), 1, "the base, which computes the product of ones");
    assert_eq!(served("beta", &[2, 2]), 1);
    assert_eq!(served("", &[4]), 1, "an empty list is the base alone");
    assert_eq!(served("cpu", &[4]), 1, "naming the base changes nothing");
    assert_eq!(served("cpu,alpha", &[4]), 11, "the base stays last");
}

#[test]
fn accelerators_know_whether_the_order_is_named() {
    let _turn = process_order();
    let known = || {
        (
            registry::is_accelerator_order_set(),
            registry::decline_unless_order_is_set("another is faster").map_err(|reason| reason.text().to_string()),
        )
    };
    let unnamed = (false, Err("another is faster".to_string()));
    assert_eq!(known(), unnamed);
    for order in ["beta", "", "auto"] {
        assert_eq!(with_accelerators(order, known).unwrap(), (true, Ok(())), "{order}");
    }
    assert_eq!(known(), unnamed);
}

#[test]
fn names_are_trimmed_case_insensitive_and_deduplicated() {
    assert_eq!(served("  BETA ,Alpha", &[4]), 12);
    assert_eq!(served("beta,,alpha,", &[4]), 12);
    assert_eq!(served("alpha,beta,alpha,ALPHA", &[4]), 11);
    let (_, records) = run_under("alpha,beta,alpha,beta,alpha", &[20, 2]);
    let declined: Vec<_> = records[0].declined.iter().map(|(name, _)| *name).collect();
    assert_eq!(declined, ["alpha", "beta", "beta"], "once for each kernel");
}

#[test]
fn an_unknown_name_is_an_error_that_lists_the_known_ones() {
    set_up();
    for order in ["alhpa", "alpha,alhpa", " alhpa "] {
        let text = with_accelerators(order, || ()).unwrap_err().to_string();
        assert!(text.starts_with("with_accelerators: unknown accelerator 'alhpa'; known: "), "{text}");
        for name in ["alpha", "beta", "gamma", "ghost", "cub", "cutensor"] {
            assert!(text.contains(name), "{name} is not in '{text}'");
        }
        let of_setter = set_accelerators(order).unwrap_err().to_string();
        assert_eq!(of_setter, text.replace("with_", "set_"), "the setter shares the parser");
    }
}

#[test]
fn missing_accelerators_are_skipped_and_probed_once() {
    assert_eq!(served("ghost,jumpy,beta", &[4]), 12);
    assert_eq!(served("jumpy", &[4]), 1);
    assert_eq!(served("ghost", &[4]), 1);
    assert_eq!(GHOST_PROBES.load(std::sync::atomic::Ordering::SeqCst), 1);
    let status = registry::accelerator_status().unwrap();
    let of = |name: &str| status.iter().find(|s| s.accelerator.name == name).unwrap();
    let text = |name: &str| format!("{:?}", of(name).availability);
    assert_eq!(text("ghost"), r#"Missing { why: "no ghost in this house", help: "hold a seance" }"#);
    assert_eq!(text("jumpy"), r#"Missing { why: "its probe panicked", help: "" }"#);
    assert_eq!((of("ghost").position, of("jumpy").position), (None, None));
}

#[test]
fn scopes_nest_and_end() {
    set_up();
    let a = u16_ones(&[4]);
    let value = || first_element(&a.cumprod(0).unwrap()).unwrap();
    with_accelerators("beta", || {
        assert_eq!(value(), 12);
        with_accelerators("gamma", || assert_eq!(value(), 13)).unwrap();
        assert_eq!(value(), 12);
        assert!(with_accelerators("nobody", || unreachable!()).is_err());
        assert_eq!(value(), 12);
        let panicked = std::panic::catch_unwind(|| with_accelerators("", || panic!("on the way out")));
        assert!(panicked.is_err());
        assert_eq!(value(), 12, "a panic ends its scope");
        let inherited = std::thread::scope(|s| s.spawn(|| with_accelerators("", value)).join().unwrap().unwrap());
        assert_eq!(inherited, 1, "a scope is thread-local");
        assert_eq!(value(), 12);
    })
    .unwrap();
}

#[test]
fn scopes_are_thread_local() {
    set_up();
    let orders = [("alpha", 11), ("beta", 12), ("gamma", 13), ("", 1), ("ghost,gamma", 13), ("gamma,alpha", 13)];
    let together = Arc::new(Barrier::new(orders.len()));
    let threads = orders.map(|(order, expected)| {
        let together = together.clone();
        std::thread::spawn(move || {
            let a = u16_ones(&[4]);
            // No assertions here: a panicking thread would block the others at the barrier.
            let values: Vec<_> = (0..50)
                .map(|_| {
                    together.wait();
                    with_accelerators(order, || {
                        together.wait();
                        a.cumprod(0).and_then(|p| first_element(&p))
                    })
                })
                .collect();
            (order, expected, values)
        })
    });
    for thread in threads {
        let (order, expected, values) = thread.join().unwrap();
        for value in values {
            assert_eq!(value.unwrap().unwrap(), expected, "under '{order}'");
        }
    }
}

#[test]
fn the_order_of_the_process_applies_to_every_thread() {
    let _turn = process_order();
    let elsewhere = || std::thread::spawn(|| first_element(&u16_ones(&[4]).cumprod(0).unwrap()).unwrap()).join().unwrap();
    let here = || first_element(&u16_ones(&[4]).cumprod(0).unwrap()).unwrap();
    set_accelerators("gamma, beta").unwrap();
    assert_eq!((here(), elsewhere()), (13, 13));
    assert_eq!(registry::accelerator_order().unwrap(), Some(vec!["gamma".to_string(), "beta".to_string()]));
    let places: Vec<_> = registry::accelerator_status().unwrap().iter().filter_map(|s| Some((s.position?, s.accelerator.name))).collect();
    assert!(places.contains(&(0, "gamma")) && places.contains(&(1, "beta")), "{places:?}");
    set_accelerators(["beta", "gamma"]).unwrap();
    assert_eq!((here(), elsewhere()), (12, 12));
    assert!(set_accelerators("beta,nobody").is_err());
    assert_eq!(here(), 12, "an invalid order changes nothing");
    assert_eq!(with_accelerators("gamma", here).unwrap(), 13, "a scope overrides the process");
    set_accelerators("").unwrap();
    assert_eq!((here(), elsewhere()), (1, 1));
    set_accelerators(None).unwrap();
    assert_eq!((here(), elsewhere()), (11, 11), "back to rank");
}
