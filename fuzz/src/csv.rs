//! The fuzz target of text tables, with a slow reader of plain numbers as a reference.

use cuprum::{DType, NdArray, io};

/// Maximum number of columns that are looked up by their names.
const NAMED: usize = 8;

/// Reads a table whose first two bytes choose the options.
pub fn csv(data: &[u8]) {
    let [first, second, text @ ..] = data else { return };
    let dtype = DType::ALL[*first as usize % DType::ALL.len()];
    let mut options = io::TextOptions::default().dtype(dtype);
    let delimiter = [b',', b'\t', b';', b' '].get(*second as usize % 5).copied();
    if let Some(delimiter) = delimiter {
        options = options.delimiter(delimiter);
    }
    if first & 0x80 != 0 {
        options = options.detect_names_in_first_line();
    }
    if first & 0x40 != 0 {
        options = options.fill_value(1);
    }
    if second & 0x80 != 0 {
        options = options.usecols([-1, 0]).skip_footer(1);
    }
    if second & 0x40 != 0 {
        options = options.skip_rows(1).max_rows(3).ndmin(2);
    }
    if second & 0x20 != 0 {
        options = options.names_in_first_line().comments(["//", "%"]);
    }
    if second & 0x10 != 0 {
        options = options.missing_values(["x", "-"]).ndmin(1);
    }
    let read = io::load_table_bytes(text, &options);
    if second & 0xf0 == 0
        && let Some(wanted) = plain_numbers(text, delimiter, dtype)
    {
        match (&read, &wanted) {
            (Ok(table), Some(wanted)) => assert_eq!(bytes_of(&table.values), *wanted),
            (Err(_), None) => {}
            (Ok(table), None) => panic!("an array of shape {:?} from a table that is none", table.values.shape()),
            (Err(error), Some(_)) => panic!("a table is refused: {error}"),
        }
    }
    let Ok(table) = read else { return };
    for name in table.names.iter().take(NAMED) {
        assert_eq!(table.column(name).unwrap().size() * table.names.len(), table.values.size());
    }
    if (1..=2).contains(&table.values.ndim()) && table.values.size() > 0 {
        // Written numbers read back as the same values.
        let (format, delimiter) = [(io::Format::Tsv, Some(b'\t')), (io::Format::Csv, Some(b',')), (io::Format::Text, None)][text.len() % 3];
        let mut bytes = Vec::new();
        io::write_stream(&mut bytes, format, &[("", &table.values)]).unwrap();
        let mut options = io::TextOptions::default().dtype(dtype);
        if let Some(delimiter) = delimiter {
            options = options.delimiter(delimiter);
        }
        let back = io::load_table_bytes(&bytes, &options).unwrap().values;
        assert_eq!(array_text(&back), array_text(&table.values));
    }
}

fn bytes_of(array: &NdArray) -> Vec<u8> {
    array.to_bytes().unwrap()
}

/// Returns an array as text, in which NaNs are equal.
fn array_text(array: &NdArray) -> Vec<u8> {
    let mut bytes = Vec::new();
    io::write_stream(&mut bytes, io::Format::Csv, &[("", &array.ravel().unwrap())]).unwrap();
    bytes
}

/// Returns the elements of a table that consists of plain numbers, blanks and delimiters, `Some(None)` if it is an error, and `None` if
/// it has anything else, such as quotes or comments.
fn plain_numbers(text: &[u8], delimiter: Option<u8>, dtype: DType) -> Option<Option<Vec<u8>>> {
    let text = std::str::from_utf8(text).ok()?;
    let is_blank = |c: char| [' ', '\t'].contains(&c) && Some(c) != delimiter.map(char::from);
    let mut columns = None;
    let mut out = Vec::new();
    let mut is_error = false;
    for line in text.split(['\n', '\r']) {
        let line = line.trim_matches(is_blank);
        if line.is_empty() {
            continue;
        }
        let fields: Vec<&str> = match delimiter {
            Some(delimiter) => line.split(char::from(delimiter)).map(|field| field.trim_matches(is_blank)).collect(),
            None => line.split(is_blank).filter(|field| !field.is_empty()).collect(),
        };
        is_error |= *columns.get_or_insert(fields.len()) != fields.len();
        for field in fields {
            match plain_number(field, dtype)? {
                Some(number) => out.extend(number),
                None => is_error = true,
            }
        }
    }
    Some((!is_error).then_some(out))
}

/// Returns the bytes of a number in digits, `Some(None)` if it is no number of the dtype, and `None` for other texts and dtypes.
fn plain_number(text: &str, dtype: DType) -> Option<Option<Vec<u8>>> {
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    let unsigned = |text: &str| text.strip_prefix(['+', '-']).unwrap_or(text).to_owned();
    let body = unsigned(text);
    let (mantissa, exponent) = body.split_once(['e', 'E']).map_or((&body[..], None), |(mantissa, e)| (mantissa, Some(unsigned(e))));
    let (whole, fraction) = mantissa.split_once('.').map_or((mantissa, None), |(whole, fraction)| (whole, Some(fraction)));
    if !digits(whole) || !fraction.is_none_or(digits) || !exponent.as_deref().is_none_or(digits) {
        return None;
    }
    macro_rules! parsed {
        ($t:ty) => {
            Some(text.parse::<$t>().ok().map(|number| number.to_le_bytes().to_vec()))
        };
    }
    match dtype {
        DType::F32 => parsed!(f32),
        DType::F64 => parsed!(f64),
        DType::I8 => parsed!(i8),
        DType::I16 => parsed!(i16),
        DType::I32 => parsed!(i32),
        DType::I64 => parsed!(i64),
        // Rust parses no `-0` as an unsigned integer, NumPy does.
        DType::U8 | DType::U16 | DType::U32 | DType::U64 if text.starts_with('-') => None,
        DType::U8 => parsed!(u8),
        DType::U16 => parsed!(u16),
        DType::U32 => parsed!(u32),
        DType::U64 => parsed!(u64),
        _ => None,
    }
}
