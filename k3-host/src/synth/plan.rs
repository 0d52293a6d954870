//! Which file holds which tensors, where, and how each is stored.

use std::cmp::Reverse;

use k3_core::checkpoint::names::{ExpertId, ExpertMatrix, LayerTensor, Name, Part, TensorId};
use k3_core::checkpoint::required::Need;
use k3_core::checkpoint::shapes::Shape;
use k3_core::config::{Config, FeedForward};
use serde::Serialize;
use serde::ser::{SerializeMap, Serializer};

use super::encode::Storing;
use super::values::Recipe;
use super::vision;

/// The data of a file begin at a multiple of this many bytes.
const ALIGNMENT: usize = 8;

/// One tensor of a file. Rows and columns are those of the numbers, however they are packed.
#[derive(Debug)]
pub(super) struct Tensor {
    /// The name in the header.
    pub(super) name: String,
    /// What that name stands for.
    pub(super) meaning: Name,
    /// What its random numbers are named after: the parts of a packed matrix come from the same numbers.
    pub(super) seed_name: String,
    pub(super) storing: Storing,
    pub(super) recipe: Recipe,
    pub(super) rows: usize,
    pub(super) columns: usize,
    dimensions: Vec<u64>,
}

impl Tensor {
    pub(super) fn row_bytes(&self) -> usize {
        self.storing.row_bytes(self.columns)
    }

    pub(super) fn bytes(&self) -> u64 {
        self.rows as u64 * self.row_bytes() as u64
    }

    fn plain(id: TensorId, config: &Config) -> Self {
        let (shape, meaning) = (id.shape(config), Name::Text(id, Part::Plain));
        let columns = match shape {
            Shape::PaddedVector { released, .. } => released,
            other => other.columns(),
        };
        Self {
            name: meaning.to_string(),
            meaning,
            seed_name: id.to_string(),
            storing: storing(id),
            recipe: Recipe::of(id, config.kda.heads),
            rows: shape.rows(),
            columns,
            dimensions: shape.dimensions(),
        }
    }

    fn expert(id: ExpertId, part: Part, config: &Config) -> Self {
        let (shape, meaning) = (id.matrix.shape(config), Name::Expert(id, part));
        let storing = if part == Part::Scale { Storing::Scales } else { Storing::Codes };
        let (rows, columns) = (shape.rows(), shape.columns());
        Self {
            name: meaning.to_string(),
            meaning,
            seed_name: id.to_string(),
            storing,
            recipe: Recipe::Expert,
            rows,
            columns,
            dimensions: vec![rows as u64, storing.row_bytes(columns) as u64],
        }
    }

    /// A tensor of the vision tower or its projector.
    pub(super) fn vision(name: String, dimensions: &[usize]) -> Self {
        let columns = dimensions.last().copied().unwrap_or(1);
        Self {
            seed_name: name.clone(),
            name,
            meaning: Name::Vision,
            storing: Storing::Bf16,
            recipe: Recipe::MATRIX,
            rows: dimensions.iter().product::<usize>() / columns,
            columns,
            dimensions: dimensions.iter().map(|&length| length as u64).collect(),
        }
    }
}

/// The kinds of tensor that the release keeps in single precision.
fn storing(id: TensorId) -> Storing {
    match id {
        TensorId::Layer(
            _,
            LayerTensor::QueryConv
            | LayerTensor::KeyConv
            | LayerTensor::ValueConv
            | LayerTensor::ALog
            | LayerTensor::DtBias
            | LayerTensor::OutputNorm
            | LayerTensor::RouterBias,
        ) => Storing::F32,
        _ => Storing::Bf16,
    }
}

/// Which files a checkpoint has, and what their headers say besides the tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Edition {
    /// The text model. Headers have the usual metadata, as those of the oracle models do.
    Text,
    /// The projector and the vision tower in two more files. Headers have no metadata, which gives the released files
    /// their sizes to the byte.
    Released,
}

/// One file with its tensors, in the order in which they lie.
#[derive(Debug)]
pub(super) struct Shard {
    pub(super) file: String,
    edition: Edition,
    pub(super) tensors: Vec<Tensor>,
}

impl Shard {
    /// The bytes before the data: the length of the header, and the header with spaces after it.
    pub(super) fn header(&self) -> serde_json::Result<Vec<u8>> {
        let mut text = serde_json::to_vec(&Entries(self))?;
        text.resize(text.len().next_multiple_of(ALIGNMENT), b' ');
        let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
        bytes.append(&mut text);
        Ok(bytes)
    }

