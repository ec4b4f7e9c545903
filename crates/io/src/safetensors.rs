//! The safetensors format: named arrays behind a JSON header.

use std::fmt;
use std::io::Write;
use std::path::{Path, PathBuf};

use cuprum_core::error::shape_text;
use cuprum_core::host_buffer::{HostBuffer, check_memory_available};
use cuprum_core::layout::checked_size;
use cuprum_core::{DType, Error, NdArray, Result};
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};

use crate::array_bytes::{array_from_host_buffer, for_each_byte_block, normalize_bools};
use crate::atomic_file;
use crate::errors::{add_path_to_error, file_format_error};
use crate::file_streams::{self, read_to_end};
use crate::mapped_file::MappedFile;

/// Maximum size of the header in bytes, as in the `safetensors` crate.
const MAX_HEADER_BYTES: u64 = 100_000_000;
/// Maximum memory of the parsed header, in bytes per byte of text. Metadata of the form `"a":"b",` takes the most: while the vector grows,
/// a pair takes three times 48 bytes, and the allocations of its strings take 64.
const MAX_PARSED_BYTES_PER_HEADER_BYTE: usize = 26;
/// Alignment of the elements in files that are written, in bytes.
const DATA_ALIGNMENT: usize = 64;
/// Key of the metadata in the header: named texts that belong to the file as a whole.
const METADATA_KEY: &str = "__metadata__";

/// An open safetensors file. The file is mapped: opening reads the header, and arrays on the host use the file's memory.
///
/// Mapped arrays are read-only: an assignment to them copies first. bool arrays, and arrays that are not aligned in the file, are copied.
/// If the current device is a GPU, reading an array copies the elements from the file's memory to the GPU in one transfer.
///
/// The file must not change while this value or one of its arrays lives. If the file is truncated, reading a page after its new end
/// terminates the process with SIGBUS.
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// use cuprum::{DType, NdArray, ones};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-{}.safetensors", std::process::id()));
/// io::save_safetensors(&path, &[("weight", &ones([2, 3], DType::BF16)?), ("bias", &NdArray::from_slice(&[0.5f32])?)])?;
///
/// let model = io::Safetensors::open(&path)?;
/// assert_eq!(model.names().collect::<Vec<_>>(), ["weight", "bias"]);
/// let weight = model.read("weight")?;
/// assert_eq!((weight.dtype(), weight.shape()), (DType::BF16, &[2, 3][..]));
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub struct Safetensors {
    path: PathBuf,
    contents: SafetensorsBytes,
    header: SafetensorsHeader,
}

/// The bytes of a safetensors file.
enum SafetensorsBytes {
    Mapped(MappedFile),
    Read(Vec<u8>),
}

impl SafetensorsBytes {
    fn bytes(&self) -> &[u8] {
        match self {
            SafetensorsBytes::Mapped(mapping) => mapping.bytes(),
            SafetensorsBytes::Read(bytes) => bytes,
        }
    }
}

impl Safetensors {
    /// Opens a file and checks its header. A pipe is read into memory.
    ///
    /// # Errors
    /// [`Error::Io`] for a file that is missing, or whose header is damaged: invalid JSON, repeated names, or byte ranges of arrays that
    /// overlap, leave gaps, reach past the end, or differ in size from the shape.
    pub fn open(path: impl AsRef<Path>) -> Result<Safetensors> {
        let path = path.as_ref();
        let contents = match MappedFile::open(path)? {
            Ok(mapping) => SafetensorsBytes::Mapped(mapping),
            Err(mut file) => SafetensorsBytes::Read(read_to_end(&mut file).map_err(|e| add_path_to_error(path, e))?),
        };
        let header = SafetensorsHeader::parse_and_check_header(contents.bytes()).map_err(|e| add_path_to_error(path, e))?;
        Ok(Safetensors { path: path.to_path_buf(), contents, header })
    }

