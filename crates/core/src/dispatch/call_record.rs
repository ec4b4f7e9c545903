//! Records of calls, for `explain`, the trace and benchmarks.

use std::fmt;

use smallvec::SmallVec;

use crate::array::Array;
use crate::call::Call;
use crate::device::Device;
use crate::dtype::DType;
use crate::error::shape_text;
use crate::op::Family;

/// Record of one dispatched call.
#[derive(Clone, Debug)]
pub struct CallRecord {
    /// NumPy name of the operation. For a fused expression, the name of its last operation.
    pub op: &'static str,
    /// The kernel family of the call. Dispatch tries only kernels of this family.
    pub family: Family,
    /// The device of the call.
    pub device: Device,
    /// Dtypes of the inputs, or of the outputs if there are no inputs.
    pub dtypes: Vec<DType>,
    /// Shapes of the inputs, or of the outputs if there are no inputs. In the families `Map`, `Reduce`, `Rows` and `Scan`, input shapes are
    /// broadcast. In `Select` and `Histogram`, they are flattened.
    pub shapes: Vec<Vec<usize>>,
    /// Dtype and shape of each output. Empty for a launch that bypassed dispatch. Also empty for a call without inputs, because `dtypes`
    /// and `shapes` then describe its outputs. Outputs of the family `Select` are recorded with their maximum length.
    pub outputs: Vec<(DType, Vec<usize>)>,
    /// Options that distinguish calls of one operation, such as `axis=1, keepdims`; empty if there are none.
    pub options: String,
    /// The fused expression, if the call has one. For a launch of a captured graph, the number of nodes of the graph.
    pub expression: Option<String>,
    /// Minimum memory traffic in bytes: the size of all distinct input elements and all output elements. 0 for a launch of a graph.
    pub bytes: usize,
    /// Name of the accelerator that ran the call; `None` if every kernel declined or a kernel failed.
    pub served_by: Option<&'static str>,
    /// Accelerators that declined, with their reasons.
    pub declined: Vec<(&'static str, String)>,
    /// The accelerator that tuning tried first, with the reason. `None` unless the accelerator order is `auto` (see
    /// [`tuning`](crate::tuning)).
    pub chosen: Option<String>,
    /// Advice for [`explain`](super::explain): a faster or more accurate way to compute the same result. `None` if there is no advice.
    pub hint: Option<&'static str>,
    /// The kernel, if the record is of a launch that bypassed dispatch ([`record_launch`](super::record_launch)). `dtypes` and `shapes`
    /// then describe all array arguments. `None` for a launch of a graph.
    pub launch: Option<KernelLaunch>,
}

/// A kernel launch that bypassed dispatch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelLaunch {
    /// Name of the kernel.
    pub kernel: String,
    /// Grid size: blocks along x, y and z.
    pub grid: [u32; 3],
    /// Block size: threads along x, y and z.
    pub block: [u32; 3],
}

impl CallRecord {
    /// Returns the record of a call that no accelerator has served yet.
    #[cold]
    pub(super) fn from_call(call: &Call) -> CallRecord {
        CallRecord {
            op: call.op.name(),
            family: call.family(),
            device: call.device,
            dtypes: call_dtypes(call),
            shapes: call_shapes(call),
            outputs: match call.inputs {
                [] => Vec::new(),
                _ => call.outputs.iter().map(|o| (o.dtype, o.layout.shape().to_vec())).collect(),
            },
            options: call.work.as_request().format_call_options(call.inputs, call.outputs),
            expression: call.program().map(ToString::to_string),
            bytes: call.min_memory_traffic(),
            served_by: None,
            declined: Vec::new(),
            chosen: None,
            hint: None,
            launch: None,
        }
    }

