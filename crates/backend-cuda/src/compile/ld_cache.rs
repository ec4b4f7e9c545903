//! Reads glibc's `/etc/ld.so.cache`, to find a library by name without loading it.
//!
//! Format: glibc `elf/cache.c` (`struct cache_file_new`): a 48-byte header, 24-byte entries, then strings at offsets relative to the
//! header. Some files start with a table of the old format, so the code searches for the magic number of the new format.

use std::path::PathBuf;

const LD_CACHE_MAGIC: &[u8] = b"glibc-ld.so.cache1.1";
const LD_CACHE_HEADER_BYTES: usize = 48;
const LD_CACHE_ENTRY_BYTES: usize = 24;

/// Returns the path of the library `soname` if the linker's cache lists it and the file exists.
pub fn find_library_in_cache(soname: &str) -> Option<PathBuf> {
    let cache = std::fs::read("/etc/ld.so.cache").ok()?;
    find_in_linker_cache(&cache, soname).into_iter().map(PathBuf::from).find(|p| p.is_file())
}

fn find_in_linker_cache(cache: &[u8], soname: &str) -> Vec<String> {
    let Some(start) = cache.windows(LD_CACHE_MAGIC.len()).position(|w| w == LD_CACHE_MAGIC) else { return Vec::new() };
    let table = &cache[start..];
    let count = read_u32(table, LD_CACHE_MAGIC.len()).unwrap_or(0) as usize;
    let mut found = Vec::new();
    for i in 0..count {
        let at = LD_CACHE_HEADER_BYTES + i * LD_CACHE_ENTRY_BYTES;
        let (Some(key), Some(value)) = (read_u32(table, at + 4), read_u32(table, at + 8)) else { break };
        if read_c_str(table, key as usize) == Some(soname) {
            found.extend(read_c_str(table, value as usize).map(str::to_owned));
        }
    }
    found
}

fn read_u32(bytes: &[u8], at: usize) -> Option<u32> {
    let four = bytes.get(at..at.checked_add(4)?)?;
    Some(u32::from_ne_bytes(four.try_into().ok()?))
}

fn read_c_str(bytes: &[u8], at: usize) -> Option<&str> {
    let rest = bytes.get(at..)?;
    let end = rest.iter().position(|&b| b == 0)?;
    std::str::from_utf8(&rest[..end]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cache_bytes(entries: &[(&str, &str)]) -> Vec<u8> {
        let mut bytes = LD_CACHE_MAGIC.to_vec();
        bytes.extend((entries.len() as u32).to_ne_bytes());
        bytes.resize(LD_CACHE_HEADER_BYTES, 0);
        let mut strings = Vec::new();
        let base = LD_CACHE_HEADER_BYTES + LD_CACHE_ENTRY_BYTES * entries.len();
        for (key, value) in entries {
            let mut entry = [0u8; LD_CACHE_ENTRY_BYTES];
            for (slot, text) in [(4, key), (8, value)] {
                entry[slot..slot + 4].copy_from_slice(&((base + strings.len()) as u32).to_ne_bytes());
                strings.extend(text.as_bytes());
                strings.push(0);
            }
            bytes.extend(entry);
        }
        bytes.extend(strings);
        bytes
    }

    #[test]
    fn finds_an_entry_behind_an_old_table() {
        let cache = cache_bytes(&[("liba.so.1", "/x/liba.so.1"), ("libb.so.2", "/y/libb.so.2")]);
        assert_eq!(find_in_linker_cache(&cache, "libb.so.2"), ["/y/libb.so.2"]);
        assert!(find_in_linker_cache(&cache, "libb.so").is_empty());
        let mut old = b"ld.so-1.7.0 and so on".to_vec();
        old.extend(&cache);
        assert_eq!(find_in_linker_cache(&old, "liba.so.1"), ["/x/liba.so.1"]);
    }

    #[test]
    fn damage_is_not_found() {
        let cache = cache_bytes(&[("liba.so.1", "/x/liba.so.1")]);
        for cut in 0..cache.len() {
            let _ = find_in_linker_cache(&cache[..cut], "liba.so.1");
        }
        let mut wild = cache;
        wild[LD_CACHE_HEADER_BYTES + 4..LD_CACHE_HEADER_BYTES + 12].fill(0xff);
        assert!(find_in_linker_cache(&wild, "liba.so.1").is_empty());
    }

    #[test]
    fn the_systems_cache_knows_the_c_library() {
        if cfg!(all(target_os = "linux", target_env = "gnu")) && std::path::Path::new("/etc/ld.so.cache").exists() {
            assert!(find_library_in_cache("libc.so.6").is_some());
        }
    }
}
