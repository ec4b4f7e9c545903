//! Scaling factors of operands, in the binary form that cuTENSOR reads.

use crate::sys::DataType;

/// A scaling factor in the scalar type of a plan.
#[repr(C, align(16))]
pub struct ScalingFactor([u8; 16]);

impl ScalingFactor {
    /// Converts `value` to the type `scalar`.
    pub fn from_f64(value: f64, scalar: DataType) -> ScalingFactor {
        let mut bytes = [0; 16];
        match scalar {
            DataType::F64 | DataType::C128 => bytes[..8].copy_from_slice(&value.to_ne_bytes()),
            DataType::F32 | DataType::C64 => bytes[..4].copy_from_slice(&(value as f32).to_ne_bytes()),
            DataType::F16 => bytes[..2].copy_from_slice(&cuprum_core::f16::from_f64(value).to_ne_bytes()),
            DataType::Bf16 => bytes[..2].copy_from_slice(&cuprum_core::bf16::from_f64(value).to_ne_bytes()),
        }
        ScalingFactor(bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn factors_in_every_type() {
        let bytes = |value, scalar| ScalingFactor::from_f64(value, scalar).0;
        assert_eq!(bytes(-1.0, DataType::F32)[..8], [0, 0, 0x80, 0xbf, 0, 0, 0, 0]);
        assert_eq!(bytes(1.0, DataType::C64)[..8], [0, 0, 0x80, 0x3f, 0, 0, 0, 0]);
        assert_eq!(bytes(1.0, DataType::C128)[..8], 1.0f64.to_ne_bytes());
        assert_eq!(bytes(1.0, DataType::F16)[..2], [0, 0x3c]);
        assert_eq!(bytes(1.0, DataType::Bf16)[..2], [0x80, 0x3f]);
    }
}
