//! A borrowed weight matrix in the form in which it lies on disk.

use core::ops::Range;

use super::dict::{self, Record};
use super::mxfp4::{E2M1, E8M0};
use super::order::GROUP_COLUMNS;

#[cfg(target_endian = "big")]
compile_error!("k3 reads little-endian tensors in place and does not run on big-endian machines");

/// How the elements of a row are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Encoding {
    /// Little-endian IEEE single precision.
    F32,
    /// Little-endian upper halves of single precision.
    Bf16,
    /// E2M1 nibbles, low nibble first, with one E8M0 scale for 32 columns.
    Mxfp4,
    /// bf16 whose high bytes are codes, see [`super::dict`].
    Dict {
        /// Slots in each row for elements whose high byte has no code.
        escapes: usize,
    },
}

impl Encoding {
    /// The bytes of `columns` elements of a row, scales not counted, or `None` if they do not fit a `usize` or the encoding
    /// has no rows of so many: MXFP4 has multiples of 32, for a dictionary see [`dict::stride`].
    #[must_use]
    pub fn row_bytes(self, columns: usize) -> Option<usize> {
        match self {
            Self::F32 => columns.checked_mul(4),
            Self::Bf16 => columns.checked_mul(2),
            Self::Mxfp4 => columns.is_multiple_of(GROUP_COLUMNS).then_some(columns / 2),
            Self::Dict { escapes } => dict::stride(columns, escapes),
        }
    }
}

/// A row-major matrix `[rows, columns]` of weights, borrowed and packed. No alignment is assumed.
///
/// Invariants: 1. `row_bytes` is what `columns` elements take. 2. `data` holds every row, row `r` from
/// `r · row_stride` on. 3. For MXFP4, `columns` is a multiple of 32 and `scales` is `[rows, columns / 32]`; else `scales`
/// is empty.
#[derive(Debug, Clone, Copy)]
pub struct Matrix<'a> {
    encoding: Encoding,
    rows: usize,
    columns: usize,
    row_bytes: usize,
    row_stride: usize,
    data: &'a [u8],
    scales: &'a [u8],
}

impl<'a> Matrix<'a> {
    /// A matrix in any encoding. Only MXFP4 has `scales`.
    ///
    /// # Panics
    /// If a length does not fit.
    #[must_use]
    pub fn encoded(encoding: Encoding, data: &'a [u8], scales: &'a [u8], rows: usize, columns: usize) -> Self {
        match encoding {
            Encoding::F32 => Self::f32(data, rows, columns),
            Encoding::Bf16 => Self::bf16(data, rows, columns),
            Encoding::Mxfp4 => Self::mxfp4(data, scales, rows, columns),
            Encoding::Dict { escapes } => Self::dict(data, rows, columns, escapes),
        }
    }

    /// A matrix of little-endian f32.
    ///
    /// # Panics
    /// If `data` is not exactly `rows · columns` elements.
    #[must_use]
    pub fn f32(data: &'a [u8], rows: usize, columns: usize) -> Self {
        Self::packed(Encoding::F32, data, rows, columns)
    }

    /// A matrix of little-endian bf16.
    ///
    /// # Panics
    /// If `data` is not exactly `rows · columns` elements.
    #[must_use]
    pub fn bf16(data: &'a [u8], rows: usize, columns: usize) -> Self {
        Self::packed(Encoding::Bf16, data, rows, columns)
    }

    /// A matrix of MXFP4: `codes` is `[rows, columns / 2]`, `scales` `[rows, columns / 32]`.
    ///
    /// # Panics
    /// If `columns` is not a multiple of 32 or a length does not fit.
    #[must_use]
    pub fn mxfp4(codes: &'a [u8], scales: &'a [u8], rows: usize, columns: usize) -> Self {
        let matrix = Self::packed(Encoding::Mxfp4, codes, rows, columns);
        assert_eq!(Some(scales.len()), rows.checked_mul(columns / GROUP_COLUMNS), "scales of {rows}x{columns}");
        Self { scales, ..matrix }
    }

    /// A matrix of bf16 with a dictionary: a run of `rows` rows with `escapes` slots each.
    ///
    /// Only its length is looked at. Products with a run that [`dict::check`] refuses are numbers without a meaning, but they
    /// neither panic nor touch other memory.
    ///
    /// # Panics
    /// If there are no rows of so many columns and escapes, or `data` is not exactly `rows` of them.
    #[must_use]
    pub fn dict(data: &'a [u8], rows: usize, columns: usize, escapes: usize) -> Self {
        Self::packed(Encoding::Dict { escapes }, data, rows, columns)
    }

    /// A view of native f32 as a matrix.
    ///
    /// # Panics
    /// If `values` is not exactly `rows · columns` elements.
    #[must_use]
    pub fn from_f32(values: &'a [f32], rows: usize, columns: usize) -> Self {
        Self::f32(as_bytes(values), rows, columns)
    }

