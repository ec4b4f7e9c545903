//! The `.npz` format: a zip archive of `.npy` members.

use std::fs::File;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use cuprum_core::{Error, NdArray, Result};
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use rawzip::extra_fields::ExtraFieldId;
use rawzip::path::{EntryPath, ZipFilePath};
use rawzip::{CompressionMethod, Header, ReaderAt, ZipArchive, ZipArchiveEntryWayfinder, ZipArchiveWriter};

use crate::errors::{add_path_to_error, convert_system_error, file_format_error};
use crate::file_streams::{self, read_to_end};
use crate::mapped_file::MappedFile;
use crate::{atomic_file, npy};

/// Identifier of the padding field in a member's header that aligns the member's data. Other zip writers use the same identifier.
const ALIGNMENT_FIELD_ID: u16 = 0xa11e;
/// Alignment of uncompressed members in files that are written, in bytes.
const DATA_ALIGNMENT: u64 = 64;

/// An open `.npz` file, whose arrays are read one by one.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-{}.npz", std::process::id()));
/// let (a, b) = (cuprum::arange(0, 3, 1)?, cuprum::linspace(0.0, 1.0, 5)?);
/// io::save_npz(&path, &[("a", &a), ("b", &b)])?;
///
/// let file = io::Npz::open(&path)?;
/// assert_eq!(file.names().collect::<Vec<_>>(), ["a", "b"]);
/// assert_eq!(file.read("a")?.to_vec::<i64>()?, [0, 1, 2]); // `b` is not read
/// assert_eq!(file.map("b")?.shape(), [5]);                 // uses the mapped file
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub struct Npz {
    path: PathBuf,
    archive: NpzArchive<NpzBytes>,
    mapping: OnceLock<MappedFile>,
}

/// The bytes of an archive: a file, or the contents of a pipe.
enum NpzBytes {
    /// The file for reads, and a second handle of the same open file for mapping. Opening the name again could open another file.
    File(rawzip::FileReader, File),
    Bytes(Vec<u8>),
}

impl ReaderAt for NpzBytes {
    fn read_at(&self, buffer: &mut [u8], offset: u64) -> std::io::Result<usize> {
        match self {
            NpzBytes::File(file, _) => file.read_at(buffer, offset),
            NpzBytes::Bytes(bytes) => bytes.as_slice().read_at(buffer, offset),
        }
    }
}

impl Npz {
    /// Opens a file and reads its directory. A pipe is read into memory.
    ///
    /// # Errors
    /// [`Error::Io`] for a file that is missing, is no zip archive, has two arrays with the same name, or members that overlap. NumPy reads
    /// the last of several arrays with the same name.
    pub fn open(path: impl AsRef<Path>) -> Result<Npz> {
        let path = path.as_ref();
        let (mut file, size) = file_streams::open_for_reading(path)?;
        let opened = match size {
            Some(size) => {
                let to_map = file.try_clone().map_err(|e| Error::system(path, e))?;
                NpzArchive::open(NpzBytes::File(file.into(), to_map), size)
            }
            None => read_to_end(&mut file).and_then(|bytes| {
                let size = bytes.len() as u64;
                NpzArchive::open(NpzBytes::Bytes(bytes), size)
            }),
        };
        let archive = opened.map_err(|e| add_path_to_error(path, e))?;
        Ok(Npz { path: path.to_path_buf(), archive, mapping: OnceLock::new() })
    }

