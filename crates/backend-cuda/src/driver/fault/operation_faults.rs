//! Faults of operations. An operation that may fault takes an error word: memory in which its kernels report a fault. Functions of this
//! module also record the launches that the outputs depend on, and check these launches before the outputs are read.

use std::slice::from_ref;
use std::sync::Arc;

use cuprum_core::Stream;

use super::error_word::{LaunchErrorWord, LaunchErrorWords};
use super::launch_ledger::PREPARED_LAUNCH;
use crate::driver::Context;
use crate::driver::memory::DeviceBuffer;
use crate::error::Result;

/// Runs `operation` with an error word of its own. Operations that run afterwards do not depend on this error word, even if `operation`
/// fails after a launch. The launches of `operation` do not depend on the error word of an enclosing operation.
#[inline]
pub fn run_with_own_error_word<R>(operation: impl FnOnce() -> R) -> R {
    let enclosing = PREPARED_LAUNCH.try_with(|prepared| prepared.borrow_mut().take()).ok().flatten();
    let result = operation();
    let own = PREPARED_LAUNCH.try_with(|prepared| prepared.replace(enclosing));
    drop(own); // after the borrow, because the destructor takes a lock
    result
}

/// Removes and returns the error word of the launch that this thread is preparing: the memory in which the launch's kernels report a fault.
fn take_prepared_error_word() -> Option<Arc<LaunchErrorWord>> {
    // The result is `None` if the thread is ending, because its thread-locals are then inaccessible.
    PREPARED_LAUNCH.try_with(|prepared| prepared.borrow_mut().take()).ok().flatten().map(|(.., error_word)| error_word)
}

impl Context {
    /// Returns the device address of the error word for the operation that this thread queues next on its stream. All kernels of one
    /// operation may share the error word. The address is valid until the thread waits for the device, reads an array, or ends the
    /// operation by [`crate::device::outcome_from_buffers`].
    pub fn fault_pointer(&'static self) -> Result<u64> {
        let (ordinal, stream) = (self.info().ordinal, self.current_stream_number());
        let known = PREPARED_LAUNCH.try_with(|prepared| match &*prepared.borrow() {
            Some((of, on, error_word)) if (*of, *on) == (ordinal, stream) => Some(error_word.word.device),
            _ => None,
        });
        if let Some(known) = known.ok().flatten() {
            return Ok(known);
        }
        let error_word = match stream >= Stream::FIRST_CAPTURE_STREAM_ID {
            true => self.capture_error_word(stream)?,
            false => self.error_word_for_launch(stream)?,
        };
        let address = error_word.word.device;
        let _ = PREPARED_LAUNCH.try_with(|prepared| prepared.borrow_mut().replace((ordinal, stream, error_word)));
        Ok(address)
    }
}

impl DeviceBuffer {
    /// Records that `outputs` depend on the launches that `inputs` depend on, and on the launch that this thread prepared
    /// ([`Context::fault_pointer`]). Call this function at the end of an operation, once its work is queued.
    #[inline]
    pub fn record_dependencies<'a>(outputs: impl Iterator<Item = &'a DeviceBuffer>, inputs: impl Iterator<Item = &'a DeviceBuffer>) {
        let mut error_words = LaunchErrorWords::new();
        inputs.for_each(|input| input.buffer_error_words().merge_error_words_into(&mut error_words));
        error_words.extend(take_prepared_error_word());
        for output in outputs {
            output.buffer_error_words().add_error_words(&error_words);
            if let Some(error_word) = output.graph_error_word() {
                output.buffer_error_words().add_error_words(from_ref(error_word));
            }
        }
    }

    /// Returns an error if a launch that the buffer's values depend on has faulted. The work that computed the values must have ended.
    pub(in crate::driver) fn check_faults(&self) -> Result<()> {
        let Some((error_word, fault)) = self.buffer_error_words().find_fault() else { return Ok(()) };
        let faults = self.context().fault_tracker();
        // The returned error reports the fault, so the ledgers of this thread and of ended threads must not report the fault again.
        faults
            .ledgers_of_ended_threads()
            .into_iter()
            .chain(self.context().existing_ledger())
            .for_each(|ledger| ledger.remove_reported_launch(&error_word));
        Err(fault.into())
    }
}
