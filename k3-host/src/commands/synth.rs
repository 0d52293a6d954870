//! `synth`: a checkpoint in the released layout, made from a seed.

use std::path::PathBuf;
use std::time::Instant;

use clap::ValueEnum;
use serde::Serialize;

use crate::byte_bar::byte_bar;
use crate::failure::{Failure, Outcome};
use crate::memory::readable;
use crate::synth::{self, Existing, MOST_LAYERS, Order, Progress, ReplicaOrder, Shape, released_mla_layers};

/// Arguments of `synth`.
#[derive(Debug, clap::Args)]
pub struct SynthArgs {
    /// The folder to write into
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
    /// The shape that the flags below change
    #[arg(long, value_enum, default_value_t = NamedShape::Tiny)]
    pub shape: NamedShape,
    /// Other seeds give other numbers
    #[arg(long, value_name = "N", default_value_t = 0)]
    pub seed: u64,
    /// Replace the checkpoint in DIR; it stands until the new one is complete
    #[arg(long)]
    pub force: bool,
    /// Changes to the shape
    #[command(flatten)]
    pub dimensions: Dimensions,
}

/// The shapes that have names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum NamedShape {
    /// A few megabytes with every kind of layer
    Tiny,
    /// The released width, 5 layers of 64 experts and 8192 ids: about 11 GB
    Slice,
    /// The release: its 96 files at their true size, with holes for data, on a third of a gigabyte of disk. Takes no
    /// other dimensions
    Replica,
}

/// Dimensions that differ from those of the named shape.
#[derive(Debug, Clone, Default, Serialize, clap::Args)]
#[serde(rename_all = "kebab-case")]
#[command(next_help_heading = "Dimensions")]
pub struct Dimensions {
    /// Layers
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=i64::from(MOST_LAYERS)))]
    pub layers: Option<u32>,
    /// Layers with latent attention, numbered from 0 [default: every fourth, and the last]
    #[arg(long, value_name = "LIST", value_delimiter = ',')]
    pub mla_layers: Option<Vec<usize>>,
    /// How many of the first layers are dense
    #[arg(long, value_name = "N")]
    pub first_dense: Option<usize>,
    /// Layers of a residual block
    #[arg(long, value_name = "N")]
    pub residual_block: Option<usize>,
    /// Width of the residual stream
    #[arg(long, value_name = "N")]
    pub hidden: Option<usize>,
    /// Number of token ids
    #[arg(long, value_name = "N")]
    pub vocabulary: Option<usize>,
    /// Inner width of the dense layers
    #[arg(long, value_name = "N")]
    pub dense_width: Option<usize>,
    /// Heads of delta attention
    #[arg(long, value_name = "N")]
    pub kda_heads: Option<usize>,
    /// Width of a head of delta attention
    #[arg(long, value_name = "N")]
    pub head_dim: Option<usize>,
    /// Heads of latent attention
    #[arg(long, value_name = "N")]
    pub mla_heads: Option<usize>,
    /// Width of the query bottleneck
    #[arg(long, value_name = "N")]
    pub query_rank: Option<usize>,
    /// Width of the cached latent
    #[arg(long, value_name = "N")]
    pub latent_rank: Option<usize>,
    /// Per-head part of a key
    #[arg(long, value_name = "N")]
    pub nope_dim: Option<usize>,
    /// Part of a key that all heads share
    #[arg(long, value_name = "N")]
    pub rope_dim: Option<usize>,
    /// Width of a head's values
    #[arg(long, value_name = "N")]
    pub value_dim: Option<usize>,
    /// Routed experts in a layer
    #[arg(long, value_name = "N")]
    pub experts: Option<usize>,
    /// How many of them a token uses
    #[arg(long, value_name = "N")]
    pub top_k: Option<usize>,
    /// Shared experts in a layer
    #[arg(long, value_name = "N")]
    pub shared_experts: Option<usize>,
    /// Inner width of an expert
    #[arg(long, value_name = "N")]
    pub expert_width: Option<usize>,
    /// Width in which the routed experts work
    #[arg(long, value_name = "N")]
    pub expert_latent: Option<usize>,
}

