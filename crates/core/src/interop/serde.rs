//! Serialisation with serde: dtype, shape, and the elements in C order.
//!
//! Compact formats store the elements as little-endian bytes. Human-readable formats store a flat list of numbers: complex numbers as
//! `[re, im]`, and floats that are not finite as `"nan"`, `"inf"` and `"-inf"`, for which JSON has no numbers.
//!
//! Reading checks dtype, shape and number of elements, and allocates only as much memory as the elements in the input need. The field
//! `values` must come after `dtype` and `shape`. Fields are written in this order, which is also alphabetical, so formats that sort fields
//! by name keep the order.

use std::fmt;

use ::serde::de::{DeserializeSeed, Error as _, MapAccess, SeqAccess, Unexpected, Visitor};
use ::serde::ser::{Error as _, SerializeSeq, SerializeStruct};
use ::serde::{Deserialize, Deserializer, Serialize, Serializer};
use num_complex::Complex;

use crate::array::NdArray;
use crate::dtype::{DType, Kind};
use crate::host_buffer::try_reserve;
use crate::layout::{Dims, MAX_NDIM, checked_size};
use crate::scalar::Scalar;

const ARRAY_FIELDS: [&str; 3] = ["dtype", "shape", "values"];

impl Serialize for DType {
    /// Writes NumPy's name of the dtype.
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name())
    }
}

impl<'de> Deserialize<'de> for DType {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<DType, D::Error> {
        struct DTypeNameVisitor;
        impl Visitor<'_> for DTypeNameVisitor {
            type Value = DType;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("the name of a dtype")
            }
            fn visit_str<E: ::serde::de::Error>(self, name: &str) -> Result<DType, E> {
                DType::parse(name).map_err(E::custom)
            }
        }
        deserializer.deserialize_str(DTypeNameVisitor)
    }
}

/// Serializes dtype, shape and elements. Waits for the device and copies the elements to the host.
///
/// ```
/// # use cuprum_backend_cpu as _;
/// # extern crate cuprum_core as cuprum;
/// use cuprum::{NdArray, array};
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let text = serde_json::to_string(&array![[1, 2], [3, 4]])?;
/// assert_eq!(text, r#"{"dtype":"int32","shape":[2,2],"values":[1,2,3,4]}"#);
/// let a: NdArray = serde_json::from_str(&text)?;
/// assert_eq!(a, array![[1, 2], [3, 4]]);
/// # Ok(())
/// # }
/// ```
impl Serialize for NdArray {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let is_readable = serializer.is_human_readable();
        let bytes = self.to_bytes().map_err(S::Error::custom)?;
        let mut fields = serializer.serialize_struct("NdArray", ARRAY_FIELDS.len())?;
        fields.serialize_field(ARRAY_FIELDS[0], &self.dtype())?;
        fields.serialize_field(ARRAY_FIELDS[1], self.shape())?;
        if is_readable {
            fields.serialize_field(ARRAY_FIELDS[2], &SerializedNumbers(self.dtype(), &bytes))?;
        } else {
            fields.serialize_field(ARRAY_FIELDS[2], &ElementBytes(&bytes))?;
        }
        fields.end()
    }
}

/// Elements as raw bytes.
struct ElementBytes<'a>(&'a [u8]);

impl Serialize for ElementBytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

/// The bytes of elements of a dtype, serialized as a list of numbers.
struct SerializedNumbers<'a>(DType, &'a [u8]);

impl Serialize for SerializedNumbers<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let item = self.0.itemsize();
        let mut list = serializer.serialize_seq(Some(self.1.len() / item))?;
        for bytes in self.1.chunks_exact(item) {
            list.serialize_element(&SerializedNumber(Scalar::from_bytes(self.0, bytes), self.0))?;
        }
        list.end()
    }
}

/// An element and its dtype. A float of a narrower dtype than float64 is serialized as float32, which gives a shorter text.
struct SerializedNumber(Scalar, DType);

impl Serialize for SerializedNumber {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.0 {
            Scalar::Bool(v) => serializer.serialize_bool(v),
            Scalar::Int(v) => match u64::try_from(v) {
                Ok(v) => serializer.serialize_u64(v),
                Err(_) => serializer.serialize_i64(v as i64), // elements are within the range of int64 or uint64
            },
            Scalar::Float(v) if v.is_nan() => serializer.serialize_str("nan"),
            Scalar::Float(v) if v.is_infinite() => serializer.serialize_str(if v > 0.0 { "inf" } else { "-inf" }),
            Scalar::Float(v) if self.1.real() == DType::F64 => serializer.serialize_f64(v),
            Scalar::Float(v) => serializer.serialize_f32(v as f32),
            Scalar::Complex(v) => [v.re, v.im].map(|part| SerializedNumber(Scalar::Float(part), self.1)).serialize(serializer),
        }
    }
}

