//! The host's build of the cores. A core writes its state as the derived `Debug` of the Rust controller does: that is how all
//! of the state is compared, private fields included.

use std::ffi::{CStr, c_char, c_void};

/// `struct cc_ack`.
#[repr(C)]
pub(crate) struct CAck {
    pub(crate) now_ns: u64,
    pub(crate) acked: u64,
    pub(crate) marked: u64,
    pub(crate) rtt_us: u64,
    pub(crate) rtt_seq: u64,
    pub(crate) una: u64,
    pub(crate) nxt: u64,
    pub(crate) max_in_flight: u64,
    pub(crate) phase: u32,
    pub(crate) limited_by: u32,
    pub(crate) ece: u32,
    pub(crate) in_order: u32,
}

/// `struct cc_path`.
#[repr(C)]
pub(crate) struct CPath {
    pub(crate) packet_bytes: u64,
    pub(crate) initial_window: u64,
    pub(crate) line_rate_bps: u64,
    pub(crate) srtt_eighth_us: u64,
    pub(crate) min_rtt_us: u64,
    pub(crate) rto_ns: u64,
    pub(crate) una: u64,
    pub(crate) nxt: u64,
}

/// `struct twin`: a core behind pointers.
#[repr(C)]
pub(crate) struct Twin {
    name: *const c_char,
    size: u64,
    names: *const *const c_char,
    init: unsafe extern "C" fn(*mut c_void, *const u64, *const CPath),
    configure: unsafe extern "C" fn(*mut c_void, *const u64, *const CPath),
    on_ack: unsafe extern "C" fn(*mut c_void, *const CAck, *const CPath),
    on_congestion: unsafe extern "C" fn(*mut c_void, u64, u32, *const CPath),
    on_timeout: unsafe extern "C" fn(*mut c_void, u64, u32, *const CPath),
    on_sent: unsafe extern "C" fn(*mut c_void, u32, *const CPath),
    on_idle_restart: unsafe extern "C" fn(*mut c_void, u64, *const CPath),
    on_undo: unsafe extern "C" fn(*mut c_void),
    describe: unsafe extern "C" fn(*const c_void, *mut c_char, u64),
}

unsafe extern "C" {
    static twins: [Option<&'static Twin>; 64];
    safe static twin_ack_size: u64;
    safe static twin_path_size: u64;
}

/// Text of the library.
fn text(string: *const c_char) -> &'static str {
    // SAFETY: a string literal of the library: closed by a zero, never freed or changed.
    unsafe { CStr::from_ptr(string) }.to_str().expect("names are ASCII")
}

impl Twin {
    /// The core of this controller.
    pub(crate) fn of(name: &str) -> &'static Twin {
        // SAFETY: the table ends with a null, and nothing behind that is read.
        let table = (&raw const twins).cast::<Option<&'static Twin>>();
        (0..)
            .map_while(|index| unsafe { *table.add(index) })
            .find(|twin| text(twin.name) == name)
            .unwrap_or_else(|| panic!("no core is named {name}"))
    }
    /// The names of its parameters, in the order in which it reads them.
    pub(crate) fn parameters(&self) -> Vec<&'static str> {
        // SAFETY: the place is that of a name before the closing null, or of that null.
        let names = (0..).map(|index| unsafe { *self.names.add(index) });
        names.take_while(|name| !name.is_null()).map(text).collect()
    }
}

/// A controller in C.
pub(crate) struct Core {
    twin: &'static Twin,
    /// Its state, which only C understands: `size` bytes, aligned for what it consists of, `u64`.
    state: Vec<u64>,
    parameters: usize,
}

impl Core {
    pub(crate) fn init(twin: &'static Twin, parameters: &[u64], path: &CPath) -> Self {
        let size = usize::try_from(twin.size).expect("it fits the memory");
        let mut core = Core { twin, state: vec![0; size.div_ceil(8)], parameters: twin.parameters().len() };
        assert_eq!(parameters.len(), core.parameters);
        // SAFETY: a state of the core's size, as many parameters as it has names, and references that are not kept.
        unsafe { (twin.init)(core.raw(), parameters.as_ptr(), path) }
        core
    }

    fn raw(&mut self) -> *mut c_void {
        self.state.as_mut_ptr().cast()
    }

    pub(crate) fn configure(&mut self, parameters: &[u64], path: &CPath) {
        assert_eq!(parameters.len(), self.parameters);
        // SAFETY: as above.
        unsafe { (self.twin.configure)(self.raw(), parameters.as_ptr(), path) }
    }

    pub(crate) fn on_ack(&mut self, ack: &CAck, path: &CPath) {
        // SAFETY: the state of this core, and references that are not kept; so below.
        unsafe { (self.twin.on_ack)(self.raw(), ack, path) }
    }

    pub(crate) fn on_congestion(&mut self, now_ns: u64, cause: u32, path: &CPath) {
        // SAFETY: as above.
        unsafe { (self.twin.on_congestion)(self.raw(), now_ns, cause, path) }
    }

    pub(crate) fn on_timeout(&mut self, now_ns: u64, repeated: u32, path: &CPath) {
        // SAFETY: as above.
        unsafe { (self.twin.on_timeout)(self.raw(), now_ns, repeated, path) }
    }

    pub(crate) fn on_sent(&mut self, start: u32, path: &CPath) {
        // SAFETY: as above.
        unsafe { (self.twin.on_sent)(self.raw(), start, path) }
    }

    pub(crate) fn on_idle_restart(&mut self, idle_ns: u64, path: &CPath) {
        // SAFETY: as above.
        unsafe { (self.twin.on_idle_restart)(self.raw(), idle_ns, path) }
    }

    pub(crate) fn on_undo(&mut self) {
        // SAFETY: as above.
        unsafe { (self.twin.on_undo)(self.raw()) }
    }

    /// As the Rust controller's `Debug`, from its first brace on.
    pub(crate) fn state(&self) -> String {
        let mut text = vec![0_u8; 4096];
        // SAFETY: the state of this core, and a buffer of the size that is said; the text is closed by a zero.
        unsafe { (self.twin.describe)(self.state.as_ptr().cast(), text.as_mut_ptr().cast(), text.len() as u64) }
        let text = CStr::from_bytes_until_nul(&text).expect("it is closed by a zero");
        text.to_str().expect("it is ASCII").trim_start().to_owned()
    }
}

/// What is told to every core has the size that C gives it.
pub(crate) fn check_sizes() {
    assert_eq!([twin_ack_size, twin_path_size], [size_of::<CAck>(), size_of::<CPath>()].map(|size| size as u64));
}