    /// Returns the names of the arrays, in the order of the archive.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.archive.members.iter().map(|m| m.name.as_str())
    }

    /// Reads the array `name` onto the current device, and verifies its checksum.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no array with this name, or if the array is damaged or has an unsupported dtype. [`Error::OutOfMemory`].
    pub fn read(&self, name: &str) -> Result<NdArray> {
        self.archive.read(self.find_member(name)?).map_err(|e| add_path_to_error(&self.path, e))
    }

    /// Reads the text `name`: a member that holds one string, such as the format of a sparse array that SciPy wrote.
    ///
    /// # Errors
    /// [`Error::Io`] if there is no member with this name, or if the member is damaged or is not a single string.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # use {cuprum_core as cuprum, cuprum_io as io};
    /// # fn main() -> cuprum::Result<()> {
    /// let path = std::env::temp_dir().join(format!("cuprum-doc-text-{}.npz", std::process::id()));
    /// io::save_npz_with_texts(&path, &[("a", &cuprum::arange(0, 3, 1)?)], &[("unit", "metre")], false)?;
    /// assert_eq!(io::Npz::open(&path)?.read_text("unit")?, "metre");
    /// # std::fs::remove_file(&path).ok();
    /// # Ok(())
    /// # }
    /// ```
    pub fn read_text(&self, name: &str) -> Result<String> {
        let text = self.archive.read_member_with(self.find_member(name)?, |source, _| npy::read_text_scalar(source));
        text.map_err(|e| add_path_to_error(&self.path, add_path_to_error(Path::new(name), e)))
    }

    /// Returns the array `name` as a view of the memory-mapped file, without reading the elements.
    ///
    /// If the array is compressed, big-endian, bool, or not aligned in the file, it is read as [`Npz::read`] does. Members are aligned
    /// in files that [`save_npz`] wrote, and by chance in files that NumPy wrote. The checksum of a mapped array is not verified. If the
    /// current device is a GPU, the elements are copied to it.
    ///
    /// Mapped arrays are read-only: an assignment to them copies first. The file must not change while a mapped array lives. If the file is
    /// truncated, reading a page after its new end terminates the process with SIGBUS.
    ///
    /// # Errors
    /// The errors of [`Npz::read`].
    pub fn map(&self, name: &str) -> Result<NdArray> {
        let member = self.find_member(name)?;
        match self.try_map_member(member).map_err(|e| add_path_to_error(&self.path, add_path_to_error(Path::new(name), e)))? {
            Some(array) => Ok(array),
            None => self.read(name),
        }
    }

    fn try_map_member(&self, member: &NpyMember) -> Result<Option<NdArray>> {
        let NpzBytes::File(_, file) = self.archive.zip.get_ref() else { return Ok(None) };
        if member.method != CompressionMethod::STORE {
            return Ok(None);
        }
        if self.mapping.get().is_none() {
            let _ = self.mapping.set(MappedFile::of(file).map_err(convert_system_error)?);
        }
        let Some(mapping) = self.mapping.get() else { return Ok(None) };
        let (start, end) = self.archive.zip.get_entry(member.place).map_err(damaged_archive_error)?.compressed_data_range();
        let range = usize::try_from(start).unwrap_or(usize::MAX)..usize::try_from(end).unwrap_or(usize::MAX);
        let data = mapping.bytes().get(range.clone()).ok_or_else(|| file_format_error("truncated: the file ends within the array"))?;
        npy::try_view_mapped_array(mapping, range.start, data)
    }

    fn find_member(&self, name: &str) -> Result<&NpyMember> {
        let found = self.archive.members.iter().find(|m| m.name == name);
        found.ok_or_else(|| Error::io(&self.path, crate::array_names::no_such_array_message(name, self.names())))
    }
}

/// A zip archive and its `.npy` members.
struct NpzArchive<R> {
    zip: ZipArchive<R>,
    members: Vec<NpyMember>,
}

/// A `.npy` member of an archive.
struct NpyMember {
    /// Name without the extension.
    name: String,
    place: ZipArchiveEntryWayfinder,
    method: CompressionMethod,
    encrypted: bool,
    /// Size of the `.npy` file in bytes, as the directory of the archive declares it.
    size: u64,
}

fn damaged_archive_error(e: rawzip::Error) -> Error {
    file_format_error(format!("damaged npz file: {e}"))
}

impl<R: ReaderAt> NpzArchive<R> {
    /// Reads the directory of an archive of `size` bytes.
    fn open(reader: R, size: u64) -> Result<NpzArchive<R>> {
        let mut buffer = vec![0; rawzip::MAX_CENTRAL_DIRECTORY_RECORD_SIZE];
        let located = rawzip::ZipLocator::new().locate_in_reader(reader, &mut buffer, size);
        let zip = located.map_err(|(_, e)| file_format_error(format!("not an npz file, or a truncated one: {e}")))?;
        let (mut members, mut regions) = (Vec::new(), Vec::new());
        let mut entries = zip.entries(&mut buffer);
        let mut found = 0;
        while let Some(entry) = entries.next_entry().map_err(damaged_archive_error)? {
            found += 1;
            // The local header has 30 bytes, the name, and perhaps an extra field, before the data.
            let len = 30 + entry.file_path().as_bytes().len() as u64;
            let start = entry.local_header_offset();
            regions.push((start, start.saturating_add(len).saturating_add(entry.compressed_size_hint())));
            let path = String::from_utf8_lossy(entry.file_path().as_bytes()).into_owned();
            let Some(name) = path.strip_suffix(".npy") else { continue };
            members.push(NpyMember {
                name: name.to_string(),
                place: entry.wayfinder(),
                method: entry.compression_method(),
                encrypted: entry.flags().is_encrypted(),
                size: entry.uncompressed_size_hint(),
            });
        }
        if found != zip.entries_hint() {
            return Err(file_format_error(format!("damaged npz file: {found} members, its end record declares {}", zip.entries_hint())));
        }
        crate::array_names::check_unique_names(members.iter().map(|m| m.name.as_str()))?;
        // Overlapping members are an error: members that share their data could unpack to far more than the size of the file allows.
        regions.sort_unstable();
        if regions.windows(2).any(|pair| pair[1].0 < pair[0].1) {
            return Err(file_format_error("damaged npz file: members overlap"));
        }
        Ok(NpzArchive { zip, members })
    }

