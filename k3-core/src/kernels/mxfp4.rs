//! The numbers of MXFP4: E2M1 codes with one E8M0 scale per 32 columns (OCP Microscaling Formats, version 1.0).

/// The value of each E2M1 code: bit 3 is the sign, so code 8 is `-0.0`.
pub(super) const E2M1: [f32; 16] =
    [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0, -0.0, -0.5, -1.0, -1.5, -2.0, -3.0, -4.0, -6.0];

/// The value of each E8M0 scale `s`: `2^(s - 127)`. 0 is the subnormal `2^-127`; 255 is not a number.
pub(super) const E8M0: [f32; 256] = e8m0();

const fn e8m0() -> [f32; 256] {
    let mut scales = [0.0; 256];
    let mut s = 1;
    while s < 255 {
        scales[s] = f32::from_bits((s as u32) << 23);
        s += 1;
    }
    scales[0] = f32::from_bits(1 << 22);
    scales[255] = f32::NAN;
    scales
}

/// Bytes 2 and 3 of the value of each E2M1 code; bytes 0 and 1 are zero. In a register, a table that one instruction looks
/// sixteen codes up in.
#[cfg(any(
    all(target_arch = "aarch64", target_feature = "neon"),
    all(target_arch = "wasm32", target_feature = "simd128")
))]
pub(super) const E2M1_UPPER_BYTES: [[u8; 16]; 2] = {
    let mut bytes = [[0; 16]; 2];
    let mut code = 0;
    while code < 16 {
        [_, _, bytes[0][code], bytes[1][code]] = E2M1[code].to_bits().to_le_bytes();
        code += 1;
    }
    bytes
};
