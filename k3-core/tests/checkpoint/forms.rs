//! Forms of a checkpoint that differ from the release and mean the same.

use k3_core::checkpoint::names::{ExpertId, ExpertMatrix, LayerTensor, TensorId};
use k3_core::kernels::Encoding;
use serde_json::json;

use crate::memory::Memory;
use crate::shards::{Tensor, build, parse};

const EXPERT: &str = "language_model.model.layers.2.block_sparse_moe.experts.7.w2.weight";
const OUTPUT: &str = "language_model.model.layers.5.self_attn.o_proj.weight";

fn a() -> Memory {
    Memory::load("oracle/a")
}

fn plain(name: &str, dtype: &str, shape: [u64; 2], size: u64) -> Tensor {
    let data = vec![0; (shape[0] * shape[1] * size) as usize];
    Tensor { name: name.to_owned(), dtype: dtype.to_owned(), shape: shape.to_vec(), data }
}

#[test]
fn one_file_without_the_prefix_and_without_an_index() {
    let folder = a();
    let mut tensors: Vec<Tensor> = folder
        .0
        .iter()
        .filter(|(name, _)| name.ends_with(".safetensors"))
        .flat_map(|(_, bytes)| parse(bytes))
        .collect();
    for tensor in &mut tensors {
        tensor.name = tensor.name.strip_prefix("language_model.").unwrap().to_owned();
    }
    let single = Memory(
        [
            ("config.json".to_owned(), folder.0["config.json"].clone()),
            ("model.safetensors".to_owned(), build(&tensors)),
        ]
        .into(),
    );
    let checkpoint = single.open_all().unwrap();
    assert_eq!(checkpoint.index.shards(), ["model.safetensors"]);
}

#[test]
fn the_tensors_that_exist_decide_what_is_packed() {
    let folder = a()
        .edit(&format!("{EXPERT}_packed"), |tensors| {
            tensors.retain(|tensor| !tensor.name.starts_with(EXPERT));
            tensors.push(plain(EXPERT, "BF16", [32, 64], 2));
        })
        .edit(OUTPUT, |tensors| {
            tensors.retain(|tensor| tensor.name != OUTPUT);
            tensors.push(plain(&format!("{OUTPUT}_packed"), "U8", [64, 32], 1));
            tensors.push(plain(&format!("{OUTPUT}_scale"), "U8", [64, 2], 1));
        })
        .edit_tensor("language_model.lm_head.weight", |tensor| {
            *tensor = plain(&tensor.name, "F32", [131, 64], 4);
        });
    let index = folder.open_all().unwrap().index;
    let expert = index.expert(ExpertId { layer: 2, expert: 7, matrix: ExpertMatrix::Down }).unwrap();
    assert_eq!((expert.encoding, expert.data.bytes, expert.scales), (Encoding::Bf16, 32 * 64 * 2, None));
    let output = index.tensor(TensorId::Layer(5, LayerTensor::Output)).unwrap();
    assert_eq!((output.encoding, output.rows, output.columns), (Encoding::Mxfp4, 64, 64));
    assert_eq!((output.data.bytes, output.scales.unwrap().bytes), (64 * 32, 64 * 2));
    assert_eq!(index.tensor(TensorId::Head).unwrap().encoding, Encoding::F32);
}

#[test]
fn a_tied_head_may_be_absent_or_ignored() {
    let mut folder = a();
    folder.edit_config(|config| {
        config["tie_word_embeddings"] = json!(true);
        config["text_config"]["tie_word_embeddings"] = json!(true);
    });
    assert_eq!(folder.open_all().unwrap().index.tensor(TensorId::Head), None);
    let head = "language_model.lm_head.weight";
    let folder = folder.edit(head, |tensors| tensors.retain(|tensor| tensor.name != head));
    assert_eq!(folder.open_all().unwrap().index.tensor(TensorId::Head), None);
}

#[test]
fn what_a_switch_leaves_out_may_be_absent_or_ignored() {
    let mut folder = a();
    folder.edit_config(|config| {
        config["text_config"]["latent_moe_use_norm"] = json!(false);
        config["text_config"]["mla_use_output_gate"] = json!(false);
    });
    let tensors = [(1, LayerTensor::LatentNorm), (3, LayerTensor::OutputGate)];
    let found = |folder: &Memory| {
        let index = folder.open_all().unwrap().index;
        tensors.map(|(layer, tensor)| index.tensor(TensorId::Layer(layer, tensor)))
    };
    assert_eq!(found(&folder), [None; 2]);
    for (layer, tensor) in tensors {
        let name = TensorId::Layer(layer, tensor).to_string();
        folder = folder.edit(&name, |tensors| tensors.retain(|tensor| tensor.name != name));
    }
    assert_eq!(found(&folder), [None; 2]);
}

#[test]
fn the_vision_tower_may_be_absent_and_of_any_type() {
    let mut folder = a();
    let vision = plain("vision_tower.encoder.blocks.0.wo.weight", "F4", [3, 5], 1);
    folder.edit_index(|index| {
        index.insert(vision.name.clone(), json!("vision.safetensors"));
    });
    assert_eq!(folder.open_all().unwrap().index.shards().len(), 14);
    folder.0.insert("vision.safetensors".to_owned(), build(&[vision]));
    assert_eq!(folder.open_all().unwrap().index.shards().len(), 14);
    // Needed or not, a file that is there must be sound.
    folder.0.get_mut("vision.safetensors").unwrap().pop();
    assert!(folder.fault().starts_with("vision.safetensors: tensor vision_tower.encoder.blocks.0.wo.weight: 15 bytes"));
}
