//! The oracle models bind whole, and where the index points is what their headers say.

use std::collections::BTreeMap;

use k3_core::checkpoint::names::{ExpertId, ExpertMatrix, LayerTensor, Part, TensorId};
use k3_core::checkpoint::required::required;
use k3_core::checkpoint::{Checkpoint, Location, Span};
use k3_core::kernels::Encoding;
use serde_json::Value;

use crate::memory::Memory;

/// For each tensor its file, absolute offset and length, read with nothing but a general JSON parser.
fn spans(folder: &Memory) -> BTreeMap<String, (String, u64, u64)> {
    let mut spans = BTreeMap::new();
    for (file, bytes) in folder.0.iter().filter(|(file, _)| file.ends_with(".safetensors")) {
        let length = u64::from_le_bytes(bytes[..8].try_into().unwrap());
        let header: Value = serde_json::from_slice(&bytes[8..8 + length as usize]).unwrap();
        for (name, info) in header.as_object().unwrap().iter().filter(|(name, _)| *name != "__metadata__") {
            let offsets = [0, 1].map(|side| info["data_offsets"][side].as_u64().unwrap());
            let span = (file.clone(), 8 + length + offsets[0], offsets[1] - offsets[0]);
            assert!(spans.insert(name.clone(), span).is_none());
        }
    }
    spans
}

/// Removes what `location` points at from `spans` and compares.
fn take<F>(
    spans: &mut BTreeMap<String, (String, u64, u64)>,
    name: &str,
    checkpoint: &Checkpoint<F>,
    location: Location,
) {
    let mut check = |suffix: &str, span: Span| {
        let (file, offset, bytes) = spans.remove(&format!("{name}{suffix}")).unwrap();
        assert_eq!(checkpoint.index.shards()[span.shard], file, "{name}");
        // Only the used part of `A_log` is pointed at.
        assert!(
            span.offset == offset && (span.bytes == bytes || name.ends_with("A_log") && span.bytes < bytes),
            "{name}"
        );
    };
    match location.scales {
        Some(scales) => {
            check(Part::Packed.suffix(), location.data);
            check(Part::Scale.suffix(), scales);
        }
        None => check(Part::Plain.suffix(), location.data),
    }
}

#[test]
fn every_tensor_of_the_oracle_models_is_found_where_its_header_says() {
    for model in ["oracle/a", "oracle/b"] {
        let folder = Memory::load(model);
        let config = folder.config();
        let checkpoint = folder.open_all().unwrap();
        assert_eq!(checkpoint.files.len(), checkpoint.index.shards().len());
        let mut spans = spans(&folder);
        for id in required(&config, config.layers.len()) {
            take(&mut spans, &id.to_string(), &checkpoint, checkpoint.index.tensor(id).unwrap());
        }
        for id in checkpoint.index.expert_ids() {
            let location = checkpoint.index.expert(id).unwrap();
            assert_eq!(location.encoding, Encoding::Mxfp4);
            take(&mut spans, &id.to_string(), &checkpoint, location);
        }
        assert_eq!(spans.keys().collect::<Vec<_>>(), [""; 0], "{model}");
    }
}

#[test]
fn shapes_and_encodings_are_as_documented() {
    let checkpoint = Memory::load("oracle/b").open_all().unwrap();
    let layer = |layer, tensor| checkpoint.index.tensor(TensorId::Layer(layer, tensor));
    let facts = |location: Option<Location>| location.map(|found| (found.encoding, found.rows, found.columns));
    assert_eq!(facts(layer(0, LayerTensor::ALog)), Some((Encoding::F32, 1, 5)));
    assert_eq!(facts(layer(0, LayerTensor::QueryConv)), Some((Encoding::F32, 100, 4)));
    assert_eq!(facts(layer(0, LayerTensor::DenseGate)), Some((Encoding::Bf16, 101, 75)));
    assert_eq!(facts(layer(3, LayerTensor::KeyValueUp)), Some((Encoding::Bf16, 3 * 24, 29)));
    assert_eq!(facts(layer(3, LayerTensor::Output)), Some((Encoding::Bf16, 75, 33)));
    assert_eq!(facts(checkpoint.index.tensor(TensorId::Head)), Some((Encoding::Bf16, 211, 75)));
    let expert = |layer, expert, matrix| checkpoint.index.expert(ExpertId { layer, expert, matrix });
    assert_eq!(facts(expert(2, 12, ExpertMatrix::Down)), Some((Encoding::Mxfp4, 96, 160)));
    // What does not exist is not found: other kinds of layer, numbers out of range.
    assert_eq!(layer(0, LayerTensor::KeyValueUp), None);
    assert_eq!(layer(11, LayerTensor::InputNorm), None);
    assert_eq!(expert(2, 13, ExpertMatrix::Gate), None);
    assert_eq!(expert(1, 0, ExpertMatrix::Gate), None);
    assert_eq!(expert(2, usize::MAX, ExpertMatrix::Up), None);
}

#[test]
fn the_first_layers_can_be_had_without_the_shards_of_the_rest() {
    let mut folder = Memory::load("oracle/a");
    let config = folder.config();
    folder.0.retain(|name, _| !name.contains("-00005-") && !name.contains("-00013-"));
    let checkpoint = Checkpoint::open(&folder, &config, 4).unwrap();
    assert_eq!(checkpoint.index.shards().len(), 5);
    assert!(checkpoint.index.tensor(TensorId::Layer(3, LayerTensor::InputNorm)).is_some());
    assert!(checkpoint.index.tensor(TensorId::Layer(4, LayerTensor::InputNorm)).is_none());
    let fault = Checkpoint::open(&folder, &config, 5).unwrap_err().to_string();
    assert_eq!(
        fault,
        "model-00005-of-000014.safetensors: missing; \
         tensor language_model.model.layers.4.input_layernorm.weight should be in it"
    );
    let fault = Checkpoint::open(&folder, &config, 14).unwrap_err().to_string();
    assert_eq!(fault, "config.json: num_hidden_layers: 14 layers are asked for, there are 13");
}
