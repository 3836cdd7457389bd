//! Tables as any Arrow consumer takes them.

use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{RecordBatch, RecordBatchIterator};
use arrow_schema::{DataType, FieldRef};
use narrows_plan::Plan;
use narrows_results::Results;
use narrows_results::tables::{TABLES, TRACE_TABLES, columns};
use pyo3::exceptions::PyKeyError;
use pyo3::prelude::*;
use pyo3::types::PyCapsule;
use serde_json::{Value as Json, json};

/// A table that any Arrow consumer can take [Arrow PyCapsule interface].
#[pyclass(frozen)]
pub(crate) struct Table {
    batch: RecordBatch,
}

#[pymethods]
impl Table {
    #[pyo3(signature = (requested_schema=None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // The schema is ours to choose: the protocol lets a producer ignore the request.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), c"arrow_array_stream")
    }
}

/// Every table, what a row of it is, and its columns, as JSON; with `trace` those of a traced run beside its results.
#[pyfunction]
#[pyo3(signature = (*, trace=false))]
pub(crate) fn tables(trace: bool) -> String {
    let column = |field: &FieldRef| {
        json!({
            "name": field.name(),
            "type": match field.data_type() { DataType::Utf8 => "String".to_owned(), other => format!("{other:?}") },
            "nullable": field.is_nullable(),
            "unit": field.metadata()["unit"],
            "description": field.metadata()["description"],
        })
    };
    let table = |table: narrows_results::tables::Table| {
        let columns = columns(table.name).expect("each of these names has a table");
        json!({ "name": table.name, "row": table.about, "columns": columns.fields().iter().map(column).collect::<Vec<_>>() })
    };
    let tables = if trace { &TRACE_TABLES[..] } else { &TABLES[..] };
    Json::from_iter(tables.iter().copied().map(table)).to_string()
}

/// The table of this name.
pub(crate) fn table(name: &str, plan: &Plan, results: &Results) -> PyResult<Table> {
    let batch = narrows_results::tables::table(name, plan, results);
    Ok(Table { batch: batch.ok_or_else(|| PyKeyError::new_err(format!("there is no table {name}")))? })
}
