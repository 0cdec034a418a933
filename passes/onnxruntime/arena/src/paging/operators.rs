//! What the runtime knows of the operators.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ffi::{CStr, c_char, c_int, c_void};
use std::path::PathBuf;
use std::ptr::null;
use std::sync::{Arc, Mutex, PoisonError};

use super::file::default_folder;
use super::kernels::Kernel;
use super::kind::{ANY, DOMAIN, Kind};
use super::store::Store;
use crate::api::{Api, Status};

/// The domains that were made, by the folder of their second memory. They last as long as the process, because sessions may.
static DOMAINS: Mutex<BTreeMap<PathBuf, Domain>> = Mutex::new(BTreeMap::new());

/// A domain of the runtime's.
#[derive(Clone, Copy, Debug)]
struct Domain(*mut c_void);

// SAFETY: the runtime only reads a domain that is complete, from whichever thread makes a session.
unsafe impl Send for Domain {}

/// Set once the options have the operators.
const HAS_OPERATORS: &CStr = c"remat.paging.operators";
/// Where the second memory lies: a folder [default: `/var/tmp`, else that for temporary files].
const FOLDER: &CStr = c"remat.paging.folder";

/// The version of [`Functions`]: later ones have more fields, which are not read then.
const VERSION: u32 = 17;
/// `INPUT_OUTPUT_REQUIRED`.
const REQUIRED: c_int = 0;
type Text = *const c_char;
type Count = unsafe extern "C" fn(*const Operator) -> usize;
type OfPlace = unsafe extern "C" fn(*const Operator, usize) -> c_int;
type Number = unsafe extern "C" fn(*const Operator) -> c_int;

/// `OrtCustomOp` of the C interface, as far as version 17 reads it.
#[repr(C)]
#[derive(Debug)]
struct Functions {
    version: u32,
    create: *const c_void,
    name: unsafe extern "C" fn(*const Operator) -> Text,
    provider: unsafe extern "C" fn(*const Operator) -> Text,
    operand: OfPlace,
    operands: Count,
    result: OfPlace,
    results: Count,
    compute: *const c_void,
    destroy: unsafe extern "C" fn(*mut Kernel),
    operand_kind: OfPlace,
    result_kind: OfPlace,
    operand_memory: OfPlace,
    least_operands: Number,
    operands_are_alike: Number,
    least_results: Number,
    results_are_alike: Number,
    create_2: unsafe extern "C" fn(*const Operator, *const c_void, *const c_void, *mut *mut Kernel) -> Status,
    compute_2: unsafe extern "C" fn(*mut Kernel, *mut c_void) -> Status,
    infer: *const c_void,
    first_version: Number,
    last_version: Number,
    /// `GetMayInplace` and what follows, of later versions.
    later: [*const c_void; 4],
}

/// An operator of the sessions that are made with one set of options. It lives as long as the process.
#[repr(C)]
#[derive(Debug)]
struct Operator {
    /// First, because the runtime takes the address of this for that of the whole.
    functions: Functions,
    api: Api,
    kind: Kind,
    store: Arc<Store>,
}

impl Operator {
    fn new(api: Api, kind: Kind, store: &Arc<Store>) -> Self {
        let functions = Functions {
            version: VERSION,
            create: null(),
            name,
            provider,
            operand,
            operands,
            result,
            results,
            compute: null(),
            destroy,
            operand_kind: required,
            result_kind: required,
            operand_memory: default_memory,
            least_operands: one,
            operands_are_alike: one,
            least_results: one,
            results_are_alike: one,
            create_2: create,
            compute_2: compute,
            infer: null(),
            first_version: one,
            last_version: any_version,
            later: [null(); 4],
        };
        Self {
            functions,
            api,
            kind,
            store: Arc::clone(store),
        }
    }
}

