//! What a cache asks of a replacement policy.

/// Chooses which expert leaves a full cache. Experts go by their number in the [`ExpertGrid`](super::ExpertGrid).
///
/// For each batch there is one call of `begin`; then, for each of its experts, one of `touch`, followed by one of `admit`
/// if it was a miss. Nothing of a policy may depend on anything but these calls.
pub trait Policy {
    /// A batch of `layer` begins.
    fn begin(&mut self, layer: usize);

    /// An expert of the batch is asked for, whether it is resident or not.
    fn touch(&mut self, number: usize);

    /// The expert that was touched last becomes resident.
    fn admit(&mut self, number: usize);

    /// Takes a resident expert out that is not of the current batch; `None` if there is none.
    fn evict(&mut self) -> Option<usize>;

    /// A resident expert was taken out for another reason.
    fn remove(&mut self, number: usize);
}
