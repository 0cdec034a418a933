//! What a plan keeps of how its model was read, and a model read in that way again.

use std::fmt::{Debug, Display};

use remat_cost::{Device, OpRecord, PROFILE_FORMAT, ProfileFile};
use remat_plan::{Accounting, DeviceRecord, Objective, OrderMode, PlanFile, Problem, Setup};

use crate::{Error, Goal, LoadOptions, PlanError, SecondMemory, Setting, SetupError};

/// What `problem`, which was read with `options`, is to be built from again.
pub(crate) fn setup_of(options: &LoadOptions, device: Option<&Device>, problem: &Problem) -> Setup {
    let measured = || options.profile.iter().flat_map(|profile| &profile.ops);
    let workspace = |op: &OpRecord| Some((op.node.clone(), op.workspace_bytes?));
    Setup {
        graph: problem.graph_digest(),
        problem: problem.digest(),
        fused_by: None,
        tiling: None,
        order_hint: None,
        dims: options.dims.clone(),
        fixed_dims: options.fixed_dims.clone(),
        sizes: options.stated_sizes(),
        max_computes: problem.max_computes,
        device: device.map(|device| DeviceRecord {
            name: device.name.clone(),
            figures: (!Device::presets().contains(device)).then(|| device.figures()),
        }),
        durations_ns: measured().map(|op| (op.node.clone(), op.duration_ns)).collect(),
        workspace_bytes: measured().filter_map(workspace).collect(),
        paging: problem.paging,
    }
}

impl LoadOptions {
    /// These options, and where they are open, those that the plan was made with.
    ///
    /// # Errors
    /// [`PlanError::Contradiction`] for what is set and differs; [`SetupError::DeviceFile`] if the plan has figures of a device that no device has.
    pub fn for_plan(&self, plan: &PlanFile) -> Result<Self, Error> {
        let mut load = self.clone();
        agree(
            Setting::Accounting,
            &mut load.accounting,
            Some(plan.accounting),
            accounting,
        )?;
        agree(Setting::Order, &mut load.order, Some(plan.order), order)?;
        let Some(setup) = &plan.setup else { return Ok(load) };
        agree(
            Setting::MaxComputes,
            &mut load.max_computes,
            setup.max_computes,
            u32::to_string,
        )?;
        if let Some(device) = &setup.device {
            load.take_device(device)?;
        }
        for (setting, given, made_with) in [
            (Setting::Dim, &mut load.dims, &setup.dims),
            (Setting::Size, &mut load.sizes, &setup.sizes),
        ] {
            for (name, value) in given.iter() {
                let known = made_with.get(name);
                if known != Some(value) {
                    let plan =
                        known.map_or_else(|| format!("no value for `{name}`"), |known| format!("{name}={known}"));
                    return Err(contradiction(setting, format!("{name}={value}"), plan));
                }
            }
            given.clone_from(made_with);
        }
        if let Some(name) = load.fixed_dims.difference(&setup.fixed_dims).next() {
            let (given, plan) = (format!("{name} fixed"), format!("`{name}` free"));
            return Err(contradiction(Setting::Dim, given, plan));
        }
        load.fixed_dims.clone_from(&setup.fixed_dims);
        if load.profile.is_none() && !setup.durations_ns.is_empty() {
            load.profile = Some(profile_of(setup));
        }
        load.take_second_memory(setup)?;
        Ok(load)
    }

    fn take_device(&mut self, made_with: &DeviceRecord) -> Result<(), Error> {
        agree(
            Setting::Device,
            &mut self.device,
            Some(made_with.name.clone()),
            Clone::clone,
        )?;
        let Some(figures) = &made_with.figures else {
            return Ok(());
        };
        if self.device_file.is_some() {
            if self.device()?.figures() != *figures {
                let given = "other figures".to_owned();
                return Err(contradiction(
                    Setting::DeviceFile,
                    given,
                    format!("figures of `{}` of its own", made_with.name),
                ));
            }
            return Ok(());
        }
        let device = Device::from_figures(figures).map_err(|source| SetupError::DeviceFile {
            path: "the plan".into(),
            source,
        })?;
        self.own_devices.push(device);
        Ok(())
    }

    fn take_second_memory(&mut self, setup: &Setup) -> Result<(), Error> {
        let made_with = setup.paging.map_or(SecondMemory::Unused, |paging| SecondMemory::Used {
            mode: paging.mode,
            capacity: paging.capacity,
        });
        let given = match (self.second_memory, made_with) {
            // Only how much it holds may be left open.
            (Some(SecondMemory::Used { mode, capacity: None }), SecondMemory::Used { capacity, .. }) => {
                Some(SecondMemory::Used { mode, capacity })
            }
            (given, _) => given,
        };
        if let Some(given) = given.filter(|given| *given != made_with) {
            return Err(contradiction(Setting::Paging, given.to_string(), made_with.to_string()));
        }
        self.second_memory = Some(made_with);
        Ok(())
    }
}

impl Goal {
    /// Checks that what is asked for is what the plan was sought for; `given` has the objective and the deadline that are set.
    ///
    /// # Errors
    /// [`PlanError::Contradiction`].
    pub fn check_plan(
        given: (Option<Objective>, Option<remat_plan::Deadline>),
        plan: &PlanFile,
        baseline_duration: u64,
    ) -> Result<(), Error> {
        let (objective, deadline) = given;
        agree(
            Setting::Objective,
            &mut objective.clone(),
            Some(plan.objective),
            |objective| format!("{objective:?}").to_lowercase(),
        )?;
        let mut deadline = deadline.map(|deadline| deadline.nanoseconds(baseline_duration));
        agree(Setting::Deadline, &mut deadline, plan.deadline, |time| {
            format!("{time} ns")
        })
    }
}

/// Takes what the plan was made with where nothing is given.
fn agree<T: PartialEq + Debug + Clone>(
    setting: Setting,
    given: &mut Option<T>,
    made_with: Option<T>,
    words: impl Fn(&T) -> String,
) -> Result<(), Error> {
    if let Some(value) = given.as_ref().filter(|_| *given != made_with) {
        let plan = made_with.as_ref().map_or_else(|| "none".to_owned(), &words);
        return Err(contradiction(setting, words(value), plan));
    }
    *given = made_with;
    Ok(())
}

/// The error of a setting that is `given` as something else than the plan says.
pub fn contradiction(setting: Setting, given: impl Display, plan: impl Display) -> Error {
    let (given, plan) = (given.to_string(), plan.to_string());
    PlanError::Contradiction { setting, given, plan }.into()
}

fn accounting(accounting: &Accounting) -> String {
    format!("{accounting:?}").to_lowercase()
}

fn order(order: &OrderMode) -> String {
    format!("{order:?}").to_lowercase()
}

/// The measured costs that a plan was made with, as a profile.
fn profile_of(setup: &Setup) -> ProfileFile {
    let record = |(node, &duration_ns): (&String, &u64)| OpRecord {
        node: node.clone(),
        duration_ns,
        workspace_bytes: setup.workspace_bytes.get(node).copied(),
        outputs: Vec::new(),
    };
    ProfileFile {
        format: PROFILE_FORMAT.to_owned(),
        device: "the one that the plan was made on".to_owned(),
        method: "stated in the plan".to_owned(),
        date: None,
        run: None,
        ops: setup.durations_ns.iter().map(record).collect(),
    }
}