    /// Reads a member and verifies its size and checksum. Errors name the member.
    fn read(&self, member: &NpyMember) -> Result<NdArray> {
        self.read_member(member).map_err(|e| add_path_to_error(Path::new(&member.name), e))
    }

    fn read_member(&self, member: &NpyMember) -> Result<NdArray> {
        self.read_member_with(member, read_array_and_check_end)
    }

    /// Calls `read` with the unpacked bytes of a member, and with the declared number of bytes. When `read` reaches the end of the bytes,
    /// their size and checksum are verified.
    fn read_member_with<T>(&self, member: &NpyMember, read: impl FnOnce(&mut dyn Read, u64) -> Result<T>) -> Result<T> {
        if member.encrypted {
            return Err(file_format_error("encrypted members are not supported"));
        }
        let entry = self.zip.get_entry(member.place).map_err(damaged_archive_error)?;
        let stored = entry.reader();
        match member.method {
            CompressionMethod::STORE => read(&mut entry.verifying_reader(stored), member.size),
            CompressionMethod::DEFLATE => read(&mut entry.verifying_reader(DeflateDecoder::new(stored)), member.size),
            other => Err(file_format_error(format!("the compression method {other:?} is not supported; store or deflate are"))),
        }
    }
}

/// Reads the array in `source`, and checks that `source` ends after the array. When it reaches its end, `source` verifies its size and
/// checksum. At most `size` bytes, the declared size, are unpacked.
fn read_array_and_check_end(source: &mut dyn Read, size: u64) -> Result<NdArray> {
    let array = npy::read_array(source, Some(size))?;
    let mut rest = [0];
    match source.read(&mut rest) {
        Ok(0) => Ok(array),
        Ok(_) => Err(file_format_error("damaged member: it has bytes after the array")),
        Err(e) => Err(file_format_error(format!("damaged member: {e}"))),
    }
}

/// Reads all arrays of a `.npz` file with their names, in the order of the archive (`numpy.load`).
///
/// # Errors
/// [`Error::Io`] for a file that is missing or damaged, or has an array of an unsupported dtype; [`Error::OutOfMemory`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-all-{}.npz", std::process::id()));
/// io::save_npz_compressed(&path, &[("a", &cuprum::arange(0, 3, 1)?)])?;
/// let (name, array) = io::load_npz(&path)?.remove(0);
/// assert_eq!((name.as_str(), array.to_vec::<i64>()?), ("a", vec![0, 1, 2]));
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn load_npz(path: impl AsRef<Path>) -> Result<Vec<(String, NdArray)>> {
    let file = Npz::open(path)?;
    let read = |m: &NpyMember| Ok((m.name.clone(), file.archive.read(m).map_err(|e| add_path_to_error(&file.path, e))?));
    file.archive.members.iter().map(read).collect()
}

/// Reads all arrays from the bytes of a `.npz` file.
///
/// # Errors
/// The errors of [`load_npz`].
///
/// # Examples
/// ```
/// # use cuprum_io as io;
/// assert!(io::load_npz_bytes(b"not a zip archive").unwrap_err().to_string().contains("not an npz file"));
/// ```
pub fn load_npz_bytes(bytes: &[u8]) -> Result<Vec<(String, NdArray)>> {
    arrays_from_bytes(bytes).map_err(|e| add_path_to_error(Path::new("npz bytes"), e))
}

/// Reads all arrays from the bytes of a `.npz` file. Errors do not contain a file name.
pub(crate) fn arrays_from_bytes(bytes: &[u8]) -> Result<Vec<(String, NdArray)>> {
    let archive = NpzArchive::open(bytes, bytes.len() as u64)?;
    archive.members.iter().map(|m| Ok((m.name.clone(), archive.read(m)?))).collect()
}

/// Writes named arrays to an uncompressed `.npz` file (`numpy.savez`), aligned so that [`Npz::map`] can use them.
///
/// # Errors
/// [`Error::Io`], also for bfloat16 and repeated names, and errors of evaluation.
///
/// # Examples
/// See [`Npz`].
pub fn save_npz(path: impl AsRef<Path>, arrays: &[(&str, &NdArray)]) -> Result<()> {
    save_npz_file(path.as_ref(), arrays, false)
}

/// Writes named arrays to a compressed `.npz` file (`numpy.savez_compressed`).
///
/// # Errors
/// The errors of [`save_npz`].
///
/// # Examples
/// See [`load_npz`].
pub fn save_npz_compressed(path: impl AsRef<Path>, arrays: &[(&str, &NdArray)]) -> Result<()> {
    save_npz_file(path.as_ref(), arrays, true)
}

