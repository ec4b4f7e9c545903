//! Tables of numbers as text: csv, tsv, and columns separated by blanks.

mod number_parser;
mod table_parser;
mod text_options;
mod text_writer;

use std::path::Path;

use cuprum_core::host_buffer::HostBuffer;
use cuprum_core::{Error, Item, NdArray, Result};

use crate::errors::add_path_to_error;
use crate::file_streams::read_file;

pub use text_options::{Delimiter, TextOptions};
pub use text_writer::{TextFormat, savetxt};
pub(crate) use text_writer::{check_ndim_and_evaluate, write_text};

/// A table that was read from text: its values, and the names of its columns.
#[derive(Clone)]
pub struct TextTable {
    /// Names of the columns that were read; empty if the text has no line of names.
    pub names: Vec<String>,
    /// The values, with the number of axes that [`TextOptions::ndmin`] describes.
    pub values: NdArray,
}

impl TextTable {
    /// Returns the column `name`.
    ///
    /// # Errors
    /// [`Error::Value`] if no column has that name.
    ///
    /// # Examples
    /// ```
    /// # use cuprum_backend_cpu as _;
    /// # use {cuprum_core as cuprum, cuprum_io as io};
    /// # fn main() -> cuprum::Result<()> {
    /// let options = io::TextOptions::default().delimiter(b',').names_in_first_line();
    /// let table = io::load_table_bytes(b"x,y\n1,2\n3,4\n", &options)?;
    /// assert_eq!(table.column("y")?.to_vec::<f64>()?, [2.0, 4.0]);
    /// # Ok(())
    /// # }
    /// ```
    pub fn column(&self, name: &str) -> Result<NdArray> {
        let Some(at) = self.names.iter().position(|n| n == name) else {
            let list = crate::array_names::join_first_names(self.names.iter().map(String::as_str));
            return Err(Error::value("column", format!("no column {name:?}; the table has: {list}")));
        };
        let columns = self.names.len();
        let rows = self.values.size() / columns.max(1);
        self.values.reshape([rows as isize, columns as isize])?.index(&[Item::from(..), at.into()])
    }
}

/// Reads numbers from a text file (`numpy.loadtxt`). By default, blanks separate columns, `#` begins a comment, and values are float64.
///
/// The result has a row per line and a column per field. As in NumPy, axes of one element are dropped; [`TextOptions::ndmin`] keeps
/// them. The text is read into memory, and its lines are parsed on all threads.
///
/// # Errors
/// [`Error::Io`] for a file that is missing, a field that is no number of the dtype, a missing value without
/// [`fill_value`](TextOptions::fill_value), or a line with a different number of columns. The message names line and column.
/// [`Error::OutOfMemory`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// use cuprum::DType;
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-loadtxt-{}.csv", std::process::id()));
/// std::fs::write(&path, "id;x;y\n1;0.5;2\n2;1.5;4\n").unwrap();
/// let options = io::TextOptions::default().delimiter(b';').skip_rows(1).usecols([1, 2]).dtype(DType::F32);
/// assert_eq!(io::loadtxt(&path, &options)?.to_vec::<f32>()?, [0.5, 2.0, 1.5, 4.0]);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn loadtxt(path: impl AsRef<Path>, options: &TextOptions) -> Result<NdArray> {
    Ok(load_table(path, options)?.values)
}

/// Reads numbers from a text file with missing values (`numpy.genfromtxt`).
///
/// As [`loadtxt`], but a missing value becomes [`fill_value`](TextOptions::fill_value): by default NaN in floats and complex numbers, -1 in
/// integers (the maximum of unsigned ones) and false in bools. Unlike NumPy, a field that is neither a number nor listed as missing is an
/// error.
///
/// # Errors
/// The errors of [`loadtxt`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-genfromtxt-{}.csv", std::process::id()));
/// std::fs::write(&path, "1,,3\n4,n/a,6\n").unwrap();
/// let options = io::TextOptions::default().delimiter(b',').missing_values(["n/a"]).fill_value(0.5);
/// assert_eq!(io::genfromtxt(&path, &options)?.to_vec::<f64>()?, [1.0, 0.5, 3.0, 4.0, 0.5, 6.0]);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn genfromtxt(path: impl AsRef<Path>, options: &TextOptions) -> Result<NdArray> {
    Ok(load_table(path, &options.clone().with_genfromtxt_rules())?.values)
}

/// Reads numbers from a text file as [`loadtxt`] does, with the names of the columns.
///
/// # Errors
/// The errors of [`loadtxt`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let path = std::env::temp_dir().join(format!("cuprum-doc-table-{}.csv", std::process::id()));
/// std::fs::write(&path, "time,\"speed, m/s\"\n0,1.5\n1,2.5\n").unwrap();
/// let table = io::load_table(&path, &io::TextOptions::default().delimiter(b',').names_in_first_line())?;
/// assert_eq!(table.names, ["time", "speed, m/s"]);
/// assert_eq!(table.column("speed, m/s")?.to_vec::<f64>()?, [1.5, 2.5]);
/// # std::fs::remove_file(&path).ok();
/// # Ok(())
/// # }
/// ```
pub fn load_table(path: impl AsRef<Path>, options: &TextOptions) -> Result<TextTable> {
    let path = path.as_ref();
    // The text is converted to a host buffer, so that it counts as used memory while the values are allocated.
    let text = HostBuffer::from_vec(read_file(path)?);
    table_parser::parse_table(text.as_bytes(), options).map_err(|e| add_path_to_error(path, e))
}

/// Reads a table from text in memory. Errors do not contain a file name.
pub(crate) fn array_from_text(text: &[u8], options: &TextOptions) -> Result<NdArray> {
    Ok(table_parser::parse_table(text, options)?.values)
}

/// Reads numbers from text in memory as [`load_table`] does.
///
/// # Errors
/// The errors of [`loadtxt`].
///
/// # Examples
/// ```
/// # use cuprum_backend_cpu as _;
/// # use {cuprum_core as cuprum, cuprum_io as io};
/// # fn main() -> cuprum::Result<()> {
/// let error = io::load_table_bytes(b"1 2\n3 x\n", &io::TextOptions::default()).err().unwrap();
/// assert!(error.to_string().contains("line 2, column 2: 'x' is not a valid float64"));
/// # Ok(())
/// # }
/// ```
pub fn load_table_bytes(text: &[u8], options: &TextOptions) -> Result<TextTable> {
    table_parser::parse_table(text, options).map_err(|e| add_path_to_error(Path::new("text"), e))
}
