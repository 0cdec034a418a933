//! The device table: its form, and what is checked of it. Users' tables have the same form.

use std::collections::BTreeMap;
use std::ops::Range;

use remat_files::shown;
use remat_plan::Paging;
use serde::Deserialize;
use thiserror::Error;
use toml::Spanned;

use super::{Device, Efficiency, Energy, Peak};
use crate::KernelClass;

/// Why a device table cannot be used. Lines count from 1.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
pub enum DeviceTableError {
    /// The text does not have the form of a table: no TOML, a key that is missing or not known, or a value of another type.
    #[error("line {line}: {message}", message = shown(.message))]
    Form {
        /// Where.
        line: usize,
        /// What was expected and what was found; names the key.
        message: String,
    },
    /// A value that no device has.
    #[error("line {line}: `{key}` of device `{device}` {why}", device = shown(.device), why = shown(.why))]
    Value {
        /// Where.
        line: usize,
        /// Name of the device.
        device: String,
        /// The key.
        key: &'static str,
        /// What is wrong with its value.
        why: String,
    },
    /// An efficiency that nothing can have.
    #[error("line {line}: the shares of `{class}` in family `{family}` must be from 1 to 1000 thousandths", family = shown(.family), class = shown(.class))]
    Share {
        /// Where.
        line: usize,
        /// The family.
        family: String,
        /// The class of kernels.
        class: String,
    },
}

/// One `[[device]]` of the table.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct DeviceRow {
    name: Spanned<String>,
    description: String,
    source: Spanned<String>,
    family: Spanned<String>,
    peak: Spanned<Peak>,
    memory_bytes_per_s: Spanned<u64>,
    vector_bytes: Spanned<u64>,
    launch_ns: u64,
    view_ns: u64,
    alignment: Spanned<u64>,
    cpu_kernels: bool,
    memory_bytes: Option<u64>,
    flash_bytes: Option<u64>,
    energy: Option<Energy>,
    second_memory: Option<Spanned<Paging>>,
}

/// The efficiencies of a family of devices.
type Family = BTreeMap<KernelClass, Spanned<Efficiency>>;

/// The whole table: devices, and efficiencies by family of devices.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Table {
    #[serde(default)]
    device: Vec<DeviceRow>,
    #[serde(default)]
    efficiency: BTreeMap<String, Family>,
}

/// The devices of a table. Families and names that `known` devices have already can be used and are taken.
pub(super) fn parse(text: &str, known: &KnownDevices<'_>) -> Result<Vec<Device>, DeviceTableError> {
    let line = |span: Range<usize>| text[..span.start.min(text.len())].matches('\n').count() + 1;
    let table: Table = toml::from_str(text).map_err(|error| {
        let line = error.span().map_or(1, line);
        // The message names no key where only its value is wrong.
        let key = text
            .lines()
            .nth(line - 1)
            .and_then(|text| Some(text.split_once('=')?.0.trim()));
        let message = match key.filter(|key| !error.message().contains(key)) {
            Some(key) => format!("`{key}`: {}", error.message()),
            None => error.message().to_owned(),
        };
        DeviceTableError::Form { line, message }
    })?;
    for (family, shares) in &table.efficiency {
        for (class, efficiency) in shares {
            let share = efficiency.get_ref();
            if [share.compute_permille, share.memory_permille]
                .iter()
                .any(|share| !(1..=1_000).contains(share))
            {
                return Err(DeviceTableError::Share {
                    line: line(efficiency.span()),
                    family: family.clone(),
                    class: class_name(*class),
                });
            }
        }
    }
    let mut devices: Vec<Device> = Vec::new();
    for row in table.device {
        let bad = |key, span, why: &str| DeviceTableError::Value {
            line: line(span),
            device: row.name.get_ref().clone(),
            key,
            why: why.to_owned(),
        };
        if let Some((key, span, why)) = wrong(&row) {
            return Err(bad(key, span, why));
        }
        let name = row.name.get_ref();
        if known.names.contains(&name.as_str()) || devices.iter().any(|device| device.name == *name) {
            return Err(bad("name", row.name.span(), "is taken"));
        }
        let own = table.efficiency.get(row.family.get_ref()).map(|shares| {
            let efficiency = |(&class, share): (&KernelClass, &Spanned<Efficiency>)| (class, *share.get_ref());
            shares.iter().map(efficiency).collect()
        });
        let Some(efficiencies) = own.or_else(|| known.families.get(row.family.get_ref()).cloned()) else {
            let mut families: Vec<&String> = table.efficiency.keys().chain(known.families.keys()).collect();
            families.sort();
            families.dedup();
            let families: Vec<String> = families.iter().map(|family| format!("`{family}`")).collect();
            let why = format!("is `{}`; known are {}", row.family.get_ref(), families.join(", "));
            return Err(bad("family", row.family.span(), &why));
        };
        devices.push(Device {
            efficiencies,
            family: row.family.into_inner(),
            name: row.name.into_inner(),
            description: row.description,
            source: row.source.into_inner(),
            peak: row.peak.into_inner(),
            memory_bytes_per_s: row.memory_bytes_per_s.into_inner(),
            vector_bytes: row.vector_bytes.into_inner(),
            launch_ns: row.launch_ns,
            view_ns: row.view_ns,
            alignment: row.alignment.into_inner(),
            cpu_kernels: row.cpu_kernels,
            memory_bytes: row.memory_bytes,
            flash_bytes: row.flash_bytes,
            energy: row.energy,
            second_memory: row.second_memory.map(Spanned::into_inner),
        });
    }
    Ok(devices)
}

