//! Atomic writes: a file appears under its name only when it is complete.
//!
//! A regular file is written beside its target and then renamed. No reader sees an incomplete file, and an error leaves the old
//! file. On Linux the file has no name while it is written, so a process that is killed leaves no partial file. On file systems
//! without unnamed files, the file has a temporary name, and [`remove_partial_files`] removes the file. Pipes, devices and open files,
//! such as `/dev/stdout`, are written directly.

use std::fs::{File, Metadata, OpenOptions};
use std::hash::{BuildHasher, RandomState};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use cuprum_core::fault_injection::{FailurePoint, inject_io_failure};
use cuprum_core::{Error, Result};

use crate::errors::{add_path_to_error, convert_system_error};

/// Temporary files that are being written, for [`remove_partial_files`].
static PARTIAL_FILES: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn lock_partial_file_list() -> MutexGuard<'static, Vec<PathBuf>> {
    PARTIAL_FILES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the temporary files that any thread is writing. Intended for a program that ends the process after a signal.
///
/// These files exist only on file systems that lack unnamed temporary files (`O_TMPFILE`). A write in progress fails afterwards.
///
/// # Examples
/// ```
/// cuprum_io::remove_partial_files(); // nothing is being written
/// ```
pub fn remove_partial_files() {
    for path in lock_partial_file_list().drain(..) {
        let _ = std::fs::remove_file(path);
    }
}

/// Writes a file atomically: `fill` writes a temporary file, which then replaces the file `path`. After an error, the old file is
/// unchanged.
///
/// An existing file keeps its permissions, and its owner where the system allows. Pipes and devices are written directly, and so are open
/// files that `path` names by descriptor, such as `/dev/stdout`.
///
/// # Errors
/// [`Error::Io`] with `path` for errors of the operating system, and errors of `fill`.
///
/// # Examples
/// ```
/// # use cuprum_io as io;
/// let path = std::env::temp_dir().join(format!("cuprum-doc-{}.txt", std::process::id()));
/// io::write_file(&path, |file| file.write_all(b"text").map_err(|e| cuprum_core::Error::system("", e)))?;
/// assert_eq!(io::read_file(&path)?, b"text");
/// # std::fs::remove_file(&path).ok();
/// # Ok::<(), cuprum_core::Error>(())
/// ```
pub fn write_file(path: impl AsRef<Path>, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    write_file_atomically(path.as_ref(), fill)
}

/// Calls `fill` to write the contents of the file `path`. Errors contain `path`.
///
/// An existing file keeps its permissions, and its owner where the system allows. Symbolic links are followed.
pub(crate) fn write_file_atomically(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    write_and_replace_file(path, fill).map_err(|e| add_path_to_error(path, e))
}

fn write_and_replace_file(path: &Path, fill: impl FnOnce(&mut dyn Write) -> Result<()>) -> Result<()> {
    let target = follow_symbolic_links(path)?;
    let existing = match std::fs::metadata(path) {
        Ok(metadata) => Some(metadata),
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => None,
        Err(e) => return Err(convert_system_error(e)),
    };
    if let Some(metadata) = &existing {
        if !metadata.is_file() || is_descriptor_path(&target) {
            let mut file = open_for_direct_write(&target, metadata.is_file()).map_err(convert_system_error)?;
            fill(&mut FaultInjectingFile(&mut file))?;
            return file.flush().map_err(convert_system_error);
        }
        // Opening `path` checks that the file's permissions allow writing. A rename to `path` would not check this.
        OpenOptions::new().write(true).open(path).map_err(convert_system_error)?;
    }
    let folder = target.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if !folder.is_dir() {
        return Err(Error::io("", format!("folder {} does not exist", folder.display())));
    }
    let created = TemporaryFile::create_temporary_file(folder, existing.is_some());
    let mut temporary = created.map_err(|e| add_path_to_error(Path::new(&format!("folder {}", folder.display())), e))?;
    fill(&mut FaultInjectingFile(&mut temporary.file))?;
    if let Some(metadata) = &existing {
        copy_permissions_and_owner(&temporary.file, metadata)?;
    }
    temporary.rename_to_target(folder, &target)
}

/// Returns whether `path` names an open file by its descriptor: `/dev/fd/1` or `/proc/self/fd/1`. A rename to the file's name would not
/// reach the descriptor.
fn is_descriptor_path(path: &Path) -> bool {
    path.parent().is_some_and(|folder| folder == Path::new("/dev/fd") || folder.starts_with("/proc") && folder.ends_with("fd"))
}