/// Creates the array on the current device.
///
/// A number too large for a float dtype becomes an infinity, as in a conversion by [`NdArray::astype`].
///
/// # Errors
/// An error of the deserializer for an unknown dtype, an invalid shape, values that do not fit the shape, or integers out of the range of
/// the dtype; errors of the device.
impl<'de> Deserialize<'de> for NdArray {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<NdArray, D::Error> {
        let is_readable = deserializer.is_human_readable();
        deserializer.deserialize_struct("NdArray", &ARRAY_FIELDS, ArrayVisitor { is_readable })
    }
}

struct ArrayVisitor {
    is_readable: bool,
}

impl<'de> Visitor<'de> for ArrayVisitor {
    type Value = NdArray;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        f.write_str("an array with the fields dtype, shape and values")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut fields: A) -> Result<NdArray, A::Error> {
        let missing = |n| A::Error::invalid_length(n, &"the fields dtype, shape and values");
        let dtype = fields.next_element()?.ok_or_else(|| missing(0))?;
        let ShapeField(shape) = fields.next_element()?.ok_or_else(|| missing(1))?;
        fields.next_element_seed(ElementSequenceSeed { dtype, shape, is_readable: self.is_readable })?.ok_or_else(|| missing(2))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut fields: A) -> Result<NdArray, A::Error> {
        let (mut dtype, mut shape, mut array) = (None, None, None);
        while let Some(field) = fields.next_key()? {
            match field {
                ArrayField::DType if dtype.is_none() => dtype = Some(fields.next_value()?),
                ArrayField::Shape if shape.is_none() => shape = Some(fields.next_value::<ShapeField>()?.0),
                ArrayField::Values if array.is_none() => {
                    let (Some(dtype), Some(shape)) = (dtype, shape.clone()) else {
                        return Err(A::Error::custom("the field `values` must follow `dtype` and `shape`"));
                    };
                    array = Some(fields.next_value_seed(ElementSequenceSeed { dtype, shape, is_readable: self.is_readable })?);
                }
                repeated => return Err(A::Error::duplicate_field(ARRAY_FIELDS[repeated as usize])),
            }
        }
        array.ok_or_else(|| A::Error::missing_field(ARRAY_FIELDS[2]))
    }
}

#[derive(Clone, Copy)]
enum ArrayField {
    DType,
    Shape,
    Values,
}

impl<'de> Deserialize<'de> for ArrayField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ArrayField, D::Error> {
        struct FieldNameVisitor;
        impl Visitor<'_> for FieldNameVisitor {
            type Value = ArrayField;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("dtype, shape or values")
            }
            fn visit_str<E: ::serde::de::Error>(self, name: &str) -> Result<ArrayField, E> {
                match name {
                    "dtype" => Ok(ArrayField::DType),
                    "shape" => Ok(ArrayField::Shape),
                    "values" => Ok(ArrayField::Values),
                    _ => Err(E::unknown_field(name, &ARRAY_FIELDS)),
                }
            }
            fn visit_u64<E: ::serde::de::Error>(self, index: u64) -> Result<ArrayField, E> {
                match index {
                    0 => Ok(ArrayField::DType),
                    1 => Ok(ArrayField::Shape),
                    2 => Ok(ArrayField::Values),
                    _ => Err(E::invalid_value(Unexpected::Unsigned(index), &"a field index below 3")),
                }
            }
        }
        deserializer.deserialize_identifier(FieldNameVisitor)
    }
}

/// The extents of a serialized array, checked to be a valid shape.
struct ShapeField(Dims);

impl<'de> Deserialize<'de> for ShapeField {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<ShapeField, D::Error> {
        struct ShapeVisitor;
        impl<'de> Visitor<'de> for ShapeVisitor {
            type Value = ShapeField;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                write!(f, "a list of at most {MAX_NDIM} extents")
            }
            fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<ShapeField, A::Error> {
                let mut shape = Dims::new();
                while let Some(extent) = list.next_element::<usize>()? {
                    if shape.len() == MAX_NDIM {
                        return Err(A::Error::invalid_length(MAX_NDIM + 1, &self));
                    }
                    shape.push(extent);
                }
                checked_size("deserialize", &shape).map_err(A::Error::custom)?;
                Ok(ShapeField(shape))
            }
        }
        deserializer.deserialize_seq(ShapeVisitor)
    }
}

/// A serde seed that reads the elements of an array of known dtype and shape.
struct ElementSequenceSeed {
    dtype: DType,
    shape: Dims,
    is_readable: bool,
}

impl ElementSequenceSeed {
    fn array_from_bytes<E: ::serde::de::Error>(&self, bytes: &[u8]) -> Result<NdArray, E> {
        NdArray::from_bytes(self.dtype, &self.shape[..], bytes).map_err(E::custom)
    }
}

impl<'de> DeserializeSeed<'de> for ElementSequenceSeed {
    type Value = NdArray;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<NdArray, D::Error> {
        if self.is_readable { deserializer.deserialize_seq(self) } else { deserializer.deserialize_bytes(self) }
    }
}

