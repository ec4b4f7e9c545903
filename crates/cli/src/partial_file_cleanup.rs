//! Removes partially written files when a signal, such as that of Ctrl-C, ends the command.

/// Makes SIGINT and SIGTERM remove unfinished files before they end the process. Repeated calls have no effect. A signal that the process
/// ignores remains ignored.
pub fn remove_partial_files_on_signals() {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGINT, SIGTERM};
        static INSTALL_SIGNAL_HANDLERS: std::sync::Once = std::sync::Once::new();
        INSTALL_SIGNAL_HANDLERS.call_once(|| {
            let handled = [SIGINT, SIGTERM].into_iter().filter(|&signal| !is_signal_ignored(signal));
            // If the handler cannot be installed, the signals keep their default action.
            let Ok(mut signals) = signal_hook::iterator::Signals::new(handled) else { return };
            let wait = move || {
                if let Some(signal) = signals.forever().next() {
                    cuprum::io::remove_partial_files();
                    let _ = signal_hook::low_level::emulate_default_handler(signal);
                }
            };
            let _ = std::thread::Builder::new().spawn(wait);
        });
    }
}

/// Returns whether the process ignores `signal`, as scripts make their background jobs ignore SIGINT. Always returns false on systems other
/// than Linux, which do not report this.
#[cfg(unix)]
fn is_signal_ignored(signal: i32) -> bool {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| u64::from_str_radix(line.strip_prefix("SigIgn:")?.trim(), 16).ok());
    mask.is_some_and(|mask| mask >> (signal - 1) & 1 == 1)
}
