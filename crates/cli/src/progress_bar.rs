//! A progress bar for files that take long to read or write.

use std::io::IsTerminal;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use cuprum::io::bytes_transferred;
use indicatif::{ProgressBar, ProgressStyle};

/// Time after which a read or write of files shows a progress bar.
const FIRST_DISPLAY_DELAY: Duration = Duration::from_secs(2);
/// Time between two updates of the bar.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// A progress bar on standard error. It appears after two seconds, only on a terminal, and disappears when this value is dropped.
pub struct TransferProgress {
    /// Sender of the channel that ends the thread: the thread stops when the sender is dropped.
    done: Option<Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl TransferProgress {
    /// Starts to watch file transfers of `total` bytes (`None` if unknown). `what` is the label of the bar.
    pub fn start(what: &'static str, total: Option<u64>) -> TransferProgress {
        if !std::io::stderr().is_terminal() {
            return TransferProgress { done: None, thread: None };
        }
        let (done, ended) = channel::<()>();
        let before = bytes_transferred();
        let watch = move || {
            if ended.recv_timeout(FIRST_DISPLAY_DELAY) != Err(RecvTimeoutError::Timeout) {
                return;
            }
            let bar = new_progress_bar(what, total);
            loop {
                let position = bytes_transferred() - before;
                // `total` is an estimate: text and compressed files differ in size from their arrays.
                if bar.length().is_some_and(|length| length < position) {
                    bar.set_length(position);
                }
                bar.set_position(position);
                if ended.recv_timeout(UPDATE_INTERVAL) != Err(RecvTimeoutError::Timeout) {
                    return bar.finish_and_clear();
                }
            }
        };
        // If the thread cannot be started, no progress bar is shown.
        let thread = std::thread::Builder::new().spawn(watch).ok();
        TransferProgress { done: Some(done), thread }
    }
}

impl Drop for TransferProgress {
    fn drop(&mut self) {
        self.done = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn new_progress_bar(what: &'static str, total: Option<u64>) -> ProgressBar {
    let (bar, template) = match total.filter(|&n| n > 0) {
        Some(total) => (ProgressBar::new(total), "{msg} {bar:30} {bytes} of {total_bytes}, {bytes_per_sec}, {eta} left"),
        None => (ProgressBar::no_length(), "{msg} {bytes}, {bytes_per_sec}"),
    };
    let style = ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar());
    bar.with_style(style).with_message(what)
}
