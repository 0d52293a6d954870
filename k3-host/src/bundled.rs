//! A checkpoint that is part of the program.

use include_dir::Dir;
use k3_core::checkpoint::Checkpoint;
use k3_core::config::Config;
use k3_core::host::{Directory, Storage};
use k3_core::model::source::WeightSource;
use k3_core::stream::resident::Resident;
use k3_core::{Error, Result};

use crate::failure::{Failure, Outcome};

/// Opens a checkpoint that is part of the program.
///
/// # Errors
/// A refusal, should the program have been built from damaged files.
pub fn open(model: &Dir<'static>) -> Outcome<(Config, Box<dyn WeightSource>)> {
    let config = model.get_file("config.json").ok_or_else(|| Failure::refused("config.json is not in the program"))?;
    let config = Config::from_json(config.contents())?;
    let checkpoint = Checkpoint::open(&Bundle(model.clone()), &config, config.layers.len())?;
    let source = Resident::new(checkpoint, |file| Ok(file.0))?;
    Ok((config, Box::new(source)))
}

/// A folder that is part of the program.
struct Bundle(Dir<'static>);

/// A file that is part of the program.
#[derive(Debug)]
struct BundledFile(&'static [u8]);

impl Directory for Bundle {
    type File = BundledFile;

    fn open(&self, name: &str) -> Result<Option<BundledFile>> {
        Ok(self.0.get_file(name).map(|file| BundledFile(file.contents())))
    }
}

impl Storage for BundledFile {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn read_exact_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let range = usize::try_from(offset).ok().and_then(|start| self.0.get(start..)?.get(..buffer.len()));
        let bytes = range.ok_or_else(|| Error::Read {
            file: "bundled model".into(),
            offset,
            length: buffer.len() as u64,
            reason: "beyond the end of the file".into(),
        })?;
        buffer.copy_from_slice(bytes);
        Ok(())
    }
}
