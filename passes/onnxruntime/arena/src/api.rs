//! The functions of ONNX Runtime that the library calls, by their place in the table that the runtime hands out. The table only ever grows at
//! its end, so the places hold for every version.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::null_mut;

/// An error of the runtime, or null.
pub(crate) type Status = *mut c_void;

/// What the runtime hands to a library that registers itself (`OrtApiBase`).
#[repr(C)]
#[derive(Debug)]
pub struct ApiBase {
    get_api: unsafe extern "C" fn(u32) -> *const *const c_void,
    version: unsafe extern "C" fn() -> *const c_char,
}

/// The version of the table: that of 1.17, which has all that is called.
const TABLE: u32 = 17;

const CREATE_STATUS: usize = 0;
const CREATE_ENV: usize = 3;
const DISABLE_MEM_PATTERN: usize = 17;
const SET_SESSION_LOG_SEVERITY_LEVEL: usize = 22;
const CREATE_CUSTOM_OP_DOMAIN: usize = 26;
const CUSTOM_OP_DOMAIN_ADD: usize = 27;
const ADD_CUSTOM_OP_DOMAIN: usize = 28;
const GET_TENSOR_MUTABLE_DATA: usize = 51;
const GET_TENSOR_ELEMENT_TYPE: usize = 60;
const GET_DIMENSIONS_COUNT: usize = 61;
const GET_DIMENSIONS: usize = 62;
const GET_TENSOR_TYPE_AND_SHAPE: usize = 65;
const CREATE_MEMORY_INFO: usize = 68;
const KERNEL_INFO_GET_ATTRIBUTE_INT64: usize = 86;
const KERNEL_CONTEXT_GET_INPUT: usize = 90;
const KERNEL_CONTEXT_GET_OUTPUT: usize = 91;
const RELEASE_STATUS: usize = 93;
const RELEASE_TENSOR_TYPE_AND_SHAPE_INFO: usize = 99;
const ADD_SESSION_CONFIG_ENTRY: usize = 130;
const REGISTER_ALLOCATOR: usize = 176;
const HAS_SESSION_CONFIG_ENTRY: usize = 237;
const GET_SESSION_CONFIG_ENTRY: usize = 238;
const KERNEL_CONTEXT_GET_LOGGER: usize = 246;
const SET_USER_LOGGING_FUNCTION: usize = 266;

/// `ORT_INVALID_ARGUMENT`.
const INVALID_ARGUMENT: c_int = 2;
/// `ORT_LOGGING_LEVEL_WARNING`.
const WARNING: c_int = 2;

/// A function that the runtime calls with every message of a session (`OrtLoggingFunction`).
pub(crate) type LogFunction =
    unsafe extern "C" fn(*mut c_void, c_int, *const c_char, *const c_char, *const c_char, *const c_char);

type OfOptions = unsafe extern "C" fn(*mut c_void) -> Status;

/// Text of a caller; `None` for null.
///
/// # Safety
/// The text ends in a zero, and lives as long as it is used.
pub(crate) unsafe fn text<'t>(text: *const c_char) -> Option<&'t CStr> {
    // SAFETY: the caller's.
    (!text.is_null()).then(|| unsafe { CStr::from_ptr(text) })
}

/// The table of a runtime that is loaded.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Api(*const *const c_void);

// SAFETY: the table is constant, and its functions may be called from every thread.
unsafe impl Send for Api {}
// SAFETY: as above.
unsafe impl Sync for Api {}

/// The version that a runtime states.
///
/// # Safety
/// `base` is what the runtime hands to libraries.
pub(crate) unsafe fn version(base: *const ApiBase) -> String {
    // SAFETY: the function gives a constant text of the runtime.
    let version = unsafe { CStr::from_ptr(((*base).version)()) };
    version.to_string_lossy().into_owned()
}

macro_rules! call {
    ($api:expr, $place:expr, $type:ty, $($argument:expr),*) => {{
        // SAFETY: the table has a function of this type at this place since 1.17, and the arguments are what it documents.
        unsafe { std::mem::transmute::<*const c_void, $type>(*$api.0.add($place))($($argument),*) }
    }};
}

impl Api {
    /// The table; `None` of a runtime that is too old.
    ///
    /// # Safety
    /// `base` is what the runtime hands to libraries.
    pub(crate) unsafe fn of(base: *const ApiBase) -> Option<Self> {
        // SAFETY: the function may always be called; it gives null for a version that it does not have.
        let table = unsafe { ((*base).get_api)(TABLE) };
        (!table.is_null()).then_some(Self(table))
    }

    /// An error with this message.
    pub(crate) fn error(self, why: &str) -> Status {
        let why = CString::new(why.replace('\0', " ")).unwrap_or_default();
        call!(
            self,
            CREATE_STATUS,
            unsafe extern "C" fn(c_int, *const c_char) -> Status,
            INVALID_ARGUMENT,
            why.as_ptr()
        )
    }

