//! The command-line arguments that most benches share. The file is included by path, since `bench-common` has no
//! dependency.

/// The arguments of alternating rounds.
#[derive(clap::Args)]
pub(crate) struct Asked<const ROUNDS: u32> {
    /// How many times each case runs
    #[arg(long, default_value_t = ROUNDS, value_parser = clap::value_parser!(u32).range(1..))]
    pub(crate) rounds: u32,
    /// Only what has this text in its name
    #[arg(
        long,
        default_value = "",
        hide_default_value = true,
        value_name = "TEXT"
    )]
    pub(crate) case: String,
}
