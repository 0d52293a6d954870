//! Opening checkpoints: whole ones, and ones that must be refused.

mod memory;
mod oracle;