    /// Returns the record of a launch of a graph with `nodes` nodes. `served_by` is the name of the accelerator that opens the devices of
    /// this kind.
    pub(crate) fn from_graph_launch(device: Device, nodes: usize, served_by: Option<&'static str>) -> CallRecord {
        CallRecord {
            op: "graph",
            family: Family::Custom,
            device,
            dtypes: Vec::new(),
            shapes: Vec::new(),
            outputs: Vec::new(),
            options: String::new(),
            expression: Some(format!("{nodes} nodes")),
            bytes: 0,
            served_by,
            declined: Vec::new(),
            chosen: None,
            hint: None,
            launch: None,
        }
    }

    /// Returns the record of a user-requested kernel launch on arrays of these dtypes and shapes, for
    /// [`record_launch`](super::record_launch).
    pub fn from_kernel_launch<'a>(
        op: &'static str,
        accelerator: &'static str,
        device: Device,
        launch: KernelLaunch,
        arrays: impl IntoIterator<Item = (DType, &'a [usize])>,
    ) -> CallRecord {
        let arrays: SmallVec<[(DType, &[usize]); 4]> = arrays.into_iter().collect();
        CallRecord {
            op,
            family: Family::Custom,
            device,
            dtypes: arrays.iter().map(|(dtype, _)| *dtype).collect(),
            shapes: arrays.iter().map(|(_, shape)| shape.to_vec()).collect(),
            outputs: Vec::new(),
            options: String::new(),
            expression: None,
            bytes: arrays.iter().map(|(dtype, shape)| shape.iter().product::<usize>() * dtype.itemsize()).sum(),
            served_by: Some(accelerator),
            declined: Vec::new(),
            chosen: None,
            hint: None,
            launch: Some(launch),
        }
    }

    /// Returns the fused expression. Returns `None` if there is none, or if the expression only returns its input.
    pub(crate) fn fused_expression(&self) -> Option<&str> {
        self.expression.as_deref().filter(|e| *e != "a0")
    }
}

impl fmt::Display for CallRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dtypes: Vec<_> = self.dtypes.iter().map(|d| d.name()).collect();
        let shapes: Vec<_> = self.shapes.iter().map(|s| shape_text(s)).collect();
        write!(f, "{} [{:?}]", self.op, self.family)?;
        if !dtypes.is_empty() {
            write!(f, " {} {}", dtypes.join(","), shapes.join(","))?;
        }
        if !self.outputs.is_empty() {
            let outputs: Vec<_> = self.outputs.iter().map(|(dtype, shape)| format!("{} {}", dtype.name(), shape_text(shape))).collect();
            write!(f, " -> {}", outputs.join(", "))?;
        }
        if !self.options.is_empty() {
            write!(f, ", {}", self.options)?;
        }
        write!(f, " on {}: {}", self.device, self.served_by.unwrap_or("no accelerator"))?;
        if let Some(e) = self.fused_expression() {
            write!(f, "\n    computes {e}")?;
        }
        if let Some(KernelLaunch { kernel, grid, block }) = &self.launch {
            write!(f, "\n    launches {kernel}, blocks {grid:?} of threads {block:?}")?;
        }
        if let Some(chosen) = &self.chosen {
            write!(f, "\n    auto: {chosen}")?;
        }
        for (name, why) in &self.declined {
            write!(f, "\n    {name} declined: {why}")?;
        }
        if let Some(hint) = self.hint {
            write!(f, "\n    hint: {hint}")?;
        }
        Ok(())
    }
}

/// Returns the dtypes of the inputs of `call`, or of the outputs if there are no inputs.
pub(super) fn call_dtypes(call: &Call) -> Vec<DType> {
    if call.inputs.is_empty() { call.outputs.iter().map(|o| o.dtype).collect() } else { call.inputs.iter().map(|a| a.dtype()).collect() }
}

/// Returns the shapes of the inputs of `call`, or of the outputs if there are no inputs.
pub(super) fn call_shapes(call: &Call) -> Vec<Vec<usize>> {
    if call.inputs.is_empty() {
        call.outputs.iter().map(|o| o.layout.shape().to_vec()).collect()
    } else {
        call.inputs.iter().map(|a| a.shape().to_vec()).collect()
    }
}
