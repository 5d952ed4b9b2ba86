//! Compiled kernels kept on disk, named by a hash of everything that determines them (source, macros, architecture,
//! compiler version). An entry that is damaged or of another origin is ignored and written anew.

use std::path::PathBuf;

const MAGIC: &[u8; 8] = b"EQCKRN01";

/// A folder of compiled kernels.
#[derive(Debug)]
pub(crate) struct KernelCache {
    folder: PathBuf,
}

impl KernelCache {
    /// The cache of this user: `$XDG_CACHE_HOME/equicaps/kernels` or `~/.cache/equicaps/kernels`; none without a home.
    pub(crate) fn of_user() -> Option<Self> {
        let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
        let base = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
        Some(Self { folder: base.join("equicaps").join("kernels") })
    }

    fn path(&self, identity: &str) -> PathBuf {
        self.folder.join(format!("{:032x}.cubin", fnv128(identity.as_bytes())))
    }

    /// What was stored under `identity`, if it is there and whole.
    pub(crate) fn get(&self, identity: &str) -> Option<Vec<u8>> {
        let bytes = std::fs::read(self.path(identity)).ok()?;
        let (head, image) = bytes.split_at_checked(24)?;
        let (magic, sum) = head.split_at(8);
        (magic == MAGIC && sum == fnv128(image).to_le_bytes()).then(|| image.to_vec())
    }

    /// Stores `image`, whole or not at all. That it could not be stored is no error: it is compiled again next time.
    pub(crate) fn put(&self, identity: &str, image: &[u8]) {
        let path = self.path(identity);
        let unfinished = path.with_extension(format!("{}.tmp", std::process::id()));
        let mut bytes = Vec::with_capacity(24 + image.len());
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&fnv128(image).to_le_bytes());
        bytes.extend_from_slice(image);
        let written = std::fs::create_dir_all(&self.folder)
            .and_then(|()| std::fs::write(&unfinished, bytes))
            .and_then(|()| std::fs::rename(&unfinished, &path));
        if written.is_err() {
            let _ = std::fs::remove_file(&unfinished);
        }
    }
}

/// The 128-bit FNV-1a hash.
fn fnv128(bytes: &[u8]) -> u128 {
    bytes.iter().fold(0x6c62_272e_07bb_0142_62b8_2175_6295_c58d, |hash, &byte| {
        (hash ^ u128::from(byte)).wrapping_mul(0x0000_0000_0100_0000_0000_0000_0000_013b)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_come_back_and_damage_is_noticed() {
        let folder = tempfile::tempdir().unwrap();
        let cache = KernelCache { folder: folder.path().join("a/b") };
        assert_eq!(cache.get("one"), None);
        cache.put("one", b"image of one");
        cache.put("two", b"");
        assert_eq!(cache.get("one").as_deref(), Some(&b"image of one"[..]));
        assert_eq!(cache.get("two").as_deref(), Some(&b""[..]));
        let path = cache.path("one");
        let good = std::fs::read(&path).unwrap();
        for damage in 0..good.len() {
            let mut bytes = good.clone();
            bytes[damage] ^= 1;
            std::fs::write(&path, &bytes).unwrap();
            assert_eq!(cache.get("one"), None, "byte {damage}");
            std::fs::write(&path, &good[..damage]).unwrap();
            assert_eq!(cache.get("one"), None, "cut at {damage}");
        }
        cache.put("one", b"again");
        assert_eq!(cache.get("one").as_deref(), Some(&b"again"[..]));
        assert_eq!(std::fs::read_dir(&cache.folder).unwrap().count(), 2, "no unfinished files stay");
    }

    #[test]
    fn hash_has_its_published_value() {
        assert_eq!(fnv128(b""), 0x6c62_272e_07bb_0142_62b8_2175_6295_c58d);
        assert_eq!(fnv128(b"foobar"), 0x343e_1662_793c_64bf_6f0d_3597_ba44_6f18);
    }
}
