//! `run`: a prompt in, what follows it out; both as ids or both as text.

mod cache_trace;
mod files;
mod follower;
mod job;

use std::io::{IsTerminal, Write, stderr, stdout};
use std::path::{Path, PathBuf};

use crate::args::EngineArgs;
use crate::engine::Engine;
use crate::failure::Outcome;
use crate::interrupt::Interrupt;
use crate::progress::Detail;
use crate::prompt::PromptArgs;
use crate::sampling::SamplingArgs;
use crate::shards::LoadingBar;

pub use job::{Job, Outside};

/// What somebody who presses Ctrl-C is told at once.
const HEARD: &str = "stopping after the current step; interrupt again to end now and lose what was computed";

/// Arguments of `run`.
#[derive(Debug, clap::Args)]
pub struct RunArgs {
    /// The checkpoint directory, as released
    #[arg(value_name = "DIR")]
    pub checkpoint: PathBuf,
    /// What to go on from
    #[command(flatten)]
    pub prompt: PromptArgs,
    /// How many ids to generate
    #[arg(long = "gen", value_name = "N", default_value_t = 20)]
    pub generate: u32,
    /// End after this id was generated; may be given more than once. Text also ends at the ids of a turn's end
    /// and at those that the config names
    #[arg(long = "stop-id", value_name = "ID")]
    pub stop_ids: Vec<u32>,
    /// Feed everything from the start again for each id: slow, and the same bits
    #[arg(long)]
    pub full_recompute: bool,
    /// Write the logits of every position that was fed, as rows of little-endian f32
    #[arg(long, value_name = "FILE")]
    pub dump_logits: Option<PathBuf>,
    /// Write every batch of experts that the cache was asked for, for `k3-host trace`
    #[arg(long, value_name = "FILE")]
    pub dump_cache_trace: Option<PathBuf>,
    /// Go on from this state file; the prompt must begin with the ids that it holds
    #[arg(long, value_name = "FILE", conflicts_with = "full_recompute")]
    pub load_state: Option<PathBuf>,
    /// Save the state after the last id that was fed
    #[arg(long, value_name = "FILE")]
    pub save_state: Option<PathBuf>,
    /// Write the results as JSON; `-` prints them instead of ids or text
    #[arg(long, value_name = "FILE")]
    pub out: Option<PathBuf>,
    /// Say nothing but errors on standard error
    #[arg(long, short)]
    pub quiet: bool,
    /// Show each step on standard error, even between the text on a terminal
    #[arg(long, short, conflicts_with = "quiet")]
    pub verbose: bool,
    /// How to choose among the ids
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// How to load and compute
    #[command(flatten)]
    pub engine: EngineArgs,
}

impl RunArgs {
    /// Whether the results are printed instead of ids or text.
    fn prints_results(&self) -> bool {
        self.out.as_ref().is_some_and(|path| path.as_os_str() == "-")
    }

    /// The file that the results go to.
    fn results_file(&self) -> Option<&Path> {
        self.out.as_deref().filter(|_| !self.prints_results())
    }

    /// How much to say. Steps are left out where they would break up the text.
    fn detail(&self) -> Detail {
        let text_on_terminal = self.prompt.source.ids.is_none() && stdout().is_terminal() && stderr().is_terminal();
        match (self.quiet, self.verbose) {
            (true, _) => Detail::Nothing,
            (false, false) if text_on_terminal => Detail::Summary,
            (false, _) => Detail::Steps,
        }
    }
}

/// Runs the command.
///
/// # Errors
/// As its exit codes say.
pub fn run(args: &RunArgs) -> Outcome {
    let job = Job::read(args)?;
    let detail = args.detail();
    let bar = if detail == Detail::Nothing { LoadingBar::Hidden } else { LoadingBar::Shown };
    let engine = Engine::open(&args.checkpoint, &EngineArgs { bar, ..args.engine.clone() }, &job.demand())?;
    let interrupt = Interrupt::of_run(move || {
        if detail > Detail::Nothing {
            // A convenience: the run ends as well without it.
            let _ = writeln!(stderr(), "{HEARD}");
        }
    })?;
    job.run(&engine, Outside { output: &mut stdout(), notes: &mut stderr(), detail, interrupt })
}
