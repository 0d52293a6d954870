//! Opening a checkpoint: finding its shards, reading their headers, binding every tensor.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::header::{self, Header};
use super::index::{Binder, CheckpointIndex};
use super::refuse;
use super::weight_map::{NameSum, NamesIn, Shard, Shards};
use crate::config::Config;
use crate::host::{Directory, Storage};
use crate::{Error, Result};

const INDEX_FILE: &str = "model.safetensors.index.json";
const SINGLE_FILE: &str = "model.safetensors";

/// An opened checkpoint.
#[derive(Debug)]
pub struct Checkpoint<F> {
    /// Where every tensor lies.
    pub index: CheckpointIndex,
    /// The shards, in the order of [`CheckpointIndex::shards`].
    pub files: Vec<F>,
}

impl<F> Checkpoint<F> {
    /// Opens the checkpoint in `directory` for the first `layers` layers of `config`; it is an error to ask for more than
    /// there are. A shard that holds nothing these need may be absent; if it is there, it must be sound.
    ///
    /// # Errors
    /// [`Error::Checkpoint`] for a shard that is missing, damaged, or at odds with the index or the config, naming file
    /// and tensor; [`Error::Tensor`] for a tensor that no shard holds; [`Error::Config`] if there are fewer than `layers`
    /// layers; [`Error::Read`].
    pub fn open<D: Directory<File = F>>(directory: &D, config: &Config, layers: usize) -> Result<Self> {
        if layers > config.layers.len() {
            let fault = format!("num_hidden_layers: {layers} layers are asked for, there are {}", config.layers.len());
            return Err(Error::Config([fault].into()));
        }
        let mut opening =
            Opening { directory, binder: Binder::new(config, layers), files: Vec::new(), text: Vec::new() };
        match directory.read_json(INDEX_FILE, Shards)? {
            Some(shards) => shards.iter().try_for_each(|shard| opening.add_indexed(shard, layers))?,
            None => {
                let missing = || refuse(SINGLE_FILE, format!("missing, and so is {INDEX_FILE}"));
                opening.add(SINGLE_FILE, directory.open(SINGLE_FILE)?.ok_or_else(missing)?, |_| Ok(()))?;
            }
        }
        Ok(Self { index: opening.binder.finish()?, files: opening.files })
    }
}

/// A checkpoint that is being opened.
struct Opening<'d, D: Directory> {
    directory: &'d D,
    binder: Binder,
    files: Vec<D::File>,
    /// The text of the header in hand; kept to be used again.
    text: Vec<u8>,
}

impl<D: Directory> Opening<'_, D> {
    /// Adds a shard that the index names, if it is there.
    fn add_indexed(&mut self, shard: &Shard, layers: usize) -> Result<()> {
        let directory = self.directory;
        let Some(file) = directory.open(&shard.file)? else {
            return match shard.first {
                Some(name) if name.layer().is_none_or(|layer| layer < layers) => {
                    Err(refuse(&shard.file, format!("missing; tensor {name} should be in it")))
                }
                _ => Ok(()),
            };
        };
        self.add(&shard.file, file, |header| {
            let mut names = NameSum::default();
            header.tensors.iter().for_each(|tensor| names.add(tensor.name_hash));
            if names == shard.names {
                return Ok(());
            }
            let listed = directory.read_json(INDEX_FILE, NamesIn(&shard.file))?.unwrap_or_default();
            Err(refuse(&shard.file, difference(&listed, header)))
        })
    }

    /// Adds a shard whose header passes `check`.
    fn add(&mut self, name: &str, file: D::File, check: impl FnOnce(&Header<'_>) -> Result<()>) -> Result<()> {
        header::read_text(&file, name, &mut self.text)?;
        let header = Header::parse(name, &self.text, file.len())?;
        check(&header)?;
        if self.binder.add_shard(name, &header.tensors)? {
            self.files.push(file);
        }
        Ok(())
    }
}

/// How the sorted names that the index lists for a shard differ from those in its header.
fn difference(listed: &[String], header: &Header<'_>) -> String {
    let mut present: Vec<&str> = header.tensors.iter().map(|tensor| &*tensor.name).collect();
    present.sort_unstable();
    if let Some(pair) = listed.windows(2).find(|pair| pair[0] == pair[1]) {
        return format!("tensor {}: {INDEX_FILE} lists it twice", pair[0]);
    }
    if let Some(absent) = listed.iter().find(|name| present.binary_search(&name.as_str()).is_err()) {
        return format!("tensor {absent}: {INDEX_FILE} lists it here, but the header does not have it");
    }
    let extra = present.iter().find(|name| listed.binary_search_by(|listed| listed.as_str().cmp(name)).is_err());
    format!("tensor {}: the header has it, but {INDEX_FILE} does not list it here", extra.unwrap_or(&"(unknown)"))
}
