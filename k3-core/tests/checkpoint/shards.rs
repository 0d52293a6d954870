//! Shards taken apart and put together again, so that a test can change one thing.

use serde_json::{Map, Value, json};

use crate::memory::Memory;

/// A tensor with its data.
#[derive(Clone)]
pub struct Tensor {
    pub name: String,
    pub dtype: String,
    pub shape: Vec<u64>,
    pub data: Vec<u8>,
}

/// The tensors of a safetensors file, in the order of their data.
pub fn parse(bytes: &[u8]) -> Vec<Tensor> {
    let length = u64::from_le_bytes(bytes[..8].try_into().unwrap()) as usize;
    let header: Map<String, Value> = serde_json::from_slice(&bytes[8..8 + length]).unwrap();
    let mut tensors: Vec<(usize, Tensor)> = Vec::new();
    for (name, info) in header.into_iter().filter(|(name, _)| name != "__metadata__") {
        let [begin, end] = [0, 1].map(|side| info["data_offsets"][side].as_u64().unwrap() as usize);
        let shape = info["shape"].as_array().unwrap().iter().map(|size| size.as_u64().unwrap()).collect();
        let dtype = info["dtype"].as_str().unwrap().to_owned();
        tensors
            .push((begin, Tensor { name, dtype, shape, data: bytes[8 + length + begin..8 + length + end].to_vec() }));
    }
    tensors.sort_by_key(|(begin, _)| *begin);
    tensors.into_iter().map(|(_, tensor)| tensor).collect()
}

/// A safetensors file.
pub fn build(tensors: &[Tensor]) -> Vec<u8> {
    let mut header = Map::new();
    let mut data = Vec::new();
    for tensor in tensors {
        let offsets = [data.len(), data.len() + tensor.data.len()];
        let info = json!({ "dtype": tensor.dtype, "shape": tensor.shape, "data_offsets": offsets });
        assert!(header.insert(tensor.name.clone(), info).is_none());
        data.extend_from_slice(&tensor.data);
    }
    let header = serde_json::to_vec(&header).unwrap();
    [&(header.len() as u64).to_le_bytes(), header.as_slice(), &data].concat()
}

const INDEX: &str = "model.safetensors.index.json";

impl Memory {
    /// Changes the tensors of the shard that holds the tensor `name`; the index follows.
    pub fn edit(mut self, name: &str, change: impl FnOnce(&mut Vec<Tensor>)) -> Self {
        let file = self.index()[name].as_str().unwrap().to_owned();
        let mut tensors = parse(&self.0[&file]);
        change(&mut tensors);
        self.edit_index(|index| {
            index.retain(|_, of| *of != json!(file));
            index.extend(tensors.iter().map(|tensor| (tensor.name.clone(), json!(file))));
        });
        self.0.insert(file, build(&tensors));
        self
    }

    /// Changes one tensor.
    pub fn edit_tensor(self, name: &str, change: impl FnOnce(&mut Tensor)) -> Self {
        self.edit(name, |tensors| change(tensors.iter_mut().find(|tensor| tensor.name == name).unwrap()))
    }

    /// Which tensor the index says is in which file.
    pub fn index(&self) -> Map<String, Value> {
        let index: Value = serde_json::from_slice(&self.0[INDEX]).unwrap();
        index["weight_map"].as_object().unwrap().clone()
    }

    /// Changes the index alone.
    pub fn edit_index(&mut self, change: impl FnOnce(&mut Map<String, Value>)) {
        let mut index = self.index();
        change(&mut index);
        self.0.insert(INDEX.to_owned(), serde_json::to_vec(&json!({ "weight_map": index })).unwrap());
    }

    /// Changes the text config.
    pub fn edit_config(&mut self, change: impl FnOnce(&mut Value)) {
        let mut config: Value = serde_json::from_slice(&self.0["config.json"]).unwrap();
        change(&mut config);
        self.0.insert("config.json".to_owned(), serde_json::to_vec(&config).unwrap());
    }
}
