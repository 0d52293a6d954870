//! How fast the kernels are on one thread, for each backend of this target: billions of products a second.
//!
//! It needs nothing but a clock, so it runs inside WebAssembly too, where it answers what the sandbox costs:
//! `cargo run --release -p k3-core --example kernel_speed [--target wasm32-wasip1]`.

use std::hint::black_box;
use std::time::{Duration, Instant};

use k3_core::kernels::{Backend, Kernels, Matrix, OutputTile};

/// A matrix as large as one of an expert, 3.1 million weights.
const ROWS: usize = 1024;
const COLUMNS: usize = 3072;
/// The best of so many turns counts: others may be using the machine.
const TURNS: usize = 7;
const TURN: Duration = Duration::from_millis(150);

fn main() {
    // Small numbers in every encoding; their values do not matter to the speed.
    let f32: Vec<u8> = (0..ROWS * COLUMNS).flat_map(|index| ((index % 7) as f32 - 3.0).to_le_bytes()).collect();
    let bf16: Vec<u8> = f32.as_chunks().0.iter().flat_map(|[_, _, low, high]: &[u8; 4]| [*low, *high]).collect();
    let codes: Vec<u8> = (0..ROWS * COLUMNS / 2).map(|index| (index % 251) as u8).collect();
    let scales = vec![127; ROWS * COLUMNS / 32];
    let matrices = [
        ("f32", Matrix::f32(&f32, ROWS, COLUMNS)),
        ("bf16", Matrix::bf16(&bf16, ROWS, COLUMNS)),
        ("mxfp4", Matrix::mxfp4(&codes, &scales, ROWS, COLUMNS)),
    ];
    for backend in Backend::available() {
        let Some(kernels) = Kernels::new(backend) else { continue };
        for (encoding, matrix) in &matrices {
            for tokens in [1, 8] {
                println!("{backend:<8} {encoding:<6} {tokens} tokens  {:7.3}", speed(&kernels, matrix, tokens));
            }
        }
    }
}

/// Billions of products a second, in the best turn.
fn speed(kernels: &Kernels, matrix: &Matrix<'_>, tokens: usize) -> f64 {
    let inputs: Vec<f32> = (0..tokens * COLUMNS).map(|index| (index % 5) as f32 - 2.0).collect();
    let mut outputs = vec![0.0; tokens * ROWS];
    let products = (tokens * ROWS * COLUMNS) as f64;
    let turn = || {
        let started = Instant::now();
        let mut calls = 0;
        while started.elapsed() < TURN {
            kernels.matmul(black_box(matrix), black_box(&inputs), &mut OutputTile::new(&mut outputs, ROWS));
            black_box(&outputs);
            calls += 1;
        }
        f64::from(calls) * products / started.elapsed().as_secs_f64() / 1e9
    };
    std::iter::repeat_with(turn).take(TURNS).fold(0.0, f64::max)
}