    /// Returns the names of the arrays, in the order of the header.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.header.tensors.iter().map(|t| t.name.as_str())
    }

    /// Returns the text that the file stores beside its arrays, as names and values.
    pub fn metadata(&self) -> &[(String, String)] {
        &self.header.metadata
    }

    /// Returns the array `name` on the current device.
    ///
    /// # Errors
    /// [`Error::Io`] if the file has no array of that name, or its dtype is not supported (float8, float4).
    pub fn read(&self, name: &str) -> Result<NdArray> {
        let found = self.header.tensors.iter().find(|t| t.name == name);
        let Some(tensor) = found else {
            return Err(Error::io(&self.path, crate::array_names::no_such_array_message(name, self.names())));
        };
        self.read_tensor(tensor)
    }

    fn read_tensor(&self, tensor: &TensorEntry) -> Result<NdArray> {
        let read = || match &self.contents {
            SafetensorsBytes::Mapped(mapping) => {
                let dtype = tensor.dtype()?;
                match mapping.view_as_array(dtype, &tensor.shape, tensor.start)? {
                    Some(array) => Ok(array),
                    None => tensor.copy_array_from_bytes(mapping.bytes()),
                }
            }
            SafetensorsBytes::Read(bytes) => tensor.copy_array_from_bytes(bytes),
        };
        let array = read().map_err(|e| add_path_to_error(&self.path, add_path_to_error(Path::new(&tensor.name), e)))?;
        file_streams::add_transferred_bytes(array.nbytes());
        Ok(array)
    }
}

/// Returns all arrays of a safetensors file with their names, in the order of the header. On the host, the arrays are views of the
/// memory-mapped file, which must not change while they live: see [`Safetensors`].
///
/// # Errors
/// The errors of [`Safetensors::open`] and [`Safetensors::read`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-load-{}.safetensors", std::process::id()));
/// io::save_safetensors(&path, &[("a", &cuprum::arange(0, 3, 1)?)])?;
/// let (name, array) = io::load_safetensors(&path)?.remove(0);
/// assert_eq!((name.as_str(), array.to_vec::<i64>()?), ("a", vec![0, 1, 2]));
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn load_safetensors(path: impl AsRef<Path>) -> Result<Vec<(String, NdArray)>> {
    let file = Safetensors::open(path)?;
    file.header.tensors.iter().map(|t| Ok((t.name.clone(), file.read_tensor(t)?))).collect()
}

/// Returns all arrays from the bytes of a safetensors file, copied to the current device.
///
/// # Errors
/// The errors of [`load_safetensors`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let header = r#"{"a":{"dtype":"U8","shape":[2],"data_offsets":[0,2]}}"#;
/// let bytes = [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &[3, 4]].concat();
/// assert_eq!(io::load_safetensors_bytes(&bytes)?[0].1.to_vec::<u8>()?, [3, 4]);
/// # Ok(())
/// # }
/// ```
pub fn load_safetensors_bytes(bytes: &[u8]) -> Result<Vec<(String, NdArray)>> {
    arrays_from_bytes(bytes).map_err(|e| add_path_to_error(Path::new("safetensors bytes"), e))
}

/// Returns all arrays from the bytes of a safetensors file. Errors do not contain a file name.
pub(crate) fn arrays_from_bytes(bytes: &[u8]) -> Result<Vec<(String, NdArray)>> {
    let header = SafetensorsHeader::parse_and_check_header(bytes)?;
    let read = |tensor: &TensorEntry| {
        Ok((tensor.name.clone(), tensor.copy_array_from_bytes(bytes).map_err(|e| add_path_to_error(Path::new(&tensor.name), e))?))
    };
    header.tensors.iter().map(read).collect()
}

/// Writes named arrays to a safetensors file. The file appears under its name when it is complete.
///
/// # Errors
/// [`Error::Io`], also for repeated names and for complex128, which the format does not support; errors of evaluation.
///
/// # Examples
/// See [`Safetensors`].
pub fn save_safetensors(path: impl AsRef<Path>, arrays: &[(&str, &NdArray)]) -> Result<()> {
    save_safetensors_with(path, arrays, &[])
}

