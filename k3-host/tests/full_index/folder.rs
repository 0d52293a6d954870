//! A folder on disk, read as a host would read it.

use std::fs::File;
use std::io::{BufReader, ErrorKind};
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use k3_core::host::{Directory, Storage};
use k3_core::{Error, Result};
use serde::de::DeserializeSeed;

pub struct Folder(pub PathBuf);

pub struct Opened {
    name: String,
    file: File,
    bytes: u64,
}

impl Directory for Folder {
    type File = Opened;

    fn open(&self, name: &str) -> Result<Option<Opened>> {
        match File::open(self.0.join(name)) {
            Ok(file) => Ok(Some(Opened { name: name.to_owned(), bytes: file.metadata().unwrap().len(), file })),
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            Err(error) => panic!("{name}: {error}"),
        }
    }

    fn read_json<T, S>(&self, name: &str, file: &Opened, seed: S) -> Result<T>
    where
        S: for<'de> DeserializeSeed<'de, Value = T>,
    {
        let mut input = serde_json::Deserializer::from_reader(BufReader::with_capacity(1 << 18, &file.file));
        let value = seed.deserialize(&mut input);
        value.map_err(|error| Error::Checkpoint { file: name.to_owned(), reason: error.to_string() })
    }
}

impl Storage for Opened {
    fn len(&self) -> u64 {
        self.bytes
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.file.read_exact_at(buffer, offset).map_err(|error| Error::Read {
            file: self.name.clone(),
            offset,
            length: buffer.len() as u64,
            reason: error.to_string(),
        })
    }
}
