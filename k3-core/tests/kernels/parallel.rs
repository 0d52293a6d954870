//! Any split of the rows gives the bits of the whole.

use k3_core::host::{Serial, Workers};
use k3_core::kernels::{Encoding, Kernels, Matrix, OutputTile, matmul_parallel};

use crate::data::{ENCODINGS, Kind, Packed, Random, all_kernels, assert_same};

/// One new thread per piece.
pub struct Threads(pub usize);

impl Workers for Threads {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, pieces: usize, work: &(dyn Fn(usize) + Sync)) {
        std::thread::scope(|scope| {
            for piece in 0..pieces {
                scope.spawn(move || work(piece));
            }
        });
    }
}

fn product(kernels: &Kernels, workers: &dyn Workers, matrix: &Matrix<'_>, x: &[f32]) -> Vec<f32> {
    let mut y = vec![9.0; x.len() / matrix.columns() * matrix.rows()];
    matmul_parallel(kernels, workers, matrix, x, OutputTile::new(&mut y, matrix.rows()));
    y
}

#[test]
#[cfg_attr(target_family = "wasm", ignore = "WASI has no threads")]
fn threads_change_no_bit() {
    let mut random = Random(5);
    for encoding in ENCODINGS {
        for (rows, columns, tokens) in [(1, 64, 1), (3, 96, 9), (37, 1056, 5), (200, 512, 2)] {
            let packed = Packed::new(encoding, [rows, columns], Kind::Varied, &mut random);
            let x = random.values(tokens * columns, Kind::Varied);
            for kernels in all_kernels() {
                let mut whole = vec![0.0; tokens * rows];
                kernels.matmul(&packed.matrix(), &x, &mut OutputTile::new(&mut whole, rows));
                assert_same(&product(&kernels, &Serial, &packed.matrix(), &x), &whole, "serial");
                for threads in [1, 2, 3, 8] {
                    let found = product(&kernels, &Threads(threads), &packed.matrix(), &x);
                    assert_same(&found, &whole, &format!("{encoding:?} {rows} rows, {threads} threads"));
                }
            }
        }
    }
}

#[test]
fn every_split_in_two_is_the_whole() {
    let mut random = Random(6);
    let packed = Packed::new(Encoding::Mxfp4, [11, 64], Kind::Varied, &mut random);
    let x = random.values(3 * 64, Kind::Varied);
    for kernels in all_kernels() {
        let mut whole = vec![0.0; 33];
        kernels.matmul(&packed.matrix(), &x, &mut OutputTile::new(&mut whole, 11));
        for border in 0..=11 {
            let mut parts = vec![0.0; 33];
            let mut y = OutputTile::new(&mut parts, 11);
            for rows in [0..border, border..11] {
                kernels.matmul(&packed.matrix().slice_rows(rows.clone()), &x, &mut y.rows_mut(rows));
            }
            assert_same(&parts, &whole, &format!("split at {border}"));
        }
    }
}
