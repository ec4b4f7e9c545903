//! Registration of accelerators: names, duplicates and bases.

use cuprum::Error;
use cuprum::core::registry::DeviceProvider;
use cuprum::core::{Accelerator, Availability, register, registry};

use crate::test_accelerators::{ALPHA, process_order, set_up};

fn made(name: &'static str) -> &'static Accelerator {
    Box::leak(Box::new(Accelerator {
        name,
        device: "cpu",
        rank: 0,
        summary: "another one",
        probe: || Availability::Ready(String::new()),
        kernels: &[],
        base: None,
    }))
}

#[test]
fn registering_an_accelerator_twice_has_no_effect() {
    set_up();
    let before = registry::all_accelerators().len();
    register(&ALPHA).unwrap();
    assert_eq!(registry::all_accelerators().iter().filter(|a| a.name == "alpha").count(), 1);
    assert_eq!(registry::all_accelerators().len(), before);
}

#[test]
fn a_second_accelerator_of_the_same_name_is_an_error() {
    set_up();
    let error = register(made("alpha")).unwrap_err();
    assert!(matches!(error, Error::Setting { .. }));
    let text = error.to_string();
    assert!(text.contains("two accelerators are named 'alpha'"), "{text}");
    assert!(text.contains("short arrays") && text.contains("another one"), "{text}");
    assert_eq!(registry::all_accelerators().iter().find(|a| a.name == "alpha").unwrap().summary, "short arrays");
    assert!(register(made("cpu")).is_err(), "the name of a base is taken too");
}

#[test]
fn invalid_names_are_errors() {
    for name in ["", "Upper", "two words", "a,b", "auto"] {
        let text = register(made(name)).unwrap_err().to_string();
        assert!(text.contains("is not a name"), "{text}");
    }
}

#[test]
fn a_device_has_one_base() {
    let second = Accelerator {
        base: Some(DeviceProvider { count: || 1, is_ready: |_| true, open: |_| Err(Error::value("open", "never asked")) }),
        ..Accelerator {
            name: "second",
            device: "cpu",
            rank: 0,
            summary: "",
            probe: || Availability::Ready(String::new()),
            kernels: &[],
            base: None,
        }
    };
    let text = register(Box::leak(Box::new(second))).unwrap_err().to_string();
    assert!(text.contains("device 'cpu' has a base accelerator already"), "{text}");
}

#[test]
fn a_late_registration_joins_the_chain() {
    let _turn = process_order();
    let places = || registry::accelerator_status().unwrap().iter().find(|s| s.accelerator.name == "late").map(|s| s.position);
    assert_eq!(places(), None);
    assert!(cuprum::with_accelerators("late", || ()).is_err());
    register(made("late")).unwrap();
    assert!(places().flatten().is_some());
    assert!(cuprum::with_accelerators("late", || ()).is_ok());
}
