//! Back to bf16.

use crate::kernels::escapes::Escapes;
use crate::kernels::lanes::{Kernel, Lanes};
use crate::kernels::matrix::Matrix;
use crate::kernels::order::Group;
use crate::kernels::rows::{DictRow, WeightRow};

/// Writes a matrix of this encoding as bf16.
pub(in crate::kernels) struct Decode<'a> {
    /// `[rows, columns]`.
    pub matrix: &'a Matrix<'a>,
    /// As many elements of bf16.
    pub out: &'a mut [u8],
}

impl Kernel for Decode<'_> {
    type Output = ();

    #[inline(always)]
    fn run<L: Lanes>(self, lanes: L) {
        if self.matrix.columns() == 0 {
            return;
        }
        for (index, out) in self.out.chunks_exact_mut(2 * self.matrix.columns()).enumerate() {
            let row = DictRow::new(self.matrix, index);
            let groups = out.as_chunks_mut::<2>().0.as_chunks_mut::<32>().0;
            let mut escapes = Escapes::new(&[row]);
            for (group, out) in groups.iter_mut().enumerate() {
                let mut elements = Group::default();
                lanes.store_group(row.group(lanes, group, &escapes.dictionaries()[0]), &mut elements);
                if escapes.are_in::<DictRow>(group) {
                    row.patch(group, &mut elements);
                    escapes.pass([row], group);
                }
                for (bytes, element) in out.iter_mut().zip(elements.as_flattened()) {
                    *bytes = ((element.to_bits() >> 16) as u16).to_le_bytes();
                }
            }
        }
    }
}