/// Writes named arrays to a safetensors file, with metadata ([`Safetensors::metadata`]): named texts that belong to the file as a whole.
///
/// # Errors
/// The errors of [`save_safetensors`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-meta-{}.safetensors", std::process::id()));
/// io::save_safetensors_with(&path, &[("a", &cuprum::arange(0, 3, 1)?)], &[("format", "pt")])?;
/// assert_eq!(io::Safetensors::open(&path)?.metadata(), [("format".to_string(), "pt".to_string())]);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn save_safetensors_with(path: impl AsRef<Path>, arrays: &[(&str, &NdArray)], metadata: &[(&str, &str)]) -> Result<()> {
    let path = path.as_ref();
    let encoded = PreparedSafetensors::prepare_for_writing(arrays, metadata).map_err(|e| add_path_to_error(path, e))?;
    atomic_file::write_file_atomically(path, |file| encoded.write(file))
}

/// Evaluated arrays and the header of their safetensors file, ready to be written.
pub(crate) struct PreparedSafetensors<'a> {
    header: Vec<u8>,
    /// The arrays in the order in which their elements are written. Arrays with large elements come first, so that all arrays are aligned.
    arrays: Vec<&'a NdArray>,
}

impl<'a> PreparedSafetensors<'a> {
    /// Evaluates the arrays and encodes their header.
    pub fn prepare_for_writing(arrays: &[(&str, &'a NdArray)], metadata: &[(&str, &str)]) -> Result<PreparedSafetensors<'a>> {
        crate::array_names::check_unique_names(arrays.iter().map(|(name, _)| *name))?;
        let mut order: Vec<usize> = (0..arrays.len()).collect();
        order.sort_by_key(|&i| std::cmp::Reverse(arrays[i].1.dtype().itemsize()));
        let mut starts = vec![0usize; arrays.len()];
        let mut end = 0usize;
        for &i in &order {
            starts[i] = end;
            end = end.saturating_add(arrays[i].1.nbytes());
        }
        let json = |text: &str| serde_json::to_string(text).map_err(file_format_error);
        let mut entries = Vec::new();
        if !metadata.is_empty() {
            let pairs: Result<Vec<String>> = metadata.iter().map(|(k, v)| Ok(format!("{}:{}", json(k)?, json(v)?))).collect();
            entries.push(format!("\"{METADATA_KEY}\":{{{}}}", pairs?.join(",")));
        }
        for ((name, array), start) in arrays.iter().zip(starts) {
            if *name == METADATA_KEY {
                return Err(file_format_error(format!("{METADATA_KEY} is not a name of an array")));
            }
            array.eval()?;
            let code = dtype_code(array.dtype()).map_err(|e| add_path_to_error(Path::new(name), e))?;
            let end = start + array.nbytes();
            entries.push(format!(r#"{}:{{"dtype":"{code}","shape":{:?},"data_offsets":[{start},{end}]}}"#, json(name)?, array.shape()));
        }
        let mut text = format!("{{{}}}", entries.join(","));
        let padding = (DATA_ALIGNMENT - (8 + text.len()) % DATA_ALIGNMENT) % DATA_ALIGNMENT;
        text.extend(std::iter::repeat_n(' ', padding));
        let header = [&(text.len() as u64).to_le_bytes(), text.as_bytes()].concat();
        Ok(PreparedSafetensors { header, arrays: order.iter().map(|&i| arrays[i].1).collect() })
    }

    /// Writes the header and the elements.
    pub fn write(&self, file: &mut dyn Write) -> Result<()> {
        file_streams::write_all(file, &self.header)?;
        self.arrays.iter().try_for_each(|array| for_each_byte_block(array, &mut |block| file_streams::write_all(file, block)))
    }
}

/// The dtypes that both the format and cuprum support, with their names in the format.
const DTYPE_CODES: [(&str, DType); 14] = [
    ("BOOL", DType::Bool),
    ("I8", DType::I8),
    ("I16", DType::I16),
    ("I32", DType::I32),
    ("I64", DType::I64),
    ("U8", DType::U8),
    ("U16", DType::U16),
    ("U32", DType::U32),
    ("U64", DType::U64),
    ("F16", DType::F16),
    ("BF16", DType::BF16),
    ("F32", DType::F32),
    ("F64", DType::F64),
    ("C64", DType::C64),
];

fn dtype_code(dtype: DType) -> Result<&'static str> {
    let found = DTYPE_CODES.iter().find(|(_, d)| *d == dtype);
    found.map(|(name, _)| *name).ok_or_else(|| file_format_error(format!("the safetensors format does not support {dtype}")))
}

/// The checked header of a safetensors file.
struct SafetensorsHeader {
    tensors: Vec<TensorEntry>,
    metadata: Vec<(String, String)>,
}

/// An array in a safetensors file.
struct TensorEntry {
    name: String,
    code: String,
    shape: Vec<usize>,
    /// Offset of the first byte of the elements in the file.
    start: usize,
    /// Offset one past the last byte of the elements in the file.
    end: usize,
}

impl TensorEntry {
    fn dtype(&self) -> Result<DType> {
        let found = DTYPE_CODES.iter().find(|(name, _)| *name == self.code);
        found.map(|(_, dtype)| *dtype).ok_or_else(|| file_format_error(format!("dtype {} is not supported", self.code)))
    }

    /// Returns the array as a copy from `bytes`, the contents of the file.
    fn copy_array_from_bytes(&self, bytes: &[u8]) -> Result<NdArray> {
        let dtype = self.dtype()?;
        let mut host = HostBuffer::from_bytes(bytes.get(self.start..self.end).unwrap_or_default())?;
        if dtype == DType::Bool {
            normalize_bools(host.as_mut_bytes()?);
        }
        array_from_host_buffer(dtype, &self.shape, host)
    }
}

impl SafetensorsHeader {
    /// Reads and checks the header of the safetensors file whose contents are `bytes`.
    fn parse_and_check_header(bytes: &[u8]) -> Result<SafetensorsHeader> {
        let truncated = |what: &str| file_format_error(format!("truncated safetensors file: it has {} bytes, {what}", bytes.len()));
        let (len, rest) = bytes.split_first_chunk::<8>().ok_or_else(|| truncated("its header's length needs 8"))?;
        let len = u64::from_le_bytes(*len);
        if len > MAX_HEADER_BYTES {
            return Err(file_format_error(format!("not a safetensors file: a header of {len} bytes, the maximum is {MAX_HEADER_BYTES}")));
        }
        let len = len as usize;
        let text = rest.get(..len).ok_or_else(|| truncated(&format!("its header needs {}", 8 + len as u64)))?;
        check_memory_available("load", len.saturating_mul(MAX_PARSED_BYTES_PER_HEADER_BYTE))?;
        let raw: JsonHeader = serde_json::from_slice(text).map_err(|e| file_format_error(format!("damaged safetensors header: {e}")))?;
        let mut tensors = Vec::with_capacity(raw.tensors.len());
        for (name, info) in raw.tensors {
            let (start, end) = info.data_offsets;
            let [start, end] = [start, end].map(|at| usize::try_from(at).ok().and_then(|at| at.checked_add(8 + len)));
            let (Some(start), Some(end)) = (start, end) else {
                return Err(damaged_header_error(&name, "its region is too large for this machine"));
            };
            tensors.push(TensorEntry { name, code: info.dtype, shape: info.shape, start, end });
        }
        for tensor in &tensors {
            let Some(found) = tensor.end.checked_sub(tensor.start) else {
                let (from, to) = (tensor.start - 8 - len, tensor.end - 8 - len);
                return Err(damaged_header_error(&tensor.name, format!("its region ends at byte {to}, before its start at byte {from}")));
            };
            let size = checked_size("load", &tensor.shape).map_err(|e| damaged_header_error(&tensor.name, e))?;
            // The element sizes of dtypes that cuprum lacks are unknown, so the size of their byte ranges is not checked.
            // Reading arrays of such a dtype is an error.
            if let Ok(dtype) = tensor.dtype()
                && size.checked_mul(dtype.itemsize()) != Some(found)
            {
                return Err(damaged_header_error(
                    &tensor.name,
                    format!("a region of {found} bytes for {dtype} {}", shape_text(&tensor.shape)),
                ));
            }
        }
        check_array_byte_ranges(&tensors, 8 + len, bytes.len())?;
        crate::array_names::check_unique_names(tensors.iter().map(|t| t.name.as_str()))?;
        Ok(SafetensorsHeader { tensors, metadata: raw.metadata })
    }
}

fn damaged_header_error(name: &str, message: impl fmt::Display) -> Error {
    file_format_error(format!("damaged safetensors header: {name:?}: {message}"))
}

/// Checks that the byte ranges of the arrays cover the bytes from `start` to `end` of the file without gaps and overlaps.
fn check_array_byte_ranges(tensors: &[TensorEntry], start: usize, end: usize) -> Result<()> {
    let mut order: Vec<&TensorEntry> = tensors.iter().collect();
    order.sort_by_key(|t| (t.start, t.end));
    let mut at = start;
    let mut before = "the header";
    for tensor in order {
        let (from, to) = (tensor.start - start, tensor.end - start);
        if tensor.start < at {
            return Err(damaged_header_error(&tensor.name, format!("its region from byte {from} to {to} overlaps the one of {before:?}")));
        }
        if tensor.start > at {
            return Err(damaged_header_error(&tensor.name, format!("{} unused bytes before its region", tensor.start - at)));
        }
        if tensor.end > end {
            let message = format!("truncated: {} bytes of data, {:?} needs the bytes from {from} to {to}", end - start, tensor.name);
            return Err(file_format_error(message));
        }
        (at, before) = (tensor.end, &tensor.name);
    }
    if at < end {
        return Err(file_format_error(format!("damaged safetensors file: {} bytes after the last array", end - at)));
    }
    Ok(())
}

/// The header as it is written in JSON, in order. A map would lose repeated names.
#[derive(Default)]
struct JsonHeader {
    tensors: Vec<(String, JsonTensorEntry)>,
    metadata: Vec<(String, String)>,
}

#[derive(serde::Deserialize)]
struct JsonTensorEntry {
    dtype: String,
    shape: Vec<usize>,
    data_offsets: (u64, u64),
}

impl<'de> Deserialize<'de> for JsonHeader {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<JsonHeader, D::Error> {
        struct Entries;
        impl<'de> Visitor<'de> for Entries {
            type Value = JsonHeader;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object of arrays by name")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<JsonHeader, A::Error> {
                let mut header = JsonHeader::default();
                while let Some(name) = map.next_key::<String>()? {
                    if name == METADATA_KEY {
                        let JsonStringPairs(pairs) = map.next_value()?;
                        if header.metadata.is_empty() { header.metadata = pairs } else { header.metadata.extend(pairs) }
                    } else {
                        header.tensors.push((name, map.next_value()?));
                    }
                }
                Ok(header)
            }
        }
        deserializer.deserialize_map(Entries)
    }
}

/// A JSON object of strings: its names and values, in the order of the text.
struct JsonStringPairs(Vec<(String, String)>);

impl<'de> Deserialize<'de> for JsonStringPairs {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> std::result::Result<JsonStringPairs, D::Error> {
        struct Strings;
        impl<'de> Visitor<'de> for Strings {
            type Value = JsonStringPairs;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("an object of strings")
            }
            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> std::result::Result<JsonStringPairs, A::Error> {
                let mut pairs = Vec::new();
                while let Some(pair) = map.next_entry()? {
                    pairs.push(pair);
                }
                Ok(JsonStringPairs(pairs))
            }
        }
        deserializer.deserialize_map(Strings)
    }
}
