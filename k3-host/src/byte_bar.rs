//! The bar of work that writes or reads many bytes.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error, drawn only if that is a terminal. Its length is set by whoever knows it.
#[must_use]
pub fn byte_bar() -> ProgressBar {
    let style = ProgressStyle::with_template(
        "{bar:30} {binary_bytes} of {binary_total_bytes}, {binary_bytes_per_sec}, {eta} left",
    );
    ProgressBar::new(0).with_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()))
}
