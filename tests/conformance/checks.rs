//! A check: a named test that runs under a setting. The cases with golden results are checks, as are tests written in Rust.

use cuprum::distributed::{Mesh, Placement, ShardedArray};
use cuprum::expressions::Session;
use cuprum::{DType, Device, NdArray, Result, Value, io, with_device};

use crate::errors::Failure;

/// The inputs of the embedded cases, an npz file.
pub const INPUTS: &[u8] = include_bytes!("goldens/inputs.npz");

/// The inputs of the cases on one device.
pub struct Subject {
    pub device: Device,
    /// The inputs by name.
    pub session: Session,
}

impl Subject {
    /// Creates a subject with the inputs of an npz file. On a mesh, the inputs are sharded along an axis.
    pub fn new(device: Device, sharded_axis: Option<usize>, inputs: &[u8]) -> Result<Subject> {
        let mut session = Session::new();
        let inputs = with_device(Device::CPU, || load(inputs))?;
        for (name, array) in inputs {
            let array = match sharded_axis {
                Some(axis) if array.ndim() > 0 => {
                    array.shard(&Mesh::of_device(device)?, [Placement::Shard((axis % array.ndim()) as isize)])?
                }
                _ => array.to_device(device)?,
            };
            session.set(name, &array);
        }
        Ok(Subject { device, session })
    }

    /// Evaluates an expression over the inputs.
    pub fn eval(&mut self, expression: &str) -> std::result::Result<NdArray, String> {
        match self.session.run(expression).map_err(|e| e.to_string())? {
            Some(value) => value.array("eval").map_err(|e| e.to_string()),
            None => Err("the expression has no value".into()),
        }
    }

    /// Evaluates an expression and reads every array of its value, tuples and lists included. Returns the type of the value.
    pub fn read(&mut self, expression: &str) -> std::result::Result<&'static str, Failure> {
        let Some(value) = self.session.run(expression)? else { return Ok("None") };
        let mut first_failure = None;
        let mut pending = vec![&value];
        while let Some(value) = pending.pop() {
            pending.extend(value.items().unwrap_or_default());
            // All arrays are read, so that no failure of this expression remains for the next one.
            if let Value::Array(array) = value
                && let Err(error) = array.to_bytes()
            {
                first_failure.get_or_insert(error);
            }
        }
        first_failure.map_or(Ok(value.type_name()), |error| Err(error.into()))
    }
}

/// Loads an npz of golden results. bfloat16 is stored as uint16 and marked in the name.
pub fn load(bytes: &[u8]) -> Result<Vec<(String, NdArray)>> {
    io::load_npz_bytes(bytes)?
        .into_iter()
        .map(|(name, array)| match name.strip_suffix("|bf16") {
            None => Ok((name, array)),
            Some(plain) => Ok((plain.to_string(), NdArray::from_bytes(DType::BF16, array.shape(), &array.to_bytes()?)?)),
        })
        .collect()
}

/// The bytes of a result for comparison with other settings, or `None` if there is no result to compare.
pub type Outcome = std::result::Result<Option<Vec<u8>>, String>;

/// A named test.
pub struct Check {
    /// `family: description`.
    pub name: String,
    body: Box<dyn Fn(&mut Subject) -> Outcome>,
}

impl Check {
    pub fn new(name: impl Into<String>, body: impl Fn(&mut Subject) -> Outcome + 'static) -> Check {
        Check { name: name.into(), body: Box::new(body) }
    }

    /// Creates a check without a result to compare.
    pub fn plain(name: impl Into<String>, body: impl Fn(&mut Subject) -> std::result::Result<(), String> + 'static) -> Check {
        Check::new(name, move |subject| body(subject).map(|()| None))
    }

    /// Runs the check. A panic is a failure.
    pub fn run(&self, subject: &mut Subject) -> Outcome {
        let body = std::panic::AssertUnwindSafe(|| (self.body)(subject));
        std::panic::catch_unwind(body).unwrap_or_else(|panic| {
            let text = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
            Err(format!("panicked: {}", text.unwrap_or("no message")))
        })
    }
}

/// Returns an error with both values unless they are equal.
pub fn same<T: PartialEq + std::fmt::Debug>(got: T, want: T) -> std::result::Result<(), String> {
    if got == want { Ok(()) } else { Err(format!("{got:?}, not {want:?}")) }
}