impl<'de> Visitor<'de> for ElementSequenceSeed {
    type Value = NdArray;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        write!(f, "{} values of {}", self.shape.iter().product::<usize>(), self.dtype)
    }

    fn visit_bytes<E: ::serde::de::Error>(self, bytes: &[u8]) -> Result<NdArray, E> {
        self.array_from_bytes(bytes)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<NdArray, A::Error> {
        let (size, item) = (self.shape.iter().product::<usize>(), if self.is_readable { self.dtype.itemsize() } else { 1 });
        let total = size * self.dtype.itemsize();
        let mut bytes = Vec::new();
        loop {
            let mut element = [0u8; 16];
            if self.is_readable {
                let Some(ParsedElement(number)) = list.next_element_seed(ElementSeed(self.dtype))? else { break };
                element = number.to_bytes(self.dtype);
            } else {
                let Some(byte) = list.next_element()? else { break };
                element[0] = byte;
            }
            if bytes.len() == total {
                return Err(A::Error::invalid_length(size + 1, &self));
            }
            // `bytes` grows as elements are read, because the shape may claim more elements than the input holds.
            try_reserve("deserialize", &mut bytes, item).map_err(A::Error::custom)?;
            bytes.extend_from_slice(&element[..item]);
        }
        if bytes.len() < total {
            return Err(A::Error::invalid_length(bytes.len() / self.dtype.itemsize(), &self));
        }
        self.array_from_bytes(&bytes)
    }
}

/// An element that was deserialized from a human-readable format.
struct ParsedElement(Scalar);

/// A serde seed that reads an element of a known dtype from a human-readable format.
struct ElementSeed(DType);

impl<'de> DeserializeSeed<'de> for ElementSeed {
    type Value = ParsedElement;
    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<ParsedElement, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for ElementSeed {
    type Value = ParsedElement;

    fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
        match self.0.kind() {
            Kind::Bool => f.write_str("true or false"),
            Kind::Complex => write!(f, "the two parts of a {}", self.0),
            _ => write!(f, "a {}", self.0),
        }
    }

    fn visit_bool<E: ::serde::de::Error>(self, v: bool) -> Result<ParsedElement, E> {
        match self.0 {
            DType::Bool => Ok(ParsedElement(Scalar::Bool(v))),
            _ => Err(E::invalid_type(Unexpected::Bool(v), &self)),
        }
    }

    fn visit_i64<E: ::serde::de::Error>(self, v: i64) -> Result<ParsedElement, E> {
        self.element_from_integer(v.into(), Unexpected::Signed(v))
    }

    fn visit_u64<E: ::serde::de::Error>(self, v: u64) -> Result<ParsedElement, E> {
        self.element_from_integer(v.into(), Unexpected::Unsigned(v))
    }

    fn visit_f64<E: ::serde::de::Error>(self, v: f64) -> Result<ParsedElement, E> {
        match self.0.kind() {
            Kind::Float => Ok(ParsedElement(Scalar::Float(v))),
            _ => Err(E::invalid_type(Unexpected::Float(v), &self)),
        }
    }

    fn visit_str<E: ::serde::de::Error>(self, text: &str) -> Result<ParsedElement, E> {
        let value = match text {
            "nan" => f64::NAN,
            "inf" => f64::INFINITY,
            "-inf" => f64::NEG_INFINITY,
            _ => return Err(E::invalid_value(Unexpected::Str(text), &self)),
        };
        if self.0.is_float() { Ok(ParsedElement(Scalar::Float(value))) } else { Err(E::invalid_type(Unexpected::Str(text), &self)) }
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<ParsedElement, A::Error> {
        if !self.0.is_complex() {
            return Err(A::Error::invalid_type(Unexpected::Seq, &self));
        }
        let mut part = |n| -> Result<f64, A::Error> {
            let Some(ParsedElement(v)) = parts.next_element_seed(ElementSeed(self.0.real()))? else {
                return Err(A::Error::invalid_length(n, &self));
            };
            Ok(v.as_f64())
        };
        Ok(ParsedElement(Scalar::Complex(Complex::new(part(0)?, part(1)?))))
    }
}

impl ElementSeed {
    /// Converts an integer of the input to an element: exactly for an integer dtype, rounded for a floating-point dtype.
    fn element_from_integer<E: ::serde::de::Error>(self, v: i128, found: Unexpected) -> Result<ParsedElement, E> {
        match self.0.int_range() {
            Some((low, high)) if (low..=high).contains(&v) => Ok(ParsedElement(Scalar::Int(v))),
            Some(_) => Err(E::invalid_value(found, &self)),
            None if self.0.is_float() => Ok(ParsedElement(Scalar::Int(v))),
            None => Err(E::invalid_type(found, &self)),
        }
    }
}
