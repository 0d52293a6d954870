//! The numbers have the properties that streaming, compression and routing depend on.

use k3_core::checkpoint::names::{ExpertId, ExpertMatrix, LayerTensor, TensorId};
use k3_core::config::Config;

use crate::synth::Generator;
use crate::synth::encode::Storing;
use crate::synth::plan::{self, Edition, Tensor};
use crate::synth::random::Normals;
use crate::synth::shape::Shape;

fn slice() -> Config {
    Shape::slice().config().unwrap().1
}

fn tensor(config: &Config, name: &str) -> Tensor {
    let mut tensors = plan::shards(config, Edition::Text).flat_map(|shard| shard.tensors);
    tensors.find(|tensor| tensor.name == name).expect("a tensor of this name")
}

fn layer_tensor(config: &Config, id: LayerTensor) -> Tensor {
    tensor(config, &TensorId::Layer(1, id).to_string())
}

/// The bytes of the first `rows` rows.
fn bytes(tensor: &Tensor, rows: usize) -> Vec<u8> {
    let generator = Generator { normals: Normals::new(), seed: 7 };
    let mut bytes = Vec::new();
    generator.fill(tensor, 0..rows, &mut bytes);
    bytes
}

fn singles(tensor: &Tensor) -> Vec<f32> {
    let bytes = bytes(tensor, tensor.rows);
    bytes.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap())).collect()
}

fn brains(tensor: &Tensor, rows: usize) -> Vec<f32> {
    let bytes = bytes(tensor, rows);
    bytes.chunks_exact(2).map(|bytes| half::bf16::from_le_bytes([bytes[0], bytes[1]]).to_f32()).collect()
}

/// The share of each value of `items`, which are below `N`.
fn shares<const N: usize>(items: impl Iterator<Item = u8>) -> [f64; N] {
    let mut counts = [0_u32; N];
    items.for_each(|item| counts[usize::from(item)] += 1);
    let all: u32 = counts.iter().sum();
    counts.map(|count| f64::from(count) / f64::from(all))
}

/// Released matrices shrink to 0.75 with a dictionary of 15 values and an escape, and to 0.67 with an entropy code:
/// 2.7 bits for the high byte.
#[test]
fn high_bytes_are_as_compressible_as_released() {
    for id in [LayerTensor::Query, LayerTensor::Output, LayerTensor::SharedDown, LayerTensor::Router] {
        let bytes = bytes(&layer_tensor(&slice(), id), 64);
        let mut shares: [f64; 256] = shares(bytes.chunks_exact(2).map(|number| number[1]));
        let entropy: f64 = shares.iter().filter(|share| **share > 0.0).map(|share| -share * share.log2()).sum();
        shares.sort_by(|left, right| right.total_cmp(left));
        let covered: f64 = shares[..15].iter().sum();
        assert!((0.999..1.0).contains(&covered), "{id:?}: 15 values cover {covered}");
        assert!((2.6..2.8).contains(&entropy), "{id:?}: {entropy} bits");
    }
}

/// Shares of the sizes of codes, and of scales, in 64 released rows of one expert matrix.
#[test]
fn experts_are_distributed_as_released() {
    let id = ExpertId { layer: 1, expert: 0, matrix: ExpertMatrix::Gate };
    let codes = bytes(&tensor(&slice(), &format!("{id}_packed")), 512);
    let nibbles = || codes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
    let sizes: [f64; 8] = shares(nibbles().map(|code| code & 7));
    let released = [0.116, 0.221, 0.192, 0.153, 0.153, 0.105, 0.051, 0.010];
    for (code, (share, released)) in sizes.iter().zip(released).enumerate() {
        assert!((share - released).abs() < 0.01, "code {code}: {share}, released {released}");
    }
    let signs: [f64; 2] = shares(nibbles().map(|code| code >> 3));
    assert!((signs[0] - signs[1]).abs() < 0.01, "{signs:?}");

    let scales: [f64; 256] = shares(bytes(&tensor(&slice(), &format!("{id}_scale")), 512).into_iter());
    for (scale, released) in [(120, 0.154), (121, 0.841), (122, 0.005)] {
        assert!((scales[scale] - released).abs() < 0.05, "scale {scale}: {}, released {released}", scales[scale]);
    }
    assert!(scales[118..=123].iter().sum::<f64>() > 0.999);
    assert!(scales[..120].iter().chain(&scales[123..]).sum::<f64>() > 0.0, "a few rows stand out");
}