/// Lets the sessions of these options have the operators.
///
/// # Errors
/// Those of the runtime.
pub(crate) fn register(api: Api, options: *mut c_void) -> Result<(), Status> {
    if api.entry(options, HAS_OPERATORS).is_some() {
        // The options are those of an earlier session, too; the runtime takes a domain once.
        return Ok(());
    }
    let folder = api.entry(options, FOLDER);
    let folder = folder.map_or_else(default_folder, PathBuf::from);
    let mut domains = DOMAINS.lock().unwrap_or_else(PoisonError::into_inner);
    let domain = match domains.entry(folder) {
        Entry::Occupied(known) => *known.get(),
        Entry::Vacant(new) => {
            let store = Store::of(new.key());
            let domain = api.domain(DOMAIN)?;
            for kind in Kind::ALL {
                let operator: &'static Operator = Box::leak(Box::new(Operator::new(api, kind, &store)));
                api.add_operator(domain, std::ptr::from_ref(operator).cast())?;
            }
            *new.insert(Domain(domain))
        }
    };
    api.add_domain(options, domain.0)?;
    match api.set_entry(options, HAS_OPERATORS, c"1") {
        status if status.is_null() => Ok(()),
        status => Err(status),
    }
}

/// The operator that the runtime asks about.
///
/// # Safety
/// `operator` is what [`register`] gave the runtime.
unsafe fn this<'o>(operator: *const Operator) -> &'o Operator {
    // SAFETY: the caller's; operators live for ever.
    unsafe { &*operator }
}

unsafe extern "C" fn name(operator: *const Operator) -> Text {
    // SAFETY: the runtime hands back what it was given.
    unsafe { this(operator) }.kind.name().as_ptr()
}

unsafe extern "C" fn provider(_: *const Operator) -> Text {
    null()
}

unsafe extern "C" fn operand(operator: *const Operator, place: usize) -> c_int {
    // SAFETY: the runtime hands back what it was given.
    unsafe { this(operator) }
        .kind
        .operands()
        .get(place)
        .copied()
        .unwrap_or(ANY)
}

unsafe extern "C" fn operands(operator: *const Operator) -> usize {
    // SAFETY: the runtime hands back what it was given.
    unsafe { this(operator) }.kind.operands().len()
}

unsafe extern "C" fn result(operator: *const Operator, place: usize) -> c_int {
    // SAFETY: the runtime hands back what it was given.
    unsafe { this(operator) }
        .kind
        .results()
        .get(place)
        .copied()
        .unwrap_or(ANY)
}

unsafe extern "C" fn results(operator: *const Operator) -> usize {
    // SAFETY: the runtime hands back what it was given.
    unsafe { this(operator) }.kind.results().len()
}

unsafe extern "C" fn required(_: *const Operator, _: usize) -> c_int {
    REQUIRED
}

/// `OrtMemTypeDefault`.
unsafe extern "C" fn default_memory(_: *const Operator, _: usize) -> c_int {
    0
}

unsafe extern "C" fn one(_: *const Operator) -> c_int {
    1
}

unsafe extern "C" fn any_version(_: *const Operator) -> c_int {
    c_int::MAX
}

unsafe extern "C" fn create(
    operator: *const Operator,
    _api: *const c_void,
    info: *const c_void,
    kernel: *mut *mut Kernel,
) -> Status {
    // SAFETY: the runtime hands back what it was given.
    let operator = unsafe { this(operator) };
    let made = Box::new(Kernel::new(operator.api, operator.kind, &operator.store, info));
    // SAFETY: the runtime points to room for one.
    unsafe { kernel.write(Box::into_raw(made)) };
    std::ptr::null_mut()
}

unsafe extern "C" fn compute(kernel: *mut Kernel, context: *mut c_void) -> Status {
    // SAFETY: what `create` made and `destroy` has not ended; several runs may share it.
    let kernel = unsafe { &*kernel };
    kernel.compute(context).err().unwrap_or_else(std::ptr::null_mut)
}

unsafe extern "C" fn destroy(kernel: *mut Kernel) {
    // SAFETY: what `create` made; the runtime calls this once.
    drop(unsafe { Box::from_raw(kernel) });
}
