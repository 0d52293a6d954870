//! Shard files of the released names, shapes, order and size, whose data are holes.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write as _};
use std::path::Path;

use k3_core::checkpoint::names::{ExpertId, ExpertMatrix, LayerTensor, TensorId};
use k3_core::checkpoint::required::required;
use k3_core::config::{Attention, Config, FeedForward, KdaConfig, LayerKind, MlaConfig, MoeConfig, SituConfig};

const LAYERS: usize = 93;
const SHARDS: usize = 96;

/// The dimensions of the released model.
pub fn config() -> Config {
    let kind = |layer: usize| LayerKind {
        attention: if layer % 4 == 3 || layer == 92 { Attention::Mla } else { Attention::Kda },
        feed_forward: if layer == 0 { FeedForward::Dense } else { FeedForward::Moe },
    };
    Config {
        hidden: 7168,
        vocabulary: 163_840,
        layers: (0..LAYERS).map(kind).collect(),
        rms_norm_eps: 1e-5,
        residual_block: 12,
        dense_width: 33_792,
        kda: KdaConfig { heads: 96, head_dim: 128, taps: 4, gate_lower_bound: Some(-5.0) },
        mla: MlaConfig {
            heads: 96,
            query_rank: 1536,
            latent: 512,
            nope_dim: 128,
            rope_dim: 64,
            value_dim: 128,
            output_gate: true,
        },
        moe: MoeConfig {
            experts: 896,
            top_k: 16,
            latent: 3584,
            expert_width: 3072,
            shared_width: 6144,
            renormalize: true,
            scaling: 1.0,
            latent_norm: true,
        },
        situ: SituConfig { beta: 4.0, linear_beta: Some(25.0) },
        tied_embeddings: false,
        max_positions: 1 << 20,
        end_ids: vec![163_586],
    }
}

/// How much was written.
#[derive(Default)]
pub struct Written {
    pub tensors: usize,
    pub bytes: u64,
}

/// Writes all shards and their index into `folder`.
pub fn write(folder: &Path, config: &Config) -> Written {
    let mut index = BufWriter::new(File::create(folder.join("model.safetensors.index.json")).unwrap());
    write!(index, "{{\n  \"metadata\": {{\n    \"total_size\": 1560860324864\n  }},\n  \"weight_map\": {{").unwrap();
    let mut written = Written::default();
    for number in 1..=SHARDS {
        let file = format!("model-{number:05}-of-{SHARDS:06}.safetensors");
        let mut shard = Shard::default();
        match number {
            ..=LAYERS => layer(&mut shard, config, number - 1),
            94 => required(config, 0).for_each(|id| shard.add(&id.to_string(), "BF16", &id.shape(config).dimensions())),
            95 => projector(&mut shard),
            _ => vision(&mut shard),
        }
        for name in &shard.names {
            let comma = if written.tensors == 0 { "" } else { "," };
            write!(index, "{comma}\n    \"{name}\": \"{file}\"").unwrap();
            written.tensors += 1;
        }
        written.bytes += shard.bytes;
        shard.finish(&folder.join(file));
    }
    write!(index, "\n  }}\n}}").unwrap();
    index.flush().unwrap();
    written
}

/// A shard in the making.
#[derive(Default)]
struct Shard {
    names: Vec<String>,
    header: String,
    bytes: u64,
}

impl Shard {
    fn add(&mut self, name: &str, dtype: &str, dimensions: &[u64]) {
        let size = match dtype {
            "F32" => 4,
            "BF16" => 2,
            _ => 1,
        };
        let end = self.bytes + dimensions.iter().product::<u64>() * size;
        let (begin, header) = (self.bytes, &mut self.header);
        write!(header, r#","{name}":{{"dtype":"{dtype}","shape":{dimensions:?},"data_offsets":[{begin},{end}]}}"#)
            .unwrap();
        self.names.push(name.to_owned());
        self.bytes = end;
    }

    fn finish(self, path: &Path) {
        let mut text = format!(r#"{{"__metadata__":{{"format":"pt"}}{}}}"#, self.header).replace(", ", ",");
        while !text.len().is_multiple_of(8) {
            text.push(' ');
        }
        let mut file = File::create(path).unwrap();
        file.write_all(&(text.len() as u64).to_le_bytes()).unwrap();
        file.write_all(text.as_bytes()).unwrap();
        file.set_len(8 + text.len() as u64 + self.bytes).unwrap();
    }
}

fn layer(shard: &mut Shard, config: &Config, layer: usize) {
    for id in required(config, LAYERS) {
        let TensorId::Layer(of, tensor) = id else {
            continue;
        };
        if of == layer {
            shard.add(&id.to_string(), dtype(tensor), &id.shape(config).dimensions());
        }
    }
    if config.layers[layer].feed_forward == FeedForward::Dense {
        return;
    }
    for expert in 0..config.moe.experts {
        for matrix in ExpertMatrix::ALL {
            let name = ExpertId { layer, expert, matrix };
            let shape = matrix.shape(config);
            let (rows, columns) = (shape.rows() as u64, shape.columns() as u64);
            shard.add(&format!("{name}_packed"), "U8", &[rows, columns / 2]);
            shard.add(&format!("{name}_scale"), "U8", &[rows, columns / 32]);
        }
    }
}

/// The seven kinds that are released in f32.
fn dtype(tensor: LayerTensor) -> &'static str {
    use LayerTensor::{ALog, DtBias, KeyConv, OutputNorm, QueryConv, RouterBias, ValueConv};
    match tensor {
        QueryConv | KeyConv | ValueConv | ALog | DtBias | OutputNorm | RouterBias => "F32",
        _ => "BF16",
    }
}

fn projector(shard: &mut Shard) {
    shard.add("mm_projector.post_norm.weight", "BF16", &[7168]);
    shard.add("mm_projector.proj.0.weight", "BF16", &[4096, 4096]);
    shard.add("mm_projector.proj.2.weight", "BF16", &[7168, 4096]);
}

fn vision(shard: &mut Shard) {
    for block in 0..27 {
        let tensors: [(&str, &[u64]); 6] = [
            ("mlp.fc0", &[4096, 1024]),
            ("mlp.fc1", &[1024, 4096]),
            ("norm0", &[1024]),
            ("norm1", &[1024]),
            ("wo", &[1024, 1536]),
            ("wqkv", &[4608, 1024]),
        ];
        for (name, dimensions) in tensors {
            shard.add(&format!("vision_tower.encoder.blocks.{block}.{name}.weight"), "BF16", dimensions);
        }
    }
    shard.add("vision_tower.encoder.final_layernorm.weight", "BF16", &[1024]);
    shard.add("vision_tower.patch_embed.pos_emb.weight", "BF16", &[64, 64, 1024]);
    shard.add("vision_tower.patch_embed.proj.weight", "BF16", &[1024, 3, 14, 14]);
}