/// Opens a file that is written in place, and empties it if `truncate`. If `path` names standard output or standard error, writes
/// continue at the position of that stream, so that redirected output before them remains.
fn open_for_direct_write(path: &Path, truncate: bool) -> std::io::Result<File> {
    #[cfg(unix)]
    {
        use std::os::fd::AsFd;
        let is_of_this_process = path.starts_with("/dev/fd") || path.starts_with("/proc/self");
        match path.file_name().and_then(std::ffi::OsStr::to_str).filter(|_| is_descriptor_path(path) && is_of_this_process) {
            Some("1") => {
                std::io::stdout().flush()?;
                return Ok(std::io::stdout().as_fd().try_clone_to_owned()?.into());
            }
            Some("2") => return Ok(std::io::stderr().as_fd().try_clone_to_owned()?.into()),
            _ => {}
        }
    }
    OpenOptions::new().write(true).truncate(truncate).open(path)
}

/// Follows symbolic links from `path` and returns the file they lead to. The file need not exist. A link that stands for an open file, such
/// as `/proc/self/fd/1`, is not followed.
fn follow_symbolic_links(path: &Path) -> Result<PathBuf> {
    /// Maximum number of symbolic links that are followed, as in Linux.
    const MAX_SYMBOLIC_LINKS: usize = 40;
    let mut target = path.to_path_buf();
    for _ in 0..MAX_SYMBOLIC_LINKS {
        if is_descriptor_path(&target) {
            return Ok(target);
        }
        match std::fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => return Ok(target),
        }
    }
    Err(Error::io("", "too many levels of symbolic links"))
}

#[cfg(unix)]
fn copy_permissions_and_owner(file: &File, existing: &Metadata) -> Result<()> {
    use std::os::unix::fs::{MetadataExt, fchown};
    let own = file.metadata().map_err(convert_system_error)?;
    if (own.uid(), own.gid()) != (existing.uid(), existing.gid()) {
        // Errors of `fchown` are ignored: an unprivileged process cannot give a file to another owner. The file then belongs to the
        // process.
        let _ = fchown(file, Some(existing.uid()), Some(existing.gid()));
    }
    file.set_permissions(existing.permissions()).map_err(convert_system_error)
}

#[cfg(not(unix))]
fn copy_permissions_and_owner(file: &File, existing: &Metadata) -> Result<()> {
    file.set_permissions(existing.permissions()).map_err(convert_system_error)
}

/// A file that is being written. The file disappears if the value is dropped before [`TemporaryFile::rename_to_target`].
struct TemporaryFile {
    file: File,
    /// Name of the file, if it has one.
    name: Option<PathBuf>,
}

impl TemporaryFile {
    /// Creates a file in `folder`, with the permissions of new files. Only the owner can open it under its temporary name if
    /// `is_private`.
    fn create_temporary_file(folder: &Path, is_private: bool) -> Result<TemporaryFile> {
        inject_io_failure(FailurePoint::FileOpen).map_err(convert_system_error)?;
        match create_unnamed_file(folder) {
            Some(file) => Ok(TemporaryFile { file, name: None }),
            None => TemporaryFile::create_with_random_name(folder, is_private),
        }
    }

    #[cfg_attr(not(unix), expect(unused_variables))]
    fn create_with_random_name(folder: &Path, is_private: bool) -> Result<TemporaryFile> {
        let mut options = OpenOptions::new();
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, if is_private { 0o600 } else { 0o666 });
        options.write(true).create_new(true);
        let (name, file) = create_with_unused_name(|| random_temporary_name(folder), |name| options.open(name))?;
        Ok(TemporaryFile { file, name: Some(name) })
    }

    /// Renames the file to `target`, which is in `folder`.
    fn rename_to_target(mut self, folder: &Path, target: &Path) -> Result<()> {
        if self.name.is_none() {
            let (name, ()) = create_with_unused_name(|| random_temporary_name(folder), |name| name_unnamed_file(&self.file, name))?;
            self.name = Some(name);
        }
        let name = self.name.clone().unwrap_or_default();
        inject_io_failure(FailurePoint::Rename).map_err(convert_system_error)?;
        std::fs::rename(&name, target).map_err(convert_system_error)?;
        self.name = None;
        lock_partial_file_list().retain(|other| *other != name);
        Ok(())
    }
}

impl Drop for TemporaryFile {
    fn drop(&mut self) {
        if let Some(name) = &self.name {
            let _ = std::fs::remove_file(name);
            lock_partial_file_list().retain(|other| other != name);
        }
    }
}

/// A file whose writes fail on request of a test.
struct FaultInjectingFile<'a>(&'a mut File);

impl Write for FaultInjectingFile<'_> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        inject_io_failure(FailurePoint::FileWrite)?;
        self.0.write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.0.flush()
    }
}

/// Returns a name in `folder` with 64 random bits. The process id does not suffice: processes of different containers can have the same
/// id.
fn random_temporary_name(folder: &Path) -> PathBuf {
    static NEXT_NAME_SEED: AtomicU64 = AtomicU64::new(0);
    let random = RandomState::new().hash_one(NEXT_NAME_SEED.fetch_add(1, Ordering::Relaxed));
    folder.join(format!(".cuprum-{}-{random:016x}.part", std::process::id()))
}