    /// Forgets an error; whether there was one.
    pub(crate) fn failed(self, status: Status) -> bool {
        if !status.is_null() {
            call!(self, RELEASE_STATUS, unsafe extern "C" fn(Status), status);
        }
        !status.is_null()
    }

    /// A reference to the environment of the process.
    pub(crate) fn environment(self) -> Result<*mut c_void, Status> {
        let mut environment = null_mut();
        let create = call!(
            self,
            CREATE_ENV,
            unsafe extern "C" fn(c_int, *const c_char, *mut *mut c_void) -> Status,
            WARNING,
            c"remat".as_ptr(),
            &raw mut environment
        );
        if create.is_null() { Ok(environment) } else { Err(create) }
    }

    /// The description of the processor's memory.
    pub(crate) fn memory_info(self) -> Result<*mut c_void, Status> {
        let mut info = null_mut();
        // `OrtDeviceAllocator`, `OrtMemTypeDefault`.
        let created = call!(
            self,
            CREATE_MEMORY_INFO,
            unsafe extern "C" fn(*const c_char, c_int, c_int, c_int, *mut *mut c_void) -> Status,
            c"Cpu".as_ptr(),
            0,
            0,
            0,
            &raw mut info
        );
        if created.is_null() { Ok(info) } else { Err(created) }
    }

    /// Makes an allocator that of the environment, in the place of the one before.
    pub(crate) fn register_allocator(self, environment: *mut c_void, allocator: *const c_void) -> Status {
        let function = REGISTER_ALLOCATOR;
        call!(
            self,
            function,
            unsafe extern "C" fn(*mut c_void, *const c_void) -> Status,
            environment,
            allocator
        )
    }

    /// What session options say under a key.
    pub(crate) fn entry(self, options: *mut c_void, key: &CStr) -> Option<String> {
        let mut has: c_int = 0;
        let asked = call!(
            self,
            HAS_SESSION_CONFIG_ENTRY,
            unsafe extern "C" fn(*const c_void, *const c_char, *mut c_int) -> Status,
            options,
            key.as_ptr(),
            &raw mut has
        );
        if self.failed(asked) || has == 0 {
            return None;
        }
        type Get = unsafe extern "C" fn(*const c_void, *const c_char, *mut c_char, *mut usize) -> Status;
        let get = |text: *mut c_char, length: *mut usize| {
            call!(self, GET_SESSION_CONFIG_ENTRY, Get, options, key.as_ptr(), text, length)
        };
        let mut length = 0;
        // Without room for the text, some versions call it an error to ask for its length.
        self.failed(get(null_mut(), &raw mut length));
        let mut text = vec![0u8; length];
        let asked = get(text.as_mut_ptr().cast(), &raw mut length);
        if self.failed(asked) {
            return None;
        }
        Some(CStr::from_bytes_until_nul(&text).ok()?.to_string_lossy().into_owned())
    }

    /// Adds to session options what they do not say yet.
    pub(crate) fn set_entry(self, options: *mut c_void, key: &CStr, value: &CStr) -> Status {
        if self
            .entry(options, key)
            .is_some_and(|now| now.as_bytes() == value.to_bytes())
        {
            return null_mut();
        }
        call!(
            self,
            ADD_SESSION_CONFIG_ENTRY,
            unsafe extern "C" fn(*mut c_void, *const c_char, *const c_char) -> Status,
            options,
            key.as_ptr(),
            value.as_ptr()
        )
    }

    /// Turns the memory pattern off.
    pub(crate) fn disable_memory_pattern(self, options: *mut c_void) -> Status {
        call!(self, DISABLE_MEM_PATTERN, OfOptions, options)
    }

    /// Sends the messages of a session to a function, those for information, too.
    pub(crate) fn log_to(self, options: *mut c_void, function: LogFunction, with: *mut c_void) -> Status {
        let set = call!(
            self,
            SET_USER_LOGGING_FUNCTION,
            unsafe extern "C" fn(*mut c_void, LogFunction, *mut c_void) -> Status,
            options,
            function,
            with
        );
        if !set.is_null() {
            return set;
        }
        call!(
            self,
            SET_SESSION_LOG_SEVERITY_LEVEL,
            unsafe extern "C" fn(*mut c_void, c_int) -> Status,
            options,
            1
        )
    }

    /// A new domain of operators, which lives as long as the process.
    pub(crate) fn domain(self, name: &CStr) -> Result<*mut c_void, Status> {
        let mut domain = null_mut();
        let created = call!(
            self,
            CREATE_CUSTOM_OP_DOMAIN,
            unsafe extern "C" fn(*const c_char, *mut *mut c_void) -> Status,
            name.as_ptr(),
            &raw mut domain
        );
        checked(created, domain)
    }

    /// Puts an operator, an `OrtCustomOp`, into a domain.
    pub(crate) fn add_operator(self, domain: *mut c_void, operator: *const c_void) -> Result<(), Status> {
        let function = CUSTOM_OP_DOMAIN_ADD;
        let added = call!(
            self,
            function,
            unsafe extern "C" fn(*mut c_void, *const c_void) -> Status,
            domain,
            operator
        );
        checked(added, ())
    }

