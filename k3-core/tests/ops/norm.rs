use k3_core::ops::norm::{l2_norm, rms_norm};
use serde_json::Value;

use crate::closeness::check_cases;
use crate::every_backend;
use crate::support::singles;

#[test]
#[allow(clippy::cast_possible_truncation, reason = "an epsilon or scale is rounded to f32 like that of a config")]
fn norms_have_their_own_sum_and_epsilon() {
    for kernels in every_backend() {
        check_cases("norm", |case| {
            let inputs = &case["inputs"];
            let number = |name: &str| inputs[name].as_f64().unwrap() as f32;
            let mut x = singles(&inputs["x"]);
            match inputs["weight"] {
                Value::Null => l2_norm(&kernels, &mut x, 1e-6, number("scale")),
                _ => rms_norm(&kernels, &mut x, &singles(&inputs["weight"]), number("eps")),
            }
            x
        });
    }
}