/// Calls `create` with one name from `next_name` after another while a file of that name exists. Adds the name of the new file to
/// [`PARTIAL_FILES`].
fn create_with_unused_name<T>(
    mut next_name: impl FnMut() -> PathBuf,
    mut create: impl FnMut(&Path) -> std::io::Result<T>,
) -> Result<(PathBuf, T)> {
    /// Maximum number of names that are tried, for file systems that report every name as existing.
    const MAX_NAME_ATTEMPTS: usize = 100;
    for _ in 0..MAX_NAME_ATTEMPTS {
        let name = next_name();
        // The lock is held until the name is registered, so that [`remove_partial_files`] removes every file that has a name, and no file
        // that another process has created.
        let mut names = lock_partial_file_list();
        match create(&name) {
            Ok(created) => {
                names.push(name.clone());
                return Ok((name, created));
            }
            Err(e) if e.kind() == std::io::ErrorKind::AlreadyExists => {}
            Err(e) => return Err(convert_system_error(e)),
        }
    }
    Err(Error::io("", "no unused name for a temporary file"))
}

/// Creates a file without a name in `folder`. Returns `None` if the operating system or the file system does not support unnamed
/// files.
#[cfg(target_os = "linux")]
fn create_unnamed_file(folder: &Path) -> Option<File> {
    use rustix::fs::{Mode, OFlags, open};
    if !Path::new("/proc/self/fd").is_dir() {
        return None;
    }
    open(folder, OFlags::TMPFILE | OFlags::WRONLY | OFlags::CLOEXEC, Mode::from_raw_mode(0o666)).ok().map(File::from)
}

/// Gives an unnamed file the name `name`.
#[cfg(target_os = "linux")]
fn name_unnamed_file(file: &File, name: &Path) -> std::io::Result<()> {
    use rustix::fs::{AtFlags, CWD, linkat};
    use std::os::fd::AsRawFd;
    let unnamed = format!("/proc/self/fd/{}", file.as_raw_fd());
    Ok(linkat(CWD, unnamed, CWD, name, AtFlags::SYMLINK_FOLLOW)?)
}

#[cfg(not(target_os = "linux"))]
fn create_unnamed_file(_folder: &Path) -> Option<File> {
    None
}

#[cfg(not(target_os = "linux"))]
fn name_unnamed_file(_file: &File, _name: &Path) -> std::io::Result<()> {
    Err(std::io::ErrorKind::Unsupported.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_existing_file_is_neither_replaced_nor_removed() {
        let folder = tempfile::tempdir().unwrap();
        let [theirs, ours, target] = ["a.part", "b.part", "c"].map(|name| folder.path().join(name));
        std::fs::write(&theirs, "theirs").unwrap();
        let mut names = [theirs.clone(), ours.clone()].into_iter();
        let open = |name: &Path| OpenOptions::new().write(true).create_new(true).open(name);
        let (name, file) = create_with_unused_name(|| names.next().unwrap(), open).unwrap();
        assert_eq!(name, ours);
        assert!(!lock_partial_file_list().contains(&theirs));
        TemporaryFile { file, name: Some(name) }.rename_to_target(folder.path(), &target).unwrap();
        assert!(create_with_unused_name(|| theirs.clone(), open).is_err());
        assert_eq!(std::fs::read(&theirs).unwrap(), b"theirs");
        assert!(target.is_file() && !ours.exists());
    }

    #[test]
    fn a_named_temporary_file_disappears_unless_it_is_persisted() {
        let folder = tempfile::tempdir().unwrap();
        let names = || std::fs::read_dir(folder.path()).unwrap().map(|e| e.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>();
        let temporary = TemporaryFile::create_with_random_name(folder.path(), false).unwrap();
        assert_eq!(names().len(), 1);
        assert!(lock_partial_file_list().contains(temporary.name.as_ref().unwrap()));
        drop(temporary);
        assert!(names().is_empty());

        let temporary = TemporaryFile::create_with_random_name(folder.path(), false).unwrap();
        temporary.rename_to_target(folder.path(), &folder.path().join("a")).unwrap();
        assert_eq!(names(), ["a"]);

        let temporary = TemporaryFile::create_with_random_name(folder.path(), false).unwrap();
        let own = lock_partial_file_list().iter().filter(|p| p.starts_with(folder.path())).count();
        assert_eq!(own, 1);
        std::fs::remove_file(temporary.name.as_ref().unwrap()).unwrap();
        assert!(temporary.rename_to_target(folder.path(), &folder.path().join("b")).is_err(), "a removed file cannot be renamed");
        assert_eq!(names(), ["a"]);

        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let private = TemporaryFile::create_with_random_name(folder.path(), true).unwrap();
            assert_eq!(private.file.metadata().unwrap().permissions().mode() & 0o077, 0);
        }
    }
}
