//! Options for reading tables.

use cuprum_core::{DType, Kind, Scalar};

/// A column by index or name.
#[derive(Clone, Debug)]
pub(super) enum ColumnSelector {
    Index(isize),
    Name(String),
}

/// Source of the column names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ColumnNameSource {
    None,
    FirstLine,
    /// The first line, if it looks like names: no field is a number or starts like one, and not all fields are missing.
    Detect,
}

/// The text between the fields of a table, from a byte, a character or a string: `b','`, `','` and `","` are equal.
///
/// # Examples
/// ```
/// use cuprum_io::{TextFormat, TextOptions};
/// let (read, write) = (TextOptions::default().delimiter(','), TextFormat::default().delimiter(','));
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delimiter(pub(super) Vec<u8>);

impl From<u8> for Delimiter {
    fn from(byte: u8) -> Delimiter {
        Delimiter(vec![byte])
    }
}

impl From<char> for Delimiter {
    fn from(character: char) -> Delimiter {
        String::from(character).into()
    }
}

impl From<&str> for Delimiter {
    fn from(text: &str) -> Delimiter {
        Delimiter(text.into())
    }
}

impl From<String> for Delimiter {
    fn from(text: String) -> Delimiter {
        Delimiter(text.into())
    }
}

/// Options of [`loadtxt`](crate::loadtxt), [`genfromtxt`](crate::genfromtxt) and [`load_table`](crate::load_table).
///
/// # Examples
/// ```
/// use cuprum_core::DType;
/// use cuprum_io::TextOptions;
/// let options = TextOptions::default().delimiter(b',').names_in_first_line().columns(["x", "y"]).dtype(DType::F32).max_rows(1000);
/// ```
#[derive(Clone, Debug)]
pub struct TextOptions {
    /// The text between fields. `None` stands for runs of ASCII white space.
    pub(super) delimiter: Option<Delimiter>,
    pub(super) comments: Vec<String>,
    pub(super) skip_rows: usize,
    pub(super) skip_footer: usize,
    pub(super) max_rows: Option<usize>,
    pub(super) columns: Option<Vec<ColumnSelector>>,
    pub(super) dtype: DType,
    pub(super) names: ColumnNameSource,
    pub(super) missing: Vec<String>,
    pub(super) fill_value: Option<Scalar>,
    pub(super) ndmin: usize,
    /// Whether the first row determines the columns of all rows, as in `numpy.genfromtxt`.
    pub(super) first_row_sets_columns: bool,
}

impl Default for TextOptions {
    /// Returns the defaults of `numpy.loadtxt`: columns separated by blanks, comments after `#`, float64, no missing values.
    fn default() -> TextOptions {
        TextOptions {
            delimiter: None,
            comments: vec!["#".to_string()],
            skip_rows: 0,
            skip_footer: 0,
            max_rows: None,
            columns: None,
            dtype: DType::F64,
            names: ColumnNameSource::None,
            missing: Vec::new(),
            fill_value: None,
            ndmin: 0,
            first_row_sets_columns: false,
        }
    }
}

impl TextOptions {
    /// Sets the delimiter of fields, one byte such as `','`. By default fields are separated by runs of ASCII white space.
    ///
    /// Reading returns an error if the delimiter is a digit, a double quote or a line end, or has several bytes.
    pub fn delimiter(mut self, delimiter: impl Into<Delimiter>) -> Self {
        self.delimiter = Some(delimiter.into());
        self
    }

    /// Sets the texts that begin a comment, which lasts to the end of the line. The default is `#`; an empty list disables comments.
    ///
    /// Reading returns an error if one of the texts contains a line end.
    pub fn comments<S: Into<String>>(mut self, texts: impl IntoIterator<Item = S>) -> Self {
        self.comments = texts.into_iter().map(Into::into).filter(|t: &String| !t.is_empty()).collect();
        self
    }

    /// Skips the first `lines` lines, comments and empty lines included (`skiprows`, `skip_header`).
    pub fn skip_rows(mut self, lines: usize) -> Self {
        self.skip_rows = lines;
        self
    }

    /// Skips the last `rows` rows; comments and empty lines do not count (`skip_footer`).
    pub fn skip_footer(mut self, rows: usize) -> Self {
        self.skip_footer = rows;
        self
    }

    /// Reads at most `rows` rows; comments and empty lines do not count.
    pub fn max_rows(mut self, rows: usize) -> Self {
        self.max_rows = Some(rows);
        self
    }

    /// Reads the columns with the indices `indices`, in the order given. Lines may differ in the number of fields after the last of these
    /// columns.
    ///
    /// Negative indices count from the end of each line, as in `numpy.loadtxt`. In [`genfromtxt`](crate::genfromtxt), and in tables with
    /// column names, they count from the end of the first line.
    pub fn usecols(mut self, indices: impl IntoIterator<Item = isize>) -> Self {
        self.columns = Some(indices.into_iter().map(ColumnSelector::Index).collect());
        self
    }

    /// Reads the columns with the names `names`, in the order given. Also sets [`names_in_first_line`](Self::names_in_first_line), unless
    /// [`detect_names_in_first_line`](Self::detect_names_in_first_line) was called.
    pub fn columns<S: Into<String>>(mut self, names: impl IntoIterator<Item = S>) -> Self {
        self.columns = Some(names.into_iter().map(|n| ColumnSelector::Name(n.into())).collect());
        if self.names == ColumnNameSource::None {
            self.names = ColumnNameSource::FirstLine;
        }
        self
    }

    /// Sets the dtype of the values. The default is float64.
    pub fn dtype(mut self, dtype: DType) -> Self {
        self.dtype = dtype;
        self
    }

    /// Takes the names of the columns from the first line that is neither skipped nor empty. That line may be a comment. Names may be in
    /// double quotes.
    pub fn names_in_first_line(mut self) -> Self {
        self.names = ColumnNameSource::FirstLine;
        self
    }

    /// Takes the names of the columns from the first line with values, if none of its fields is a number or starts with a digit, and not
    /// all are missing. A line of numbers and words is thus an error, not a line of names.
    pub fn detect_names_in_first_line(mut self) -> Self {
        self.names = ColumnNameSource::Detect;
        self
    }

    /// Adds texts that mean a missing value. Empty fields, `NA`, `N/A` and `null` always mean one, and so does `nan` for dtypes without
    /// NaN. Upper and lower case are not distinguished.
    pub fn missing_values<S: Into<String>>(mut self, texts: impl IntoIterator<Item = S>) -> Self {
        self.missing.extend(texts.into_iter().map(Into::into));
        self
    }

    /// Sets the value of missing fields. Without it, missing fields are an error, except in [`genfromtxt`](crate::genfromtxt).
    pub fn fill_value(mut self, value: impl Into<Scalar>) -> Self {
        self.fill_value = Some(value.into());
        self
    }

    /// Sets the minimum number of axes of the result, 0 to 2. With 2, a single row or column gives a 2-D array, and a text without rows an
    /// array of shape (0, 1).
    pub fn ndmin(mut self, axes: usize) -> Self {
        self.ndmin = axes.min(2);
        self
    }

    /// Sets the rules of `numpy.genfromtxt`: the first row determines the columns, and missing fields have a default fill value.
    pub(super) fn with_genfromtxt_rules(mut self) -> Self {
        self.first_row_sets_columns = true;
        self.fill_value.get_or_insert(match self.dtype.kind() {
            Kind::Float | Kind::Complex => Scalar::Float(f64::NAN),
            Kind::Signed | Kind::Unsigned => Scalar::Int(-1),
            Kind::Bool => Scalar::Bool(false),
        });
        self
    }
}