impl SynthArgs {
    /// The shape that the arguments ask for.
    #[must_use]
    pub fn shape(&self) -> Shape {
        let named = match self.shape {
            NamedShape::Tiny => Shape::tiny(),
            NamedShape::Slice => Shape::slice(),
            NamedShape::Replica => Shape::released(),
        };
        let other = &self.dimensions;
        let layers = other.layers.map_or(named.layers, |layers| layers as usize);
        Shape {
            layers,
            mla_layers: other.mla_layers.clone().unwrap_or_else(|| released_mla_layers(layers)),
            first_dense: other.first_dense.unwrap_or(named.first_dense),
            residual_block: other.residual_block.unwrap_or(named.residual_block),
            hidden: other.hidden.unwrap_or(named.hidden),
            vocabulary: other.vocabulary.unwrap_or(named.vocabulary),
            dense_width: other.dense_width.unwrap_or(named.dense_width),
            kda_heads: other.kda_heads.unwrap_or(named.kda_heads),
            kda_head_dim: other.head_dim.unwrap_or(named.kda_head_dim),
            mla_heads: other.mla_heads.unwrap_or(named.mla_heads),
            query_rank: other.query_rank.unwrap_or(named.query_rank),
            latent_rank: other.latent_rank.unwrap_or(named.latent_rank),
            nope_dim: other.nope_dim.unwrap_or(named.nope_dim),
            rope_dim: other.rope_dim.unwrap_or(named.rope_dim),
            value_dim: other.value_dim.unwrap_or(named.value_dim),
            experts: other.experts.unwrap_or(named.experts),
            top_k: other.top_k.unwrap_or(named.top_k),
            shared_experts: other.shared_experts.unwrap_or(named.shared_experts),
            expert_width: other.expert_width.unwrap_or(named.expert_width),
            expert_latent: other.expert_latent.unwrap_or(named.expert_latent),
        }
    }
}

impl Dimensions {
    /// The flags that were given.
    fn given(&self) -> Outcome<Vec<String>> {
        let fields = serde_json::to_value(self).map_err(Failure::failed)?;
        let given = fields.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
        Ok(given.map(|(name, _)| format!("--{name}")).collect())
    }
}

/// Runs the command.
///
/// # Errors
/// If the shape, the folder or the disk does not allow it.
pub fn run(args: &SynthArgs) -> Outcome {
    let bar = byte_bar();
    let started = Instant::now();
    let what = write(args, &mut |progress| {
        bar.set_length(progress.total);
        bar.set_position(progress.written);
    })?;
    bar.finish_and_clear();
    println!("{}: {what} in {:.1} s", args.folder.display(), started.elapsed().as_secs_f64());
    Ok(())
}

/// Writes what was asked for, and says how much it was.
fn write(args: &SynthArgs, progress: &mut dyn FnMut(Progress)) -> Outcome<String> {
    let existing = if args.force { Existing::Replace } else { Existing::Refuse };
    if args.shape != NamedShape::Replica {
        let order = Order { shape: &args.shape(), seed: args.seed, existing };
        return Ok(format!("{} bytes", synth::write(&order, &args.folder, progress)?));
    }
    let given = args.dimensions.given()?;
    if !given.is_empty() {
        return Err(Failure::refused(format!(
            "the dimensions of a replica are the released ones: {}",
            given.join(", ")
        )));
    }
    let order = ReplicaOrder { seed: args.seed, existing };
    let written = synth::write_replica(order, &args.folder, progress)?;
    let (tensors, bytes) = (written.tensors, written.shard_bytes);
    Ok(format!("{tensors} tensors in {bytes} bytes, {} of them on the disk,", readable(written.disk_bytes)))
}