/// A code under the scale stored beside it is the nearest there is to the number that both were made from.
#[test]
fn codes_and_scales_come_from_the_same_numbers() {
    let id = ExpertId { layer: 2, expert: 3, matrix: ExpertMatrix::Down };
    let rows = 16;
    let mut packed = tensor(&slice(), &format!("{id}_packed"));
    let codes = bytes(&packed, rows);
    let scales = bytes(&tensor(&slice(), &format!("{id}_scale")), rows);
    packed.storing = Storing::F32;
    let numbers = bytes(&packed, rows);
    let numbers = numbers.chunks_exact(4).map(|bytes| f32::from_le_bytes(bytes.try_into().unwrap()));

    let values = [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0_f32];
    let codes = codes.iter().flat_map(|byte| [byte & 15, byte >> 4]);
    for (column, (code, number)) in codes.zip(numbers).enumerate() {
        let scale = f32::from(i16::from(scales[column / 32]) - 127).exp2();
        let size = number.abs() / scale;
        let distance = |value: f32| (value - size).abs();
        let nearest = values.map(distance).into_iter().fold(f32::MAX, f32::min);
        assert_eq!(code >> 3 == 1, number < 0.0, "{number}");
        assert_eq!(
            distance(values[usize::from(code & 7)]).to_bits(),
            nearest.to_bits(),
            "{number} is {code} x {scale}"
        );
        assert!(size <= 6.0, "{number} is beyond the scale {scale}");
    }
}

/// The decay of a channel is exp(−5 σ(e^A (z + bias))), with z of about the size that its projection gives.
#[test]
fn decays_are_spread_over_their_range() {
    let (strengths, biases) =
        (singles(&layer_tensor(&slice(), LayerTensor::ALog)), singles(&layer_tensor(&slice(), LayerTensor::DtBias)));
    let kda = slice().kda;
    assert_eq!((strengths.len(), biases.len()), (kda.head_dim, kda.channels()));
    let (used, rest) = strengths.split_at(kda.heads);
    assert!(used.iter().all(|strength| *strength != 0.0) && rest.iter().all(|zero| zero.to_bits() == 0));

    let decays = biases.iter().enumerate().flat_map(|(channel, bias)| {
        let strength = f64::from(used[channel / kda.head_dim]).exp();
        [-0.5, 0.0, 0.5].map(|z| (-5.0 / (1.0 + (-strength * (z + f64::from(*bias))).exp())).exp())
    });
    let tenths: [f64; 10] = shares(decays.map(|decay| (decay * 10.0) as u8));
    assert!(tenths.iter().all(|share| *share > 0.02), "{tenths:?}");
    assert!(tenths.iter().all(|share| *share < 0.5), "{tenths:?}");
}

/// Over 200 random inputs, the most chosen expert is chosen several times as often as the mean, and all are chosen.
#[test]
fn the_router_spreads_its_choice_unevenly_over_all_experts() {
    let shape = Shape { hidden: 512, experts: 128, top_k: 16, ..Shape::slice() };
    let config = shape.config().unwrap().1;
    let weights = brains(&layer_tensor(&config, LayerTensor::Router), shape.experts);
    let bias = singles(&layer_tensor(&config, LayerTensor::RouterBias));
    // Rows of the embedding are random vectors as good as any.
    let inputs = brains(&tensor(&config, &TensorId::Embedding.to_string()), 200);

    let mut counts = vec![0_u32; shape.experts];
    for input in inputs.chunks_exact(shape.hidden) {
        let size = (input.iter().map(|x| f64::from(x * x)).sum::<f64>() / shape.hidden as f64).sqrt();
        let score = |(row, bias): (&[f32], &f32)| {
            let logit: f64 = row.iter().zip(input).map(|(w, x)| f64::from(*w) * f64::from(*x) / size).sum();
            1.0 / (1.0 + (-logit).exp()) + f64::from(*bias)
        };
        let scores: Vec<f64> = weights.chunks_exact(shape.hidden).zip(&bias).map(score).collect();
        let mut order: Vec<usize> = (0..shape.experts).collect();
        order.sort_by(|left, right| scores[*right].total_cmp(&scores[*left]));
        order[..shape.top_k].iter().for_each(|expert| counts[*expert] += 1);
    }
    let mean = 200.0 * shape.top_k as f64 / shape.experts as f64;
    let (least, most) = (*counts.iter().min().unwrap(), *counts.iter().max().unwrap());
    assert!(least > 0, "an expert is never chosen: {counts:?}");
    assert!(f64::from(most) > 2.0 * mean && f64::from(least) < mean / 3.0, "{least} to {most}, mean {mean}");
}