/// Where a device's own efficiencies stand among its figures.
const EFFICIENCIES: &str = "efficiencies";

/// A device as the row of a table in JSON, with its efficiencies.
pub(super) fn to_figures(device: &Device) -> serde_json::Value {
    let mut figures = serde_json::to_value(device).unwrap_or_default();
    if let Some(row) = figures.as_object_mut() {
        row.retain(|_, value| !value.is_null());
    }
    figures
}

/// The device of a row in JSON: it is put into a table, and goes the way of every table.
pub(super) fn from_figures(figures: &serde_json::Value) -> Result<Device, DeviceTableError> {
    let bad = |message: String| DeviceTableError::Form { line: 1, message };
    let mut row = figures.clone();
    let fields = row
        .as_object_mut()
        .ok_or_else(|| bad("the figures are no object".to_owned()))?;
    let efficiencies = fields.remove(EFFICIENCIES).unwrap_or_default();
    let family = fields
        .get("family")
        .and_then(serde_json::Value::as_str)
        .unwrap_or_default();
    let table = serde_json::json!({ "efficiency": { family: efficiencies }, "device": [row] });
    let text = toml::to_string(&table).map_err(|error| bad(error.to_string()))?;
    let devices = parse(&text, &KnownDevices::default())?;
    devices
        .into_iter()
        .next()
        .ok_or_else(|| bad("there is no device".to_owned()))
}

/// The name of a class as tables write it.
fn class_name(class: KernelClass) -> String {
    let value = serde_json::to_value(class).unwrap_or_default();
    value.as_str().unwrap_or_default().to_owned()
}

/// What a table may build on.
#[derive(Default)]
pub(super) struct KnownDevices<'a> {
    pub(super) names: Vec<&'a str>,
    pub(super) families: BTreeMap<String, BTreeMap<KernelClass, Efficiency>>,
}

/// The first key with a value that no device has: where, and what is wrong.
fn wrong(row: &DeviceRow) -> Option<(&'static str, Range<usize>, &'static str)> {
    let peak = row.peak.get_ref();
    let rates = [peak.bits64, peak.bits32, peak.bits16, peak.bits8];
    let stalls = |paging: &&Spanned<Paging>| {
        let paging = paging.get_ref();
        paging.page_out.bytes_per_s == 0 || paging.page_in.bytes_per_s == 0
    };
    let zero = "must not be 0";
    if row.name.get_ref().trim().is_empty() {
        Some(("name", row.name.span(), "must not be empty"))
    } else if row.source.get_ref().trim().is_empty() {
        Some(("source", row.source.span(), "must say where the figures come from"))
    } else if rates.contains(&0) {
        Some(("peak", row.peak.span(), "must not have a rate of 0"))
    } else if *row.memory_bytes_per_s.get_ref() == 0 {
        Some(("memory_bytes_per_s", row.memory_bytes_per_s.span(), zero))
    } else if *row.vector_bytes.get_ref() == 0 {
        Some(("vector_bytes", row.vector_bytes.span(), zero))
    } else if !row.alignment.get_ref().is_power_of_two() {
        Some(("alignment", row.alignment.span(), "must be a power of two"))
    } else if let Some(paging) = row.second_memory.as_ref().filter(stalls) {
        Some(("second_memory", paging.span(), "must not have a bandwidth of 0"))
    } else {
        None
    }
}
