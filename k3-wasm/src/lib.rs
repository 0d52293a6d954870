//! The k3 core inside WebAssembly.