    pub(super) fn data_bytes(&self) -> u64 {
        self.tensors.iter().map(Tensor::bytes).sum()
    }
}

/// The files of a model: one for each layer, one for what is outside the layers, and those of the edition.
pub(super) fn shards(config: &Config, edition: Edition) -> impl Iterator<Item = Shard> {
    let names = shard_names(config, edition).enumerate();
    names.map(move |(number, file)| Shard { file, edition, tensors: file_tensors(config, number) })
}

/// The file called `name`, if there is one.
pub(super) fn shard(config: &Config, edition: Edition, name: &str) -> Option<Shard> {
    let (number, file) = shard_names(config, edition).enumerate().find(|(_, file)| file == name)?;
    Some(Shard { file, edition, tensors: file_tensors(config, number) })
}

/// The names of these files.
fn shard_names(config: &Config, edition: Edition) -> impl Iterator<Item = String> {
    let files = config.layers.len()
        + match edition {
            Edition::Text => 1,
            Edition::Released => 3,
        };
    (1..=files).map(move |number| format!("model-{number:05}-of-{files:06}.safetensors"))
}

fn file_tensors(config: &Config, number: usize) -> Vec<Tensor> {
    in_order(match number.checked_sub(config.layers.len()) {
        None => layer_tensors(config, number),
        Some(0) => plain_tensors(TensorId::outside_layers(), config),
        Some(1) => vision::projector(config.hidden),
        Some(_) => vision::tower(),
    })
}

fn layer_tensors(config: &Config, layer: usize) -> Vec<Tensor> {
    let ids = LayerTensor::all().map(|tensor| TensorId::Layer(layer, tensor));
    let mut tensors = plain_tensors(ids, config);
    if config.layers[layer].feed_forward == FeedForward::Moe {
        for expert in 0..config.moe.experts {
            for matrix in ExpertMatrix::ALL {
                let id = ExpertId { layer, expert, matrix };
                tensors.extend([Part::Packed, Part::Scale].map(|part| Tensor::expert(id, part, config)));
            }
        }
    }
    tensors
}

/// Those of the tensors that the model needs.
fn plain_tensors(ids: impl Iterator<Item = TensorId>, config: &Config) -> Vec<Tensor> {
    ids.filter(|id| id.need(config) == Need::Required).map(|id| Tensor::plain(id, config)).collect()
}

/// As the usual writer of the format orders them: the widest elements first, so that every tensor is aligned to its
/// elements, then by name.
fn in_order(mut tensors: Vec<Tensor>) -> Vec<Tensor> {
    let element_bytes = |tensor: &Tensor| Reverse(tensor.storing.element_bytes());
    tensors.sort_by(|left, right| (element_bytes(left), &left.name).cmp(&(element_bytes(right), &right.name)));
    tensors
}

/// The header of a file.
struct Entries<'a>(&'a Shard);

#[derive(Serialize)]
struct Entry<'a> {
    dtype: &'static str,
    shape: &'a [u64],
    data_offsets: [u64; 2],
}

impl Serialize for Entries<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        if self.0.edition == Edition::Text {
            map.serialize_entry("__metadata__", &serde_json::json!({ "format": "pt" }))?;
        }
        let mut begin = 0;
        for tensor in &self.0.tensors {
            let end = begin + tensor.bytes();
            let entry = Entry { dtype: tensor.storing.dtype(), shape: &tensor.dimensions, data_offsets: [begin, end] };
            map.serialize_entry(&tensor.name, &entry)?;
            begin = end;
        }
        map.end()
    }
}

/// The text of `model.safetensors.index.json`.
pub(super) fn index(config: &Config, edition: Edition) -> serde_json::Result<Vec<u8>> {
    let total_size: u64 = shards(config, edition).map(|shard| shard.data_bytes()).sum();
    serde_json::to_vec(&Index { metadata: Metadata { total_size }, weight_map: WeightMap { config, edition } })
}

#[derive(Serialize)]
struct Index<'a> {
    metadata: Metadata,
    weight_map: WeightMap<'a>,
}

#[derive(Serialize)]
struct Metadata {
    total_size: u64,
}

struct WeightMap<'a> {
    config: &'a Config,
    edition: Edition,
}

impl Serialize for WeightMap<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let entries = shards(self.config, self.edition).flat_map(|shard| {
            let file = shard.file;
            shard.tensors.into_iter().map(move |tensor| (tensor.name, file.clone()))
        });
        serializer.collect_map(entries)
    }
}
