//! Location and version check of the CCCL headers that the kernels include.

use std::sync::OnceLock;

use cuprum_backend_cuda::libraries::{CcclHeaders, MissingLibrary, OLDEST_CCCL_VERSION};
use cuprum_backend_cuda::{CudaError, driver, nvrtc};

/// Returns the CCCL headers, or the reason why there are none. The search runs once per process.
pub fn cccl_headers() -> Result<&'static CcclHeaders, MissingLibrary> {
    static CCCL_HEADERS: OnceLock<Result<CcclHeaders, MissingLibrary>> = OnceLock::new();
    let find = || {
        let driver = driver::probe_driver().map_err(|reason| {
            let (reason, help) = reason.split_once("; ").unwrap_or((&reason, ""));
            missing_headers_error(reason.into(), help)
        })?;
        nvrtc::cccl_headers(driver.version.0).map_err(to_missing_headers_error).and_then(check_cccl_version)
    };
    CCCL_HEADERS.get_or_init(find).as_ref().map_err(MissingLibrary::clone)
}

/// Returns `headers`, or an error if their version is older than [`OLDEST_CCCL_VERSION`].
pub fn check_cccl_version(headers: CcclHeaders) -> Result<CcclHeaders, MissingLibrary> {
    if headers.has_supported_version() {
        return Ok(headers);
    }
    let (major, minor) = OLDEST_CCCL_VERSION;
    Err(missing_headers_error(format!("{headers} is too old; {major}.{minor} or later is needed"), CCCL_INSTALL_HELP))
}

const CCCL_INSTALL_HELP: &str = "pip install nvidia-cuda-cccl, or set CUPRUM_CCCL_PATH to its include folder";

fn missing_headers_error(reason: String, help: &str) -> MissingLibrary {
    MissingLibrary { name: "CCCL headers".into(), reason, help: help.into() }
}

fn to_missing_headers_error(error: CudaError) -> MissingLibrary {
    let text = error.to_string();
    let (reason, help) = text.split_once("; try: ").unwrap_or((&text, CCCL_INSTALL_HELP));
    missing_headers_error(reason.into(), help)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_headers_are_refused() {
        let of = |version| check_cccl_version(CcclHeaders { include: "/x".into(), version, choice: String::new(), is_override: false });
        assert!(of((3, 0, 1)).is_ok() && of((2, 7, 0)).is_ok());
        assert_eq!(of((1, 17, 2)).unwrap_err().reason, "CCCL 1.17.2 in /x is too old; 2.7 or later is needed");
        assert!(of((2, 5, 0)).is_err());
    }

    #[test]
    fn reasons_are_split_from_help() {
        let m = to_missing_headers_error(CudaError::Missing("CCCL headers: not there; try: pip install it".into()));
        assert_eq!((m.reason.as_str(), m.help.as_str()), ("CCCL headers: not there", "pip install it"));
    }
}
