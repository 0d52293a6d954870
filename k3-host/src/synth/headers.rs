//! The headers of a checkpoint that nobody has yet: what can be known of it from its config alone.

use k3_core::config::Config;
use k3_core::host::{Directory, Storage};
use k3_core::{Error, Result};

use super::folder::INDEX;
use super::plan::{self, Edition};
use super::shape::Shape;
use crate::failure::Outcome;

/// The files of a checkpoint, of which only the index and the headers can be read.
#[derive(Debug, Clone)]
pub struct Headers {
    config: Config,
    edition: Edition,
}

/// A header at the beginning of a file whose data cannot be read.
#[derive(Debug)]
pub struct HeaderFile {
    name: String,
    header: Vec<u8>,
    length: u64,
}

/// What all files of a checkpoint come to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Extent {
    /// How many files hold tensors.
    pub files: usize,
    /// The bytes of these files.
    pub file_bytes: u64,
    /// The bytes of the tensors in them.
    pub tensor_bytes: u64,
}

impl Headers {
    /// Those of the release, with its config.
    ///
    /// # Errors
    /// Never, unless the program contradicts itself.
    pub fn released() -> Outcome<Self> {
        let (_, config) = Shape::released().config()?;
        Ok(Self { config, edition: Edition::Released })
    }

    /// Those of a model of `config`: of the release, if that is it, otherwise of text alone.
    ///
    /// # Errors
    /// As for [`Headers::released`].
    pub fn of(config: Config) -> Outcome<Self> {
        let released = Self::released()?;
        Ok(if released.config == config { released } else { Self { config, edition: Edition::Text } })
    }

    /// The config.
    #[must_use]
    pub fn config(&self) -> &Config {
        &self.config
    }

    /// What all files come to.
    #[must_use]
    pub fn extent(&self) -> Extent {
        let shards = plan::shards(&self.config, self.edition);
        shards.fold(Extent::default(), |extent, shard| {
            let (header, data) = (shard.header().map_or(0, |header| header.len() as u64), shard.data_bytes());
            Extent {
                files: extent.files + 1,
                file_bytes: extent.file_bytes + header + data,
                tensor_bytes: extent.tensor_bytes + data,
            }
        })
    }
}

impl Directory for Headers {
    type File = HeaderFile;

    fn open(&self, name: &str) -> Result<Option<HeaderFile>> {
        let refuse = |error: serde_json::Error| Error::Checkpoint { file: name.into(), reason: error.to_string() };
        let (header, data) = if name == INDEX {
            (plan::index(&self.config, self.edition).map_err(refuse)?, 0)
        } else {
            let Some(shard) = plan::shard(&self.config, self.edition, name) else { return Ok(None) };
            (shard.header().map_err(refuse)?, shard.data_bytes())
        };
        let length = header.len() as u64 + data;
        Ok(Some(HeaderFile { name: name.to_string(), header, length }))
    }
}

impl Storage for HeaderFile {
    fn len(&self) -> u64 {
        self.length
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let range = usize::try_from(offset).ok().and_then(|start| self.header.get(start..)?.get(..buffer.len()));
        let bytes = range.ok_or_else(|| Error::Read {
            file: self.name.clone(),
            offset,
            length: buffer.len() as u64,
            reason: "there are only headers".to_string(),
        })?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}
