//! Signals that end the command while it writes a file.

/// Makes SIGINT and SIGTERM remove unfinished files before they end the process. Repeated calls have no effect.
pub fn remove_partial_files_on_signals() {
    #[cfg(unix)]
    {
        use signal_hook::consts::{SIGINT, SIGTERM};
        static INSTALL_HANDLER: std::sync::Once = std::sync::Once::new();
        INSTALL_HANDLER.call_once(|| {
            // Without the handler, the signals keep their default action.
            let Ok(mut signals) = signal_hook::iterator::Signals::new([SIGINT, SIGTERM]) else { return };
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
