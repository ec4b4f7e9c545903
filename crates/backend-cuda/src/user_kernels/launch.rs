//! Launch configurations: grid, block and shared memory.

use cuprum_core::{Error, Result};

/// Name of the public type that error messages show.
pub(super) const OP: &str = "RawKernel";

/// Maximum number of threads per block along x, y and z, for every device since compute capability 3.0 (CUDA C++ Programming Guide,
/// "Technical Specifications per Compute Capability").
const MAX_BLOCK_EXTENTS: [u32; 3] = [1024, 1024, 64];
/// Maximum number of blocks along x, y and z, from the same source as [`MAX_BLOCK_EXTENTS`].
const MAX_GRID_EXTENTS: [u32; 3] = [i32::MAX as u32, 65_535, 65_535];

/// Grid, block and dynamic shared memory of a launch.
///
/// ```
/// use cuprum_backend_cuda::user_kernels::Launch;
///
/// let rows = Launch::for_items(10_000, 256);                      // a thread for each of 10,000 rows
/// assert_eq!((rows.grid, rows.block), ([40, 1, 1], [256, 1, 1]));
/// let tiles = Launch::new([8, 4], [32, 8]).with_shared_bytes(4096);     // 2-D, with 4 KiB of dynamic shared memory
/// assert_eq!((tiles.grid, tiles.block, tiles.shared_bytes), ([8, 4, 1], [32, 8, 1], 4096));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Launch {
    /// Number of blocks along x, y and z. If one of the numbers is 0, nothing runs.
    pub grid: [u32; 3],
    /// Number of threads per block along x, y and z.
    pub block: [u32; 3],
    /// Dynamic shared memory (`extern __shared__`) per block, in bytes.
    pub shared_bytes: u32,
    /// Whether all blocks are resident at once and may synchronise (`cooperative_groups::this_grid().sync()`).
    pub cooperative: bool,
}

/// A value that gives one to three extents, such as `256`, `[8, 4]` or `(8, 4, 2)`. Further extents are 1.
pub trait IntoExtents {
    /// Returns the extents along x, y and z.
    fn into_extents(self) -> [u32; 3];
}

macro_rules! extents {
    ($($t:ty, $from:pat => $to:expr;)*) => {$(
        impl IntoExtents for $t {
            fn into_extents(self) -> [u32; 3] {
                let $from = self;
                $to
            }
        }
    )*};
}
extents! {
    u32, x => [x, 1, 1];
    [u32; 1], [x] => [x, 1, 1];
    [u32; 2], [x, y] => [x, y, 1];
    [u32; 3], all => all;
    (u32,), (x,) => [x, 1, 1];
    (u32, u32), (x, y) => [x, y, 1];
    (u32, u32, u32), (x, y, z) => [x, y, z];
}

impl Launch {
    /// Makes a launch from a grid and a block.
    pub fn new(grid: impl IntoExtents, block: impl IntoExtents) -> Launch {
        Launch { grid: grid.into_extents(), block: block.into_extents(), shared_bytes: 0, cooperative: false }
    }

    /// Returns a 1-D launch with a thread per item, in blocks of `threads` threads.
    ///
    /// The kernel computes `i = blockIdx.x * blockDim.x + threadIdx.x` and returns if `i` is not below the number of items. If there are
    /// more items than threads in the largest grid, the kernel needs a grid-stride loop.
    pub fn for_items(items: usize, threads: u32) -> Launch {
        let blocks = u32::try_from(items.div_ceil(threads.max(1) as usize)).unwrap_or(u32::MAX).min(MAX_GRID_EXTENTS[0]);
        Launch::new(blocks, threads)
    }

    /// Sets the dynamic shared memory per block.
    pub fn with_shared_bytes(self, bytes: u32) -> Launch {
        Launch { shared_bytes: bytes, ..self }
    }

    /// Makes the launch cooperative. A cooperative launch fails if not all blocks can be resident at once.
    pub fn cooperative(self) -> Launch {
        Launch { cooperative: true, ..self }
    }