    /// Lets sessions of these options have a domain.
    pub(crate) fn add_domain(self, options: *mut c_void, domain: *mut c_void) -> Result<(), Status> {
        let function = ADD_CUSTOM_OP_DOMAIN;
        let added = call!(
            self,
            function,
            unsafe extern "C" fn(*mut c_void, *mut c_void) -> Status,
            options,
            domain
        );
        checked(added, ())
    }

    /// An integer attribute of a node.
    pub(crate) fn attribute(self, info: *const c_void, name: &CStr) -> Option<i64> {
        let mut value = 0;
        let asked = call!(
            self,
            KERNEL_INFO_GET_ATTRIBUTE_INT64,
            unsafe extern "C" fn(*const c_void, *const c_char, *mut i64) -> Status,
            info,
            name.as_ptr(),
            &raw mut value
        );
        (!self.failed(asked)).then_some(value)
    }

    /// An operand of a node that runs.
    pub(crate) fn operand(self, context: *mut c_void, place: usize) -> Result<*mut c_void, Status> {
        let mut value = null_mut();
        let asked = call!(
            self,
            KERNEL_CONTEXT_GET_INPUT,
            unsafe extern "C" fn(*const c_void, usize, *mut *mut c_void) -> Status,
            context,
            place,
            &raw mut value
        );
        self.there(checked(asked, value)?, "operand", place)
    }

    /// Makes a result of a node that runs, of these extents.
    pub(crate) fn result(self, context: *mut c_void, place: usize, dims: &[i64]) -> Result<*mut c_void, Status> {
        let mut value = null_mut();
        let made = call!(
            self,
            KERNEL_CONTEXT_GET_OUTPUT,
            unsafe extern "C" fn(*mut c_void, usize, *const i64, usize, *mut *mut c_void) -> Status,
            context,
            place,
            dims.as_ptr(),
            dims.len(),
            &raw mut value
        );
        self.there(checked(made, value)?, "result", place)
    }

    fn there(self, value: *mut c_void, what: &str, place: usize) -> Result<*mut c_void, Status> {
        if value.is_null() {
            return Err(self.error(&format!("remat: {what} {place} is missing")));
        }
        Ok(value)
    }

    /// The extents of a tensor, and the type of its elements.
    pub(crate) fn dims_and_element(self, tensor: *mut c_void) -> Result<(Vec<i64>, c_int), Status> {
        let mut info = null_mut();
        let asked = call!(
            self,
            GET_TENSOR_TYPE_AND_SHAPE,
            unsafe extern "C" fn(*const c_void, *mut *mut c_void) -> Status,
            tensor,
            &raw mut info
        );
        checked(asked, ())?;
        let (mut rank, mut element) = (0, 0);
        let ranked = call!(
            self,
            GET_DIMENSIONS_COUNT,
            unsafe extern "C" fn(*const c_void, *mut usize) -> Status,
            info,
            &raw mut rank
        );
        let mut dims = vec![0; rank];
        let sized = call!(
            self,
            GET_DIMENSIONS,
            unsafe extern "C" fn(*const c_void, *mut i64, usize) -> Status,
            info,
            dims.as_mut_ptr(),
            rank
        );
        let typed = call!(
            self,
            GET_TENSOR_ELEMENT_TYPE,
            unsafe extern "C" fn(*const c_void, *mut c_int) -> Status,
            info,
            &raw mut element
        );
        let release = RELEASE_TENSOR_TYPE_AND_SHAPE_INFO;
        call!(self, release, unsafe extern "C" fn(*mut c_void), info);
        let failed = [ranked, sized, typed].map(|status| self.failed(status));
        if failed.contains(&true) {
            return Err(self.error("remat: the extents of a tensor are not known"));
        }
        Ok((dims, element))
    }

    /// Where the elements of a tensor lie.
    pub(crate) fn data(self, tensor: *mut c_void) -> Result<*mut c_void, Status> {
        let mut data = null_mut();
        let asked = call!(
            self,
            GET_TENSOR_MUTABLE_DATA,
            unsafe extern "C" fn(*mut c_void, *mut *mut c_void) -> Status,
            tensor,
            &raw mut data
        );
        checked(asked, data)
    }

    /// What no other run has while the run goes on of which a node runs: its logger. 0 where that is not known.
    pub(crate) fn run(self, context: *mut c_void) -> usize {
        let mut logger: *const c_void = null_mut();
        let asked = call!(
            self,
            KERNEL_CONTEXT_GET_LOGGER,
            unsafe extern "C" fn(*const c_void, *mut *const c_void) -> Status,
            context,
            &raw mut logger
        );
        if self.failed(asked) { 0 } else { logger.addr() }
    }
}

/// What a call gave, unless it failed.
fn checked<T>(status: Status, value: T) -> Result<T, Status> {
    if status.is_null() { Ok(value) } else { Err(status) }
}
