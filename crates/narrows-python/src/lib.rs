//! `narrows._native`: what Python may ask of the scenario and the simulator. Text goes in and comes out as JSON, results
//! as Arrow; nothing is decided here. Python's side of this page is `python/narrows/_native.pyi`.

mod controller;
mod experiments;
mod run;
mod tables;

use pyo3::prelude::*;

/// The simulator's half of the lab.
#[pymodule]
fn _native(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("BadInput", py.get_type::<experiments::BadInput>())?;
    module.add("Cancelled", py.get_type::<run::Cancelled>())?;
    module.add_class::<run::Run>()?;
    module.add_class::<run::Outcome>()?;
    module.add_function(wrap_pyfunction!(experiments::version, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::plan_hash, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::plan_version, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::long_flows, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::network, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::base_rtt, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::build, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::components, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::schema, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::program, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::c_compiler, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::controller_in_file, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::expand, module)?)?;
    module.add_function(wrap_pyfunction!(experiments::seeds, module)?)?;
    module.add_function(wrap_pyfunction!(tables::tables, module)?)?;
    module.add_function(wrap_pyfunction!(run::start, module)?)?;
    module.add_function(wrap_pyfunction!(run::trace, module)?)?;
    module.add_function(wrap_pyfunction!(run::calibrate, module)?)?;
    module.add_function(wrap_pyfunction!(run::calibrate_memory, module)?)?;
    narrows_c::run_python_with(controller::load);
    Ok(())
}