    /// Returns the number of thread blocks in the grid.
    pub(super) fn block_count(&self) -> u64 {
        self.grid.iter().map(|&n| u64::from(n)).product() // below 2^63, by MAX_GRID_EXTENTS
    }

    /// Returns the number of threads per block.
    pub(super) fn threads_per_block(&self) -> u32 {
        self.block.iter().copied().fold(1, u32::saturating_mul)
    }

    /// Returns an error if the launch of the kernel named `kernel` exceeds the limits of every device, or the `limits` of this kernel on
    /// its device.
    pub(super) fn check_launch_limits(&self, kernel: &str, limits: &LaunchLimits) -> Result<()> {
        let refused = |why: String| Err(Error::value(OP, format!("{kernel}: {why}")));
        for ((what, extents), most) in [("grid", self.grid), ("block", self.block)].into_iter().zip([MAX_GRID_EXTENTS, MAX_BLOCK_EXTENTS]) {
            if let Some(axis) = (0..3).find(|&axis| extents[axis] > most[axis]) {
                let [n, most, axis] = [extents[axis].to_string(), most[axis].to_string(), ["x", "y", "z"][axis].into()];
                return refused(format!("a {what} of {n} along {axis}; the maximum is {most}"));
            }
        }
        if self.block.contains(&0) {
            return refused(format!("a block of {:?} has no threads", self.block));
        }
        if self.threads_per_block() > limits.threads {
            let (threads, most) = (self.threads_per_block(), limits.threads);
            return refused(format!("a block of {threads} threads; the maximum of this kernel on this device is {most}"));
        }
        if self.shared_bytes > limits.shared.saturating_sub(limits.static_shared) {
            let LaunchLimits { shared, static_shared, .. } = limits;
            return refused(format!(
                "{} bytes of dynamic and {static_shared} of static shared memory; a block of this device has {shared}",
                self.shared_bytes
            ));
        }
        Ok(())
    }
}

/// Launch limits of a kernel on its device.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchLimits {
    /// Maximum threads per block.
    pub threads: u32,
    /// Maximum shared memory per block on the kernel's device, in bytes.
    pub shared: u32,
    /// Static shared memory per block of the kernel, in bytes.
    pub static_shared: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn grids_cover_their_items() {
        assert_eq!(Launch::for_items(0, 256).grid, [0, 1, 1]);
        assert_eq!(Launch::for_items(256, 256).grid, [1, 1, 1]);
        assert_eq!(Launch::for_items(257, 256).grid, [2, 1, 1]);
        assert_eq!(Launch::for_items(5, 0).grid, [5, 1, 1]);
        assert_eq!(Launch::for_items(usize::MAX, 32).grid, [i32::MAX as u32, 1, 1]);
        assert_eq!(Launch::new((3,), (4, 5)).block_count(), 3);
    }

    #[test]
    fn what_cannot_be_launched_is_refused_with_its_number() {
        let limits = LaunchLimits { threads: 512, shared: 232_448, static_shared: 1024 };
        let why = |launch: Launch| launch.check_launch_limits("k", &limits).unwrap_err().to_string();
        assert!(Launch::new(i32::MAX as u32, 512).with_shared_bytes(231_424).check_launch_limits("k", &limits).is_ok());
        assert!(Launch::new(0, 1).check_launch_limits("k", &limits).is_ok(), "an empty launch is valid");
        assert_eq!(why(Launch::new(1, 513)), "[RawKernel] k: a block of 513 threads; the maximum of this kernel on this device is 512");
        assert!(why(Launch::new(1, [32, 32])).contains("1024 threads"));
        assert!(why(Launch::new(1, (1, 1, 65))).contains("a block of 65 along z; the maximum is 64"));
        assert!(why(Launch::new((1, 65_536), 1)).contains("a grid of 65536 along y"));
        assert!(why(Launch::new(1 << 31, 1)).contains("a grid of 2147483648 along x"));
        assert!(why(Launch::new(1, (4, 0))).contains("[4, 0, 1] has no threads"));
        assert!(why(Launch::new(1, 1).with_shared_bytes(231_425)).contains("231425 bytes of dynamic and 1024 of static"));
    }
}
