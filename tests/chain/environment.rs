//! Environment variables. Each test runs in a separate process, since variables are read once.

use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use cuprum::{fusion_enabled, ones, settings};

use crate::test_accelerators::{first_element, set_up, u16_ones};

/// Runs an ignored test of this program in a child process with the given environment variables.
pub fn in_child(test: &str, variables: &[(&str, &str)]) -> Output {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test, "--ignored", "--nocapture"]);
    for name in ["CUPRUM_ACCELERATORS", "CUPRUM_DEVICE", "CUPRUM_FUSION", "CUPRUM_HOST_FALLBACK", "CUPRUM_TUNING", "CUPRUM_TRACE"] {
        command.env_remove(name);
    }
    let output = command.envs(variables.iter().copied()).output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(text.contains("1 passed") || !output.status.success(), "no test '{test}' ran: {text}");
    output
}

/// Counts the warnings of this process from now on.
pub fn count_warnings() -> Arc<AtomicUsize> {
    struct Counter(Arc<AtomicUsize>);
    impl tracing::Subscriber for Counter {
        fn enabled(&self, metadata: &tracing::Metadata<'_>) -> bool {
            *metadata.level() <= tracing::Level::WARN
        }
        fn new_span(&self, _: &tracing::span::Attributes<'_>) -> tracing::span::Id {
            tracing::span::Id::from_u64(1)
        }
        fn record(&self, _: &tracing::span::Id, _: &tracing::span::Record<'_>) {}
        fn record_follows_from(&self, _: &tracing::span::Id, _: &tracing::span::Id) {}
        fn event(&self, _: &tracing::Event<'_>) {
            self.0.fetch_add(1, Ordering::SeqCst);
        }
        fn enter(&self, _: &tracing::span::Id) {}
        fn exit(&self, _: &tracing::span::Id) {}
    }
    let count = Arc::new(AtomicUsize::new(0));
    tracing::subscriber::set_global_default(Counter(count.clone())).unwrap();
    count
}

fn passes(test: &str, variables: &[(&str, &str)]) {
    let output = in_child(test, variables);
    assert!(output.status.success(), "{test} under {variables:?}:\n{}", String::from_utf8_lossy(&output.stdout));
}

#[test]
fn the_order_comes_from_the_environment() {
    for (order, served) in [(" BETA , alpha,", "12"), ("ghost,gamma", "13"), ("", "1"), (" ", "1"), ("alpha", "11")] {
        passes("environment::child_is_served", &[("CUPRUM_ACCELERATORS", order), ("SERVED_BY", served)]);
    }
    passes("environment::child_is_served", &[("SERVED_BY", "11")]);
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_is_served() {
    set_up();
    let value = first_element(&u16_ones(&[4]).cumprod(0).unwrap()).unwrap();
    assert_eq!(value.to_string(), std::env::var("SERVED_BY").unwrap());
}

#[test]
fn an_unknown_name_in_the_environment_fails_every_call() {
    passes("environment::child_has_an_unknown_accelerator", &[("CUPRUM_ACCELERATORS", "alpha,alhpa")]);
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_has_an_unknown_accelerator() {
    // `ones` needs a kernel, so that it reads the order of accelerators.
    cuprum::Device::set_default(cuprum::Device::CPU).unwrap();
    let text = ones([4], cuprum::DType::U16).err().unwrap().to_string();
    assert!(text.starts_with("CUPRUM_ACCELERATORS: unknown accelerator 'alpha'; known: "), "{text}");
    assert_eq!(settings::check().unwrap_err().to_string(), text);
    set_up();
    let text = ones([4], cuprum::DType::U16).err().unwrap().to_string();
    assert!(text.starts_with("CUPRUM_ACCELERATORS: unknown accelerator 'alhpa'; known: "), "now alpha is there: {text}");
    cuprum::set_accelerators("alpha").unwrap();
    assert_eq!(first_element(&u16_ones(&[4]).cumprod(0).unwrap()).unwrap(), 11, "a setter overrides the environment");
}

#[test]
fn fusion_comes_from_the_environment() {
    for (value, on) in [("0", "false"), ("off", "false"), ("1", "true"), ("True", "true")] {
        passes("environment::child_fuses", &[("CUPRUM_FUSION", value), ("FUSES", on)]);
    }
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_fuses() {
    assert_eq!(fusion_enabled().to_string(), std::env::var("FUSES").unwrap());
    cuprum::with_fusion(true, || assert!(fusion_enabled()));
    assert_eq!(cuprum::add(u16_ones(&[2]), 1).unwrap().is_deferred(), fusion_enabled());
}

#[test]
fn check_finds_invalid_settings() {
    for (variable, value) in [
        ("CUPRUM_FUSION", "maybe"),
        ("CUPRUM_NUM_THREADS", "0"),
        ("CUPRUM_NUM_THREADS", "many"),
        ("CUPRUM_NUM_THREADS", "-99999999999999999999"),
        ("CUPRUM_CPU_MEMORY_LIMIT", "lots"),
        ("CUPRUM_GPU_MEMORY_LIMIT", "110%"),
        ("CUPRUM_DEVICE", "abacus"),
        ("CUPRUM_DEVICE", "cpu:x"),
        ("CUPRUM_DEVICE", "cpu:7"),
    ] {
        passes("environment::child_has_a_bad_setting", &[(variable, value)]);
    }
}

/// Every variable with an invalid value, and a part of the message that lists the accepted values.
const INVALID: [(&str, &str, &str); 16] = [
    ("CUPRUM_FUSION", "maybe", "use 1 or 0"),
    ("CUPRUM_NUM_THREADS", "x", "use 1 to 1024"),
    ("CUPRUM_CPU_MEMORY_LIMIT", "lots", "use bytes, 512M, 8G, or a share such as 80%"),
    ("CUPRUM_GPU_MEMORY_LIMIT", "110%", "use bytes, 512M, 8G, or a share such as 80%"),
    ("CUPRUM_GPU_MEMORY_POOL", "2", "use 1 or 0"),
    ("CUPRUM_HOST_FALLBACK", "never", "use error, warn or allow"),
    ("CUPRUM_COMPILE", "later", "use wait or background"),
    ("CUPRUM_MATMUL_PRECISION", "float8", "use float32 (highest), tensorfloat32 (high) or bfloat16 (medium)"),
    ("CUPRUM_REPRODUCIBLE_SUMS", "sometimes", "use 1 or 0"),
    ("CUPRUM_TUNING", "/no/such/file", "No such file"),
    ("CUPRUM_TRACE", "/no/such/folder/trace.json", "No such file"),
    ("CUPRUM_CUDA_PATH", "relative/folder", "give absolute paths"),
    ("CUPRUM_CCCL_PATH", "relative", "give absolute paths"),
    ("CUPRUM_CUTENSOR_PATH", "./lib", "give absolute paths"),
    ("CUPRUM_DEVICE", "abacus", "use auto, cpu"),
    ("CUPRUM_ACCELERATORS", "nobody", "known: "),
];

#[test]
fn the_first_use_reports_invalid_settings() {
    for (variable, value, accepted) in INVALID {
        passes("environment::child_uses_an_array", &[(variable, value), ("VARIABLE", variable), ("VALUE", value), ("ACCEPTED", accepted)]);
    }
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_uses_an_array() {
    let [variable, value, accepted] = ["VARIABLE", "VALUE", "ACCEPTED"].map(|name| std::env::var(name).unwrap());
    for _ in 0..2 {
        let text = ones([4], cuprum::DType::F32).err().unwrap().to_string();
        assert!(text.starts_with(&format!("{variable}: ")) && text.contains(&value) && text.contains(&accepted), "{text}");
    }
    assert_eq!(settings::check().unwrap_err().to_string(), ones([4], cuprum::DType::F32).err().unwrap().to_string());
}

#[test]
#[ignore = "run by the test above, in a process of its own"]
fn child_has_a_bad_setting() {
    assert!(settings::check().is_err());
}
