//! Opening checkpoints: whole ones, and ones that must be refused.

mod faults;
mod forms;
mod headers;
mod memory;
mod mutations;
mod oracle;
mod shards;
