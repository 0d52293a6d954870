//! The released files at their true size, of which almost nothing is on the disk.
//!
//! The data are holes, which read as zeros: matrices that are all zero hand on nothing, so the residual stream stays the
//! token's embedding from the first layer to the last. What is written makes a run of that:
//!
//! 1. Norms are 1, and the first [`KNOWN_IDS`] ids have embeddings, random and of unit size.
//! 2. The head's row of an id is the embedding of the id before it, so that greedy ids count upwards, each with its own
//!    choice of experts. An id without an embedding has logits of 0.
//! 3. A router row has numbers in a band at one end. Even rows have it at their end and odd rows at their beginning, so
//!    that two bands touch and share a block of the disk, where a full router would take seven.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;

use k3_core::checkpoint::names::{LayerTensor, Name, TensorId};

use super::Progress;
use super::disk::DiskBlocks;
use super::folder::{CONFIG, Existing, INDEX, Staging};
use super::plan::{self, Edition, Shard, Tensor};
use super::random::{Normals, RowNumbers, tensor_seed};
use super::shape::Shape;
use super::values::Recipe;
use crate::failure::{Failure, Outcome};

/// How many ids have an embedding: those from 0.
pub const KNOWN_IDS: usize = 512;
/// Columns of a router row that are not zero. Narrow enough that in all but two layers no pair of bands needs a second
/// block.
const BAND: usize = 256;

/// Deviation of what is added to an expert's score before the choice. Among the highest scores of 896 experts, it counts
/// as much as a twentieth of a logit: the choice is the token's.
const ROUTER_BIAS: f32 = 0.004;

/// A replica to be made.
#[derive(Debug, Clone, Copy)]
pub struct ReplicaOrder {
    /// What its numbers are drawn from.
    pub seed: u64,
    /// What to do if the folder has something in it.
    pub existing: Existing,
}

/// How much a replica is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Written {
    /// Tensors in all files.
    pub tensors: usize,
    /// Bytes of the shards: headers and tensors.
    pub shard_bytes: u64,
    /// Bytes that all files take on the disk.
    pub disk_bytes: u64,
}

/// Writes the released checkpoint into `folder`, with holes for nearly all of its data, and tells `progress` about the
/// bytes that go to the disk.
///
/// # Errors
/// A refusal, before anything is written, if the folder is not empty, the file system has no holes or the disk has too
/// little space. A failed write leaves the folder as it was.
pub fn write_replica(order: ReplicaOrder, folder: &Path, progress: &mut dyn FnMut(Progress)) -> Outcome<Written> {
    let (config_text, config) = Shape::released().config()?;
    let index = plan::index(&config, Edition::Released).map_err(Failure::failed)?;
    let texts = [(INDEX, index.as_slice()), (CONFIG, config_text.as_bytes())];
    let mut written = Written::default();
    for shard in plan::shards(&config, Edition::Released) {
        let header = shard.header().map_err(Failure::failed)?.len() as u64;
        written.tensors += shard.tensors.len();
        written.shard_bytes += header + shard.data_bytes();
        written.disk_bytes += disk_bytes(&shard, header);
    }
    written.disk_bytes += texts.iter().map(|(_, text)| DiskBlocks::of(0..text.len() as u64)).sum::<u64>();

    let staging = Staging::new(folder, order.existing, written.disk_bytes)?;
    staging.check_holes()?;
    let numbers = Numbers { normals: Normals::new(), seed: order.seed };
    let mut done = 0;
    let mut count = |bytes: u64| {
        done += bytes;
        progress(Progress { written: done, total: written.disk_bytes });
    };
    for shard in plan::shards(&config, Edition::Released) {
        let header = shard.header().map_err(Failure::failed)?;
        staging.write(&shard.file, |file| numbers.write_shard(&shard, &header, file))?;
        count(disk_bytes(&shard, header.len() as u64));
    }
    for (name, text) in texts {
        staging.write(name, |file| file.write_all(text))?;
        count(DiskBlocks::of(0..text.len() as u64));
    }
    staging.publish()?;
    Ok(written)
}

/// What is written of a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Contents {
    Holes,
    Ones,
    Embedding,
    Head,
    RouterBands,
    RouterBias,
}