    /// A view of native f32 as a matrix whose row `r` begins at `r · row_stride`.
    ///
    /// # Panics
    /// If `row_stride` is less than `columns` or `values` ends before the last row does.
    #[must_use]
    pub fn from_f32_strided(values: &'a [f32], rows: usize, columns: usize, row_stride: usize) -> Self {
        assert!(row_stride >= columns, "rows of {columns} overlap at a stride of {row_stride}");
        if let Some(before_last) = rows.checked_sub(1) {
            let needed = before_last.checked_mul(row_stride).and_then(|start| start.checked_add(columns));
            assert!(needed.is_some_and(|needed| needed <= values.len()), "{rows} rows at a stride of {row_stride}");
        }
        let (data, row_bytes, row_stride) = (as_bytes(values), columns * 4, row_stride * 4);
        Self { encoding: Encoding::F32, rows, columns, row_bytes, row_stride, data, scales: &[] }
    }

    fn packed(encoding: Encoding, data: &'a [u8], rows: usize, columns: usize) -> Self {
        let Some(row_bytes) = encoding.row_bytes(columns) else { panic!("{encoding:?} rows of {columns} columns") };
        assert_eq!(Some(data.len()), rows.checked_mul(row_bytes), "{encoding:?} data of {rows}x{columns}");
        Self { encoding, rows, columns, row_bytes, row_stride: row_bytes, data, scales: &[] }
    }

    /// The number of rows, the length of a product.
    #[must_use]
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The number of columns, the length of an input.
    #[must_use]
    pub fn columns(&self) -> usize {
        self.columns
    }

    /// How the elements are stored.
    #[must_use]
    pub fn encoding(&self) -> Encoding {
        self.encoding
    }

    /// The bytes that its elements and scales take.
    #[must_use]
    pub fn bytes(&self) -> usize {
        self.rows * self.row_bytes + self.scales.len()
    }

    /// The matrix of the given rows only.
    ///
    /// # Panics
    /// If the range is not inside the matrix.
    #[must_use]
    pub fn slice_rows(&self, range: Range<usize>) -> Self {
        assert!(range.start <= range.end && range.end <= self.rows, "rows {range:?} of {}", self.rows);
        let groups = self.row_scale_count();
        Self {
            rows: range.len(),
            // The last row may end before its stride does.
            data: &self.data[(range.start * self.row_stride).min(self.data.len())..],
            scales: &self.scales[range.start * groups..range.end * groups],
            ..*self
        }
    }

    /// Widens one row, exactly, into `values` of `columns` elements.
    ///
    /// # Panics
    /// If there is no such row or the lengths differ.
    pub fn row_to_f32(&self, row: usize, values: &mut [f32]) {
        assert_eq!(values.len(), self.columns, "a row of {} columns", self.columns);
        let data = self.row_data(row);
        match self.encoding {
            Encoding::F32 => {
                for (value, bytes) in values.iter_mut().zip(data.as_chunks().0) {
                    *value = f32::from_le_bytes(*bytes);
                }
            }
            Encoding::Bf16 => {
                for (value, bytes) in values.iter_mut().zip(data.as_chunks().0) {
                    *value = f32::from_bits(u32::from(u16::from_le_bytes(*bytes)) << 16);
                }
            }
            Encoding::Mxfp4 => {
                let groups = values.as_chunks_mut::<GROUP_COLUMNS>().0.iter_mut();
                for ((group, codes), scale) in groups.zip(data.chunks_exact(16)).zip(self.row_scales(row)) {
                    let scale = E8M0[usize::from(*scale)];
                    for ([low, high], byte) in group.as_chunks_mut().0.iter_mut().zip(codes) {
                        *low = E2M1[usize::from(byte & 0xf)] * scale;
                        *high = E2M1[usize::from(byte >> 4)] * scale;
                    }
                }
            }
            Encoding::Dict { .. } => Record::new(self, row).to_f32(values),
        }
    }

    /// The bytes of the elements of one row.
    pub(super) fn row_data(&self, row: usize) -> &'a [u8] {
        assert!(row < self.rows, "row {row} of {}", self.rows);
        &self.data[row * self.row_stride..][..self.row_bytes]
    }

    /// The scales of one row; empty unless the encoding is MXFP4.
    pub(super) fn row_scales(&self, row: usize) -> &'a [u8] {
        let groups = self.row_scale_count();
        &self.scales[row * groups..][..groups]
    }

    fn row_scale_count(&self) -> usize {
        if self.encoding == Encoding::Mxfp4 { self.columns / GROUP_COLUMNS } else { 0 }
    }
}

fn as_bytes(values: &[f32]) -> &[u8] {
    // SAFETY: the same memory for the same lifetime; every byte of an f32 is initialised and any address suits a u8.
    unsafe { core::slice::from_raw_parts(values.as_ptr().cast(), size_of_val(values)) }
}
