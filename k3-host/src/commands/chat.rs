//! `chat`: a conversation with a model, at a terminal or through a pipe.

use std::io::IsTerminal;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use k3_core::chat::history::Speaker;
use k3_core::chat::{Effort, Thinking};
use k3_core::model::scratch::WantedLogits;

use crate::args::EngineArgs;
use crate::chat::{
    HistoryFile, Input, Look, PipedInput, Repl, Screen, Session, Settings, TerminalInput, Thoughts, ThreadedSequence,
};
use crate::engine::Engine;
use crate::failure::{Failure, Outcome};
use crate::interrupt::Interrupt;
use crate::plan::Demand;
use crate::sampling::SamplingArgs;
use crate::tokenizer;

/// Arguments of `chat`.
#[derive(Debug, clap::Args)]
pub struct ChatArgs {
    /// The checkpoint directory, as released
    #[arg(value_name = "DIR")]
    pub checkpoint: PathBuf,
    /// The folder with tiktoken.model and tokenizer_config.json [default: DIR]
    #[arg(long, value_name = "DIR")]
    pub tok: Option<PathBuf>,
    /// What the model is told first
    #[arg(long, value_name = "TEXT", allow_hyphen_values = true)]
    pub system: Option<String>,
    /// Go on with the conversation in this file, and save it there after every turn
    #[arg(long, value_name = "FILE")]
    pub history: Option<PathBuf>,
    /// Let the model answer without thinking first
    #[arg(long, conflicts_with = "thinking_effort")]
    pub no_think: bool,
    /// How hard the model thinks
    #[arg(long, value_name = "EFFORT", default_value = Effort::Max.name(), value_parser = effort_parser())]
    pub thinking_effort: Effort,
    /// Show what the model thinks
    #[arg(long)]
    pub show_thinking: bool,
    /// The most ids of an answer, thoughts included
    #[arg(long = "gen", value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    pub generate: u32,
    /// End an answer at this id too; may be given more than once
    #[arg(long = "stop-id", value_name = "ID")]
    pub stop_ids: Vec<u32>,
    /// Room for a conversation of this many ids [default: as many as the model was made for, in at most a quarter of the
    /// memory that could make it faster]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub context: Option<u32>,
    /// How to choose among the ids
    #[command(flatten)]
    pub sampling: SamplingArgs,
    /// How to load and compute
    #[command(flatten)]
    pub engine: EngineArgs,
}

fn effort_parser() -> impl TypedValueParser<Value = Effort> {
    let names = [Effort::Low, Effort::High, Effort::Max].map(Effort::name);
    PossibleValuesParser::new(names).try_map(|name| Effort::from_name(&name).ok_or("not an effort"))
}

/// Runs the command.
///
/// # Errors
/// As its exit codes say.
pub fn run(args: &ChatArgs) -> Outcome {
    let sampler = args.sampling.sampler()?;
    let saved = HistoryFile::open(args.history.as_deref(), args.system.as_deref())?;
    let tokenizer = tokenizer::load(args.tok.as_deref().unwrap_or(&args.checkpoint))?;
    let demand = match args.context {
        Some(context) => Demand::positions(context as usize),
        None => Demand::as_many_as_fit(),
    };
    let engine = Engine::open(&args.checkpoint, &args.engine, &demand)?;
    let config = engine.model().config();
    tokenizer.check_model(config.vocabulary)?;
    if let Some(id) = args.stop_ids.iter().find(|&&id| id as usize >= config.vocabulary) {
        let last = config.vocabulary - 1;
        return Err(Failure::refused(format!("--stop-id: {id} is outside the vocabulary: ids go from 0 to {last}")));
    }
    let capacity = engine.planned_capacity().unwrap_or(config.max_positions);
    let predictor = ThreadedSequence::new(&engine, engine.sequence(capacity, WantedLogits::Last)?);
    let settings = Settings {
        thinking: if args.no_think { Thinking::Off } else { Thinking::On(Some(args.thinking_effort)) },
        generate: args.generate as usize,
        stop_ids: [tokenizer::end_ids(&tokenizer, config), args.stop_ids.clone()].concat(),
        sampler,
    };
    let session = Session::new(predictor, &tokenizer, settings, saved)?;
    let thoughts = if args.show_thinking { Thoughts::Shown } else { Thoughts::Hidden };
    if std::io::stdin().is_terminal() && std::io::stdout().is_terminal() {
        let screen = Screen::standard(Look::Terminal, thoughts, Interrupt::of_turn()?);
        let asked = session.history().entries().iter().filter(|entry| entry.role == Speaker::User);
        let input = TerminalInput::new(asked.map(|entry| entry.content.as_str()))?;
        begin(session, Box::new(input), screen)
    } else {
        let screen = Screen::standard(Look::Plain, thoughts, Interrupt::default());
        begin(session, Box::new(PipedInput::new(std::io::stdin().lock())), screen)
    }
}

fn begin(session: Session<'_, ThreadedSequence<'_>>, input: Box<dyn Input>, mut screen: Screen) -> Outcome {
    if input.is_attended() {
        screen.note("/help lists the commands").map_err(|error| Failure::not_written(error.into()))?;
    }
    Repl::new(session, input, screen).run()
}