impl Contents {
    fn of(tensor: &Tensor) -> Self {
        match (tensor.meaning, tensor.recipe) {
            (Name::Text(TensorId::Embedding, _), _) => Self::Embedding,
            (Name::Text(TensorId::Head, _), _) => Self::Head,
            (Name::Text(TensorId::Layer(_, LayerTensor::Router), _), _) => Self::RouterBands,
            (_, Recipe::Norm) => Self::Ones,
            (_, Recipe::RouterBias) => Self::RouterBias,
            _ => Self::Holes,
        }
    }

    /// The rows that are written.
    fn rows(self, tensor: &Tensor) -> Range<usize> {
        match self {
            Self::Holes => 0..0,
            Self::Embedding | Self::Head => 0..KNOWN_IDS,
            Self::Ones | Self::RouterBands | Self::RouterBias => 0..tensor.rows,
        }
    }

    /// The columns of `row` that are written.
    fn columns(self, tensor: &Tensor, row: usize) -> Range<usize> {
        match self {
            Self::RouterBands if row.is_multiple_of(2) => tensor.columns - BAND..tensor.columns,
            Self::RouterBands => 0..BAND,
            _ => 0..tensor.columns,
        }
    }
}

/// A piece of a row that is written.
struct Patch<'a> {
    tensor: &'a Tensor,
    contents: Contents,
    row: usize,
    columns: Range<usize>,
    /// The place in the file.
    bytes: Range<u64>,
}

/// What is written of a file after its header of `header` bytes, from front to back.
fn patches(shard: &Shard, header: u64) -> impl Iterator<Item = Patch<'_>> {
    let begins = shard.tensors.iter().scan(header, |end, tensor| {
        let begin = *end;
        *end += tensor.bytes();
        Some((tensor, begin))
    });
    begins.flat_map(|(tensor, begin)| {
        let contents = Contents::of(tensor);
        contents.rows(tensor).map(move |row| {
            let columns = contents.columns(tensor, row);
            let row_begin = begin + (row * tensor.row_bytes()) as u64;
            let place = |column| row_begin + tensor.storing.row_bytes(column) as u64;
            Patch { tensor, contents, row, bytes: place(columns.start)..place(columns.end), columns }
        })
    })
}

/// The bytes of a file that are on the disk.
fn disk_bytes(shard: &Shard, header: u64) -> u64 {
    let mut blocks = DiskBlocks::default();
    blocks.add(0..header);
    patches(shard, header).for_each(|patch| blocks.add(patch.bytes));
    blocks.bytes()
}

/// Makes the numbers of the patches.
struct Numbers {
    normals: Normals,
    seed: u64,
}

impl Numbers {
    fn write_shard(&self, shard: &Shard, header: &[u8], file: &mut File) -> io::Result<()> {
        file.set_len(header.len() as u64 + shard.data_bytes())?;
        file.write_all(header)?;
        let (mut numbers, mut bytes) = (Vec::new(), Vec::new());
        for patch in patches(shard, header.len() as u64) {
            numbers.resize(patch.columns.len(), 0.0);
            bytes.resize(patch.tensor.storing.row_bytes(patch.columns.len()), 0);
            self.fill(&patch, &mut numbers);
            patch.tensor.storing.encode(&numbers, &mut bytes);
            file.seek(SeekFrom::Start(patch.bytes.start))?;
            file.write_all(&bytes)?;
        }
        Ok(())
    }

    fn fill(&self, patch: &Patch<'_>, numbers: &mut [f32]) {
        let random = |name, row| RowNumbers::new(&self.normals, tensor_seed(self.seed, name), row);
        let mut own = random(&patch.tensor.seed_name, patch.row);
        let unit = 1.0 / libm::sqrtf(numbers.len() as f32);
        match patch.contents {
            Contents::Holes => {}
            Contents::Ones => numbers.fill(1.0),
            Contents::Embedding => own.fill_normal(1.0, numbers),
            // Of unit length, where embeddings have unit numbers: the logit of the next id is about √hidden, others 1.
            Contents::Head => {
                let before = (patch.row + KNOWN_IDS - 1) % KNOWN_IDS;
                random(&TensorId::Embedding.to_string(), before).fill_normal(unit, numbers);
            }
            // What a router is given has unit numbers, so its logits have deviation 1.
            Contents::RouterBands => own.fill_normal(unit, numbers),
            Contents::RouterBias => own.fill_normal(ROUTER_BIAS, numbers),
        }
    }
}
