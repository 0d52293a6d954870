//! What the tensors of a checkpoint are, without their spelling.

/// A tensor of the text model, apart from the routed experts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum TensorId {
    /// `[vocabulary, hidden]`
    Embedding,
    /// `[hidden]`
    FinalNorm,
    /// `[hidden]`
    OutputResidualNorm,
    /// `[1, hidden]`
    OutputResidualProj,
    /// `[vocabulary, hidden]`
    Head,
    /// A tensor of one layer.
    Layer(usize, LayerTensor),
}

/// A tensor of one layer, apart from the routed experts. Shapes as in the checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LayerTensor {
    /// `[hidden]`
    InputNorm,
    /// `[hidden]`
    PostAttentionNorm,
    /// `[hidden]`
    AttentionResidualNorm,
    /// `[1, hidden]`
    AttentionResidualProj,
    /// `[hidden]`
    MlpResidualNorm,
    /// `[1, hidden]`
    MlpResidualProj,
    /// KDA `[channels, hidden]`
    Query,
    /// KDA `[channels, hidden]`
    Key,
    /// KDA `[channels, hidden]`
    Value,
    /// KDA `[channels, 1, taps]`
    QueryConv,
    /// KDA `[channels, 1, taps]`
    KeyConv,
    /// KDA `[channels, 1, taps]`
    ValueConv,
    /// KDA `[head_dim, hidden]`
    DecayDown,
    /// KDA `[channels, head_dim]`
    DecayUp,
    /// KDA `[heads, hidden]`
    Beta,
    /// KDA, at least `[heads]`
    ALog,
    /// KDA `[channels]`
    DtBias,
    /// KDA `[head_dim]`
    OutputNorm,
    /// KDA `[channels, hidden]`, MLA `[heads · value_dim, hidden]`
    OutputGate,
    /// `[hidden, channels]` or `[hidden, heads · value_dim]`
    Output,
    /// MLA `[query_rank, hidden]`
    QueryDown,
    /// MLA `[query_rank]`
    QueryDownNorm,
    /// MLA `[heads · key_dim, query_rank]`
    QueryUp,
    /// MLA `[latent + rope_dim, hidden]`
    KeyValueDown,
    /// MLA `[latent]`
    KeyValueDownNorm,
    /// MLA `[heads · (nope_dim + value_dim), latent]`
    KeyValueUp,
    /// Dense `[dense_width, hidden]`
    DenseGate,
    /// Dense `[dense_width, hidden]`
    DenseUp,
    /// Dense `[hidden, dense_width]`
    DenseDown,
    /// MoE `[experts, hidden]`
    Router,
    /// MoE `[experts]`
    RouterBias,
    /// MoE `[latent, hidden]`
    LatentDown,
    /// MoE `[hidden, latent]`
    LatentUp,
    /// MoE `[latent]`
    LatentNorm,
    /// MoE `[shared_width, hidden]`
    SharedGate,
    /// MoE `[shared_width, hidden]`
    SharedUp,
    /// MoE `[hidden, shared_width]`
    SharedDown,
}

/// One matrix of one routed expert. Ordered as the experts lie in a shard.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExpertId {
    /// The layer, from 0.
    pub layer: usize,
    /// The expert within its layer, from 0.
    pub expert: usize,
    /// Which of its matrices.
    pub matrix: ExpertMatrix,
}

/// One of the three matrices of a routed expert.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ExpertMatrix {
    /// `w1` `[expert_width, latent]`
    Gate,
    /// `w2` `[latent, expert_width]`
    Down,
    /// `w3` `[expert_width, latent]`
    Up,
}

/// Which part of a tensor a name stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Part {
    /// All of it, as numbers.
    Plain,
    /// The nibbles of an MXFP4 matrix.
    Packed,
    /// The scales of an MXFP4 matrix.
    Scale,
}

/// What a name in a checkpoint stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Name {
    /// A tensor of the text model.
    Text(TensorId, Part),
    /// A matrix of a routed expert.
    Expert(ExpertId, Part),
    /// A tensor of the vision tower or its projector, which the text model does without.
    Vision,
    /// Nothing that is known.
    Unknown,
}