/// Writes named arrays and named ASCII texts to a `.npz` file, such as those of a sparse array in SciPy's layout. Texts become byte
/// strings.
///
/// # Errors
/// The errors of [`save_npz`].
///
/// # Examples
/// See [`Npz::read_text`].
pub fn save_npz_with_texts(path: impl AsRef<Path>, arrays: &[(&str, &NdArray)], texts: &[(&str, &str)], compressed: bool) -> Result<()> {
    let path = path.as_ref();
    crate::array_names::check_unique_names(arrays.iter().map(|(name, _)| *name).chain(texts.iter().map(|(name, _)| *name)))?;
    let mut encoded = prepare_npy_members(arrays).map_err(|e| add_path_to_error(path, e))?;
    for (name, text) in texts {
        encoded.push((format!("{name}.npy"), npy::PreparedNpy::from_ascii_text(text)?));
    }
    atomic_file::write_file_atomically(path, |file| write_archive(file, &encoded, compressed))
}

fn save_npz_file(path: &Path, arrays: &[(&str, &NdArray)], compressed: bool) -> Result<()> {
    let encoded = prepare_npy_members(arrays).map_err(|e| add_path_to_error(path, e))?;
    atomic_file::write_file_atomically(path, |file| write_archive(file, &encoded, compressed))
}

/// Evaluates all arrays and encodes their headers. An error of evaluation thus occurs before a file is created.
pub(crate) fn prepare_npy_members(arrays: &[(&str, &NdArray)]) -> Result<Vec<(String, npy::PreparedNpy)>> {
    crate::array_names::check_unique_names(arrays.iter().map(|(name, _)| *name))?;
    let encode = |(name, array): &(&str, &NdArray)| {
        let encoded = npy::PreparedNpy::prepare_for_writing(array).map_err(|e| add_path_to_error(Path::new(name), e))?;
        Ok((format!("{name}.npy"), encoded))
    };
    arrays.iter().map(encode).collect()
}

/// Writes an archive to a stream, with deflated members if `compressed`.
pub(crate) fn write_archive(file: &mut dyn Write, members: &[(String, npy::PreparedNpy)], compressed: bool) -> Result<()> {
    let mut archive = ZipArchiveWriter::new(file);
    for (name, encoded) in members {
        write_member(&mut archive, name, encoded, compressed)?;
    }
    archive.finish().map_err(convert_zip_error)?;
    Ok(())
}

/// Returns the path of a member. A name outside ASCII is declared as UTF-8. A name that is not a normalized path, such as `../x`, is stored
/// unchanged, without a declared encoding, because `rawzip` declares one only for normalized paths.
fn encoded_member_path(name: &str) -> EntryPath<'_> {
    if !name.is_ascii() && ZipFilePath::from_str(name).as_str() == name {
        return EntryPath::conformant(name);
    }
    EntryPath::verbatim(name.as_bytes())
}

fn write_member(archive: &mut ZipArchiveWriter<&mut dyn Write>, name: &str, encoded: &npy::PreparedNpy, compressed: bool) -> Result<()> {
    // The data of a zip member follows a local header: 30 bytes, the name, and the extra field, which has a header of 4 bytes.
    let start = archive.stream_offset() + 30 + name.len() as u64 + 4;
    let padding = if compressed { 0 } else { (DATA_ALIGNMENT - start % DATA_ALIGNMENT) % DATA_ALIGNMENT };
    let mut member = archive.new_file(encoded_member_path(name));
    if compressed {
        member = member.compression_method(CompressionMethod::DEFLATE);
    } else {
        let zeros = [0; DATA_ALIGNMENT as usize];
        let id = ExtraFieldId::new(ALIGNMENT_FIELD_ID);
        member = member.extra_field(id, &zeros[..padding as usize], Header::LOCAL).map_err(convert_zip_error)?;
    }
    let (mut entry, config) = member.start().map_err(convert_zip_error)?;
    let descriptor = if compressed {
        let mut writer = config.wrap(DeflateEncoder::new(&mut entry, flate2::Compression::default()));
        encoded.write(&mut writer)?;
        let (encoder, descriptor) = writer.finish().map_err(convert_zip_error)?;
        encoder.finish().map_err(convert_system_error)?;
        descriptor
    } else {
        let mut writer = config.wrap(&mut entry);
        encoded.write(&mut writer)?;
        writer.finish().map_err(convert_zip_error)?.1
    };
    entry.finish(descriptor).map_err(convert_zip_error)?;
    Ok(())
}

fn convert_zip_error(e: rawzip::Error) -> Error {
    match e.into_kind() {
        rawzip::ErrorKind::IO(e) => convert_system_error(e),
        kind => file_format_error(format!("{kind:?}")),
    }
}
