//! What the running kernel offers, read from its own description of its types (BTF).

use crate::error::Error;
use libbpf_rs::ReferencesType;
use libbpf_rs::btf::types::{FuncProto, Ptr, Struct};
use libbpf_rs::btf::{Btf, BtfType};
use std::path::Path;

/// Where the kernel describes its types.
const BTF: &str = "/sys/kernel/btf/vmlinux";

/// Differences between kernels that decide which variant of a program is loaded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// `cong_control` is told the acknowledgement's flags: from Linux 6.10 on.
    pub control_has_flags: bool,
    /// A registration can be a link, which ends with its last holder: from Linux 6.4 on.
    pub has_links: bool,
}

impl Kernel {
    /// Reads the running kernel's types.
    ///
    /// # Errors
    /// [`Error::NoBtf`]; [`Error::KernelTooOld`] if TCP's hooks cannot be BPF programs.
    pub fn probe() -> Result<Kernel, Error> {
        if !Path::new(BTF).exists() {
            return Err(Error::NoBtf);
        }
        let btf = Btf::from_vmlinux().map_err(|source| Error::of("read the kernel's types", source))?;
        if btf.type_by_name::<Struct<'_>>("bpf_struct_ops_tcp_congestion_ops").is_none() {
            return Err(Error::KernelTooOld { lacks: "struct_ops for TCP (CONFIG_BPF_JIT)" });
        }
        // What the programs read of a rate sample came last of all that they need.
        if member(&btf, "rate_sample", "last_end_seq").is_none() {
            return Err(Error::KernelTooOld { lacks: "rate_sample.last_end_seq" });
        }
        let Some(control) = member(&btf, "tcp_congestion_ops", "cong_control") else {
            return Err(Error::KernelTooOld { lacks: "tcp_congestion_ops.cong_control" });
        };
        Ok(Kernel {
            control_has_flags: arguments(control) == Some(4),
            has_links: btf.type_by_name::<Struct<'_>>("bpf_struct_ops_link").is_some(),
        })
    }
}

/// The type of a structure's member.
fn member<'btf>(btf: &'btf Btf<'_>, structure: &str, name: &str) -> Option<BtfType<'btf>> {
    let structure: Struct<'_> = btf.type_by_name(structure)?;
    let id = structure.iter().find(|member| member.name.is_some_and(|found| found == name))?.ty;
    btf.type_by_id(id)
}

/// How many arguments a pointer's function takes.
fn arguments(pointer: BtfType<'_>) -> Option<usize> {
    let pointer = Ptr::try_from(pointer).ok()?;
    let function = FuncProto::try_from(pointer.referenced_type()).ok()?;
    Some(function.len())
}
