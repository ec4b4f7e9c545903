//! Message authentication codes by HMAC-SHA-256 (RFC 2104), and nonces.

use std::hash::{BuildHasher, RandomState};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::SystemTime;

use sha2::{Digest, Sha256};

/// Size of a hash or a nonce in bytes.
pub(crate) const HASH_BYTES: usize = 32;
const HMAC_BLOCK_BYTES: usize = 64;

/// The bytes of an HMAC-SHA-256 code or of a nonce.
pub(crate) type Hash = [u8; HASH_BYTES];

/// Returns the authentication code of a message that consists of `parts`. The code covers the length of each part.
pub(crate) fn authentication_code(secret: &str, parts: &[&[u8]]) -> Hash {
    let mut message = Vec::new();
    for part in parts {
        message.extend((part.len() as u64).to_le_bytes());
        message.extend(*part);
    }
    hmac(secret.as_bytes(), &message)
}

fn hmac(secret: &[u8], message: &[u8]) -> Hash {
    let mut key = [0; HMAC_BLOCK_BYTES];
    if secret.len() > HMAC_BLOCK_BYTES {
        key[..HASH_BYTES].copy_from_slice(&Sha256::digest(secret));
    } else {
        key[..secret.len()].copy_from_slice(secret);
    }
    let inner = Sha256::new().chain_update(key.map(|byte| byte ^ 0x36)).chain_update(message).finalize();
    Sha256::new().chain_update(key.map(|byte| byte ^ 0x5c)).chain_update(inner).finalize().into()
}

/// Compares two authentication codes in constant time, so that the duration reveals nothing about their bytes.
pub(crate) fn is_equal_in_constant_time(a: &Hash, b: &Hash) -> bool {
    std::hint::black_box(a.iter().zip(b).fold(0, |difference, (a, b)| difference | (a ^ b))) == 0
}

/// Returns a nonce, a number that is used only once. A nonce need not be secret.
pub(crate) fn new_nonce() -> Hash {
    static NONCE_COUNT: AtomicU64 = AtomicU64::new(0);
    let time = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
    let random = [RandomState::new().hash_one("nonce"), RandomState::new().hash_one(time)];
    let mut hash = Sha256::new().chain_update(time.to_le_bytes()).chain_update(std::process::id().to_le_bytes());
    for word in random.into_iter().chain([NONCE_COUNT.fetch_add(1, Ordering::Relaxed)]) {
        hash.update(word.to_le_bytes());
    }
    hash.finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Test cases 2 and 6 of RFC 4231.
    #[test]
    fn codes_are_those_of_the_standard() {
        let hex = |hash: Hash| hash.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
        let want = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843";
        assert_eq!(hex(hmac(b"Jefe", b"what do ya want for nothing?")), want);
        let want = "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54";
        assert_eq!(hex(hmac(&[0xaa; 131], b"Test Using Larger Than Block-Size Key - Hash Key First")), want);
    }

    #[test]
    fn codes_depend_on_the_secret_and_on_each_part() {
        let codes = [
            authentication_code("a", &[b"bc", b"d"]),
            authentication_code("a", &[b"b", b"cd"]),
            authentication_code("b", &[b"bc", b"d"]),
            authentication_code("", &[b"bc", b"d"]),
        ];
        for (n, a) in codes.iter().enumerate() {
            assert!(codes.iter().enumerate().all(|(m, b)| is_equal_in_constant_time(a, b) == (n == m)));
        }
        assert_ne!(new_nonce(), new_nonce());
    }
}
