//! Compiled modules, kept from one run to the next.
//!
//! A compiled module is machine code, which is loaded as it is: whoever can write the file can make this program do anything.
//! So it is kept only in a folder that nobody but this user can change, which is checked at every use, from the folder up to
//! the root. Where that cannot be had, or the system has no such permissions, every run compiles anew. A checksum guards
//! against a damaged disk, not against people.

use std::fs;
use std::hash::{Hash, Hasher};
use std::io::Write;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};
use wasmtime::{Engine, Module};
use xxhash_rust::xxh3::{Xxh3Default, xxh3_128};

use crate::replace::Replacement;

/// Bytes of the checksum in front of the machine code.
const CHECKSUM_BYTES: usize = 16;

/// The module `wasm`, compiled for `engine`.
pub(super) fn compiled(engine: &Engine, wasm: &[u8]) -> wasmtime::Result<Module> {
    let path = private_folder().map(|folder| folder.join(name(engine, wasm)));
    if let Some(module) = path.as_deref().and_then(|path| load(engine, path)) {
        return Ok(module);
    }
    let module = Module::new(engine, wasm)?;
    if let Some(path) = path {
        let code = module.serialize()?;
        // Without the file the next run takes a little longer, and that is all.
        let _ = store(&path, &code);
    }
    Ok(module)
}

/// A name that tells modules, versions of the compiler, its settings and instruction sets apart.
fn name(engine: &Engine, wasm: &[u8]) -> String {
    let mut settings = Xxh3Default::new();
    engine.precompile_compatibility_hash().hash(&mut settings);
    let module: String = Sha256::digest(wasm).iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{module}-{:016x}.compiled", settings.finish())
}

fn load(engine: &Engine, path: &Path) -> Option<Module> {
    let bytes = fs::read(path).ok()?;
    let (checksum, code) = bytes.split_first_chunk::<CHECKSUM_BYTES>()?;
    if xxh3_128(code).to_le_bytes() != *checksum {
        return None;
    }
    // SAFETY: the code was written by `store`: the folder can be changed by nobody but this user, and the checksum fits. The
    // engine refuses code of another version or for other settings.
    unsafe { Module::deserialize(engine, code) }.ok()
}

fn store(path: &Path, code: &[u8]) -> anyhow::Result<()> {
    let mut file = Replacement::create(path)?;
    file.write_all(&xxh3_128(code).to_le_bytes())?;
    file.write_all(code)?;
    file.commit()
}

/// The folder for compiled modules, which is made if need be; `None` if others could change what is in it.
#[cfg(unix)]
fn private_folder() -> Option<PathBuf> {
    let user = rustix::process::geteuid().as_raw();
    private_folder_in(&user_cache()?, user)
}

#[cfg(not(unix))]
fn private_folder() -> Option<PathBuf> {
    None
}

/// The folder that the XDG Base Directory Specification names.
#[cfg(unix)]
fn user_cache() -> Option<PathBuf> {
    let absolute = |name| std::env::var_os(name).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute("XDG_CACHE_HOME").or_else(|| absolute("HOME").map(|home| home.join(".cache")))
}

#[cfg(unix)]
fn private_folder_in(cache: &Path, user: u32) -> Option<PathBuf> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    const OTHERS_WRITE: u32 = 0o022;
    const STICKY: u32 = 0o1000;
    let folder = cache.join("k3").join("modules");
    fs::DirBuilder::new().recursive(true).mode(0o700).create(&folder).ok()?;
    let folder = folder.canonicalize().ok()?;
    let about = |folder: &Path| fs::metadata(folder).ok();
    let own = about(&folder)?;
    let private = own.uid() == user && own.mode() & OTHERS_WRITE == 0;
    // In a sticky folder others can add what they like, but not move what is ours.
    let path_is_firm = folder.ancestors().skip(1).all(|folder| {
        about(folder).is_some_and(|folder| {
            [user, 0].contains(&folder.uid()) && (folder.mode() & OTHERS_WRITE == 0 || folder.mode() & STICKY != 0)
        })
    });
    (private && path_is_firm).then_some(folder)
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    /// A module that does nothing.
    const EMPTY: &[u8] = b"\0asm\x01\0\0\0";

    fn user() -> u32 {
        rustix::process::geteuid().as_raw()
    }

    #[test]
    fn a_folder_that_others_can_write_to_is_not_used() {
        let cache = tempfile::tempdir().unwrap();
        let set_mode = |path: &Path, mode| fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        let folder = private_folder_in(cache.path(), user()).unwrap();
        assert!(folder.ends_with("k3/modules"));
        for path in [folder.as_path(), folder.parent().unwrap()] {
            for mode in [0o720, 0o702] {
                set_mode(path, mode);
                assert_eq!(private_folder_in(cache.path(), user()), None, "{path:?} {mode:o}");
            }
            set_mode(path, 0o755);
        }
        assert_eq!(private_folder_in(cache.path(), user() + 1), None, "somebody else's folder");
        assert_eq!(private_folder_in(cache.path(), user()), Some(folder));
    }

    #[test]
    fn a_stored_module_loads_and_a_damaged_one_does_not() {
        let folder = tempfile::tempdir().unwrap();
        let engine = Engine::default();
        let path = folder.path().join(name(&engine, EMPTY));
        assert!(load(&engine, &path).is_none());
        let code = Module::new(&engine, EMPTY).unwrap().serialize().unwrap();
        store(&path, &code).unwrap();
        assert!(load(&engine, &path).is_some());
        let whole = fs::read(&path).unwrap();
        for cut in [0, CHECKSUM_BYTES - 1, CHECKSUM_BYTES, whole.len() - 1] {
            fs::write(&path, &whole[..cut]).unwrap();
            assert!(load(&engine, &path).is_none(), "cut to {cut} bytes");
        }
        for index in [0, CHECKSUM_BYTES, whole.len() / 2, whole.len() - 1] {
            let mut damaged = whole.clone();
            damaged[index] ^= 1;
            fs::write(&path, damaged).unwrap();
            assert!(load(&engine, &path).is_none(), "byte {index}");
        }
    }

    #[test]
    fn names_tell_modules_and_settings_apart() {
        let mut config = wasmtime::Config::new();
        config.epoch_interruption(true);
        let (plain, watched) = (Engine::default(), Engine::new(&config).unwrap());
        assert_ne!(name(&plain, EMPTY), name(&watched, EMPTY));
        assert_ne!(name(&plain, EMPTY), name(&plain, b"other"));
        assert_eq!(name(&plain, EMPTY), name(&Engine::default(), EMPTY));
    }
}
