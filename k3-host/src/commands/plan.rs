//! `plan`: how memory would be spent, and whether it suffices, from headers alone; or from none, before there is a
//! checkpoint.

use std::io::stdout;
use std::path::{Path, PathBuf};

use k3_core::host::Storage;

use crate::args::EngineArgs;
use crate::checkpoint::OpenCheckpoint;
use crate::engine;
use crate::failure::Outcome;
use crate::memory::readable;
use crate::output::print;
use crate::plan::{Budget, Demand, DiskRate, PlanReport, Planner, Preset, Subject, Total};
use crate::synth::Headers;

/// What drives are taken to deliver when nobody says.
const ASSUMED_GBPS: f64 = 3.0;

/// Arguments of `plan`.
#[derive(Debug, clap::Args)]
pub struct PlanArgs {
    /// The checkpoint directory; without one, the plan is for the released model, or for that of --config
    #[arg(value_name = "DIR")]
    pub checkpoint: Option<PathBuf>,
    /// Room for this many ids
    #[arg(long, value_name = "N", default_value_t = 4096, value_parser = clap::value_parser!(u32).range(1..))]
    pub context: u32,
    /// Plan for a run on ids, which needs no tokenizer
    #[arg(long)]
    pub ids: bool,
    /// The bandwidth of the drives, in GB per second [default: 3; `bench disk DIR` measures it]
    #[arg(long, value_name = "X", value_parser = parse_rate)]
    pub disk_gbps: Option<f64>,
    /// Show what each preset would do with this model, whatever memory there is
    #[arg(long)]
    pub list_presets: bool,
    /// Print the plan as JSON
    #[arg(long, conflicts_with = "list_presets")]
    pub json: bool,
    /// How to load and compute
    #[command(flatten)]
    pub engine: EngineArgs,
}

fn parse_rate(text: &str) -> Result<f64, String> {
    let rate: f64 = text.parse().map_err(|_| format!("{text:?} is not a number"))?;
    if rate.is_finite() && rate > 0.0 { Ok(rate) } else { Err(format!("{text} is not above 0")) }
}

/// Runs the command.
///
/// # Errors
/// A refusal if there is no plan that fits.
pub fn run(args: &PlanArgs) -> Outcome {
    match &args.checkpoint {
        Some(folder) => {
            let checkpoint = engine::open_headers(folder, &args.engine)?;
            let files = &checkpoint.checkpoint.files;
            args.show(
                &checkpoint,
                Subject {
                    model: folder.display().to_string(),
                    files: files.len(),
                    file_bytes: files.iter().map(Storage::len).sum(),
                    free_disk_bytes: None,
                },
            )
        }
        None => {
            let headers = args.engine.config.as_ref().map_or_else(Headers::released, |_| {
                engine::read_config(Path::new(""), args.engine.config.as_deref()).and_then(Headers::of)
            })?;
            let layers = engine::layer_count(headers.config(), args.engine.layers)?;
            let checkpoint = OpenCheckpoint::open(&headers, headers.config().clone(), layers)?;
            let extent = headers.extent();
            args.show(
                &checkpoint,
                Subject {
                    model: "not downloaded".to_string(),
                    files: extent.files,
                    file_bytes: extent.file_bytes,
                    free_disk_bytes: fs4::available_space(".").ok(),
                },
            )
        }
    }
}

impl PlanArgs {
    fn show<F: Storage>(&self, checkpoint: &OpenCheckpoint<F>, subject: Subject) -> Outcome {
        let sizes = checkpoint.sizes();
        let planner = engine::planner(&checkpoint.config, &sizes, &self.engine);
        if self.list_presets {
            return print(&mut stdout(), &self.presets(&Planner { available: None, ..planner })?);
        }
        let budget = Budget::of(&self.engine.memory);
        let plan = planner.plan(&self.demand(), &budget)?;
        let report = PlanReport::new(&planner, &plan, &budget, subject, self.disk());
        if self.json {
            let text = serde_json::to_string_pretty(&report).map_err(anyhow::Error::from)?;
            return print(&mut stdout(), &format!("{text}\n"));
        }
        print(&mut stdout(), &report.to_string())
    }

    /// A table of what each preset would do, one row for each.
    fn presets(&self, planner: &Planner<'_>) -> Outcome<String> {
        let columns = ["preset", "budget", "takes", "of the trunk", "experts", "read per token", "seconds"];
        let mut table = row(&columns.map(str::to_string)) + &row(&columns.map(|_| "---".to_string()));
        for (preset, bytes) in Preset::fixed() {
            let budget =
                Budget { total: Some(Total { bytes, flag: format!("--preset {preset}") }), ..Budget::default() };
            let plan = planner.plan(&self.demand(), &budget)?;
            let subject = Subject::default();
            let report = PlanReport::new(planner, &plan, &budget, subject, self.disk());
            let kept = report.trunk - report.reads.trunk;
            table += &row(&[
                preset.to_string(),
                readable(bytes),
                readable(report.total),
                format!("{:.0} %", 100.0 * kept as f64 / report.trunk as f64),
                report.expert_slots.to_string(),
                readable(report.reads.total()),
                format!("{:.1}", report.read_seconds),
            ]);
        }
        Ok(table)
    }

    fn demand(&self) -> Demand {
        let demand = Demand::positions(self.context as usize);
        if self.ids { demand } else { demand.with_tokenizer() }
    }

    fn disk(&self) -> DiskRate {
        self.disk_gbps.map_or(DiskRate::Assumed(ASSUMED_GBPS), DiskRate::Given)
    }
}

/// A row of a table in Markdown, aligned for terminals.
fn row(cells: &[String; 7]) -> String {
    let cells: Vec<String> = cells.iter().map(|cell| format!("{cell:>14}")).collect();
    format!("|{} |\n", cells.join(" |"))
}
