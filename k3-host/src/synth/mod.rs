//! Making checkpoints in the released layout from a seed, for tests and measurements without the released one.
//!
//! The same shape and seed give the same bytes on every machine and any number of threads.

mod config_json;
mod disk;
mod encode;
mod folder;
mod headers;
mod plan;
mod random;
mod replica;
mod shape;
#[cfg(test)]
mod tests;
mod values;
mod vision;

use std::fs::File;
use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;

use rayon::prelude::*;

pub use folder::Existing;
pub use headers::{Extent, HeaderFile, Headers};
pub use replica::{KNOWN_IDS, ReplicaOrder, Written, write_replica};
pub use shape::{MOST_LAYERS, Shape, released_mla_layers};

use crate::failure::{Failure, Outcome};
use encode::Storing;
use folder::{CONFIG, INDEX, Staging};
use plan::{Edition, Shard, Tensor};
use random::{Normals, RowNumbers, tensor_seed};
use values::Recipe;

/// Bytes that are made while as many are written.
const PIECE_BYTES: usize = 16 << 20;
/// Bytes that are worth a task of their own.
const TASK_BYTES: usize = 64 << 10;

/// A checkpoint to be made.
#[derive(Debug, Clone)]
pub struct Order<'a> {
    /// Its dimensions.
    pub shape: &'a Shape,
    /// What its numbers are drawn from.
    pub seed: u64,
    /// What to do if the folder has something in it.
    pub existing: Existing,
}

/// How far the writing has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Progress {
    /// Bytes written.
    pub written: u64,
    /// Bytes in all.
    pub total: u64,
}

/// Writes the checkpoint into `folder` on the current thread pool, telling `progress` about it. Returns the bytes written.
///
/// # Errors
/// A refusal, before anything is written, if no model can have the shape, if the folder is not empty or if the disk has
/// too little space. A failed write leaves the folder as it was.
pub fn write(order: &Order<'_>, folder: &Path, progress: &mut dyn FnMut(Progress)) -> Outcome<u64> {
    let (config_text, config) = order.shape.config()?;
    let index = plan::index(&config, Edition::Text).map_err(Failure::failed)?;
    let mut total = config_text.len() as u64 + index.len() as u64;
    for shard in plan::shards(&config, Edition::Text) {
        total += shard.header().map_err(Failure::failed)?.len() as u64 + shard.data_bytes();
    }

    let staging = Staging::new(folder, order.existing, total)?;
    let generator = Generator { normals: Normals::new(), seed: order.seed };
    let mut written = 0;
    let mut count = |bytes: usize| {
        written += bytes as u64;
        progress(Progress { written, total });
    };
    for shard in plan::shards(&config, Edition::Text) {
        staging.write(&shard.file, |file| generator.write_shard(&shard, file, &mut count))?;
    }
    for (name, text) in [(INDEX, index.as_slice()), (CONFIG, config_text.as_bytes())] {
        staging.write(name, |file| file.write_all(text))?;
        count(text.len());
    }
    staging.publish()?;
    Ok(total)
}

/// Fills rows of `columns` elements with bf16 like that of a projection.
pub fn fill_projection(seed: u64, columns: usize, bf16: &mut [u8]) {
    let normals = Normals::new();
    bf16.par_chunks_mut(2 * columns).enumerate().for_each_init(
        || vec![0.0; columns],
        |numbers, (row, bytes)| {
            Recipe::MATRIX.fill(&mut RowNumbers::new(&normals, seed, row), numbers);
            Storing::Bf16.encode(numbers, bytes);
        },
    );
}

/// Makes the numbers of all tensors.
struct Generator {
    normals: Normals,
    seed: u64,
}

impl Generator {
    /// Writes a whole file. While one piece is written, the next is made.
    fn write_shard(&self, shard: &Shard, file: &mut File, count: &mut dyn FnMut(usize)) -> io::Result<()> {
        let mut ready = shard.header()?;
        let mut next = Vec::new();
        for (tensor, rows) in shard.tensors.iter().flat_map(pieces) {
            let (written, ()) = rayon::join(|| file.write_all(&ready), || self.fill(tensor, rows, &mut next));
            written?;
            count(ready.len());
            std::mem::swap(&mut ready, &mut next);
        }
        file.write_all(&ready)?;
        count(ready.len());
        Ok(())
    }

    /// Puts the bytes of some rows of a tensor in `bytes`.
    fn fill(&self, tensor: &Tensor, rows: Range<usize>, bytes: &mut Vec<u8>) {
        let row_bytes = tensor.row_bytes();
        let seed = tensor_seed(self.seed, &tensor.seed_name);
        bytes.resize(rows.len() * row_bytes, 0);
        let task_rows = (TASK_BYTES / row_bytes).max(1);
        bytes.par_chunks_mut(row_bytes).with_min_len(task_rows).zip(rows).for_each_init(
            || vec![0.0; tensor.columns],
            |numbers, (bytes, row)| {
                tensor.recipe.fill(&mut RowNumbers::new(&self.normals, seed, row), numbers);
                tensor.storing.encode(numbers, bytes);
            },
        );
    }
}

/// A tensor in pieces of whole rows.
fn pieces(tensor: &Tensor) -> impl Iterator<Item = (&Tensor, Range<usize>)> {
    let piece_rows = (PIECE_BYTES / tensor.row_bytes()).max(1);
    (0..tensor.rows).step_by(piece_rows).map(move |begin| (tensor, begin..(begin + piece_rows).min(tensor.rows)))
}
