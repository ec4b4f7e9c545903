//! The environment variables by which a launcher tells each process its rank, the number of processes and the address of rank 0.

use cuprum_core::settings::mesh::ADDRESS_VARIABLE;
use cuprum_core::{Error, Result};

use crate::mesh::MAX_MESH_RANKS;

/// The position of this process among the processes that a launcher has started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct LaunchedProcess {
    pub rank: usize,
    /// Number of processes.
    pub size: usize,
    /// Rank of the process among the processes on its machine.
    pub local_rank: usize,
    /// Host and port at which rank 0 listens.
    pub address: String,
}

/// Names of the environment variables in which a launcher passes the rank, the number of processes, and the rank on the machine.
struct LauncherVariables {
    rank: &'static str,
    size: &'static str,
    local_rank: &'static str,
}

const LAUNCHER_VARIABLES: [LauncherVariables; 3] = [
    // torchrun
    LauncherVariables { rank: "RANK", size: "WORLD_SIZE", local_rank: "LOCAL_RANK" },
    // mpirun of Open MPI
    LauncherVariables { rank: "OMPI_COMM_WORLD_RANK", size: "OMPI_COMM_WORLD_SIZE", local_rank: "OMPI_COMM_WORLD_LOCAL_RANK" },
    // srun of Slurm
    LauncherVariables { rank: "SLURM_PROCID", size: "SLURM_NTASKS", local_rank: "SLURM_LOCALID" },
];

/// The number of processes that launchers of other MPI libraries set, such as `mpiexec` of MPICH and Intel MPI.
const UNSUPPORTED_SIZE_VARIABLE: &str = "PMI_SIZE";

/// Returns the position of this process among the processes of its launcher. Returns `None` if no launcher has started several processes.
/// `address` is the value of `CUPRUM_MESH_ADDRESS`.
pub(crate) fn find_launched_process(env: &dyn Fn(&str) -> Option<String>, address: Option<String>) -> Result<Option<LaunchedProcess>> {
    let parse = |variable: &'static str, text: String| -> Result<usize> {
        text.parse().map_err(|_| Error::Setting { variable, message: format!("'{text}' is not a number") })
    };
    let Some(launcher) = LAUNCHER_VARIABLES.iter().find(|launcher| env(launcher.rank).is_some()) else {
        // Without a rank, each of several processes would compute alone.
        for LauncherVariables { rank, size, .. } in LAUNCHER_VARIABLES {
            match env(size).map(|text| parse(size, text)).transpose()? {
                None | Some(1) => {}
                Some(count) => {
                    let message = format!("is not set, but {size} is {count}; start the processes with the launcher, or unset {size}");
                    return Err(Error::Setting { variable: rank, message });
                }
            }
        }
        let variable = UNSUPPORTED_SIZE_VARIABLE;
        if let Some(size) = env(variable).filter(|size| size != "1") {
            let message = format!("is {size}, but this launcher is not supported; set RANK, WORLD_SIZE and LOCAL_RANK in each process");
            return Err(Error::Setting { variable, message });
        }
        return Ok(None);
    };
    let number = |variable: &'static str| -> Result<usize> {
        let missing = || Error::Setting { variable, message: format!("is not set, but {} is", launcher.rank) };
        parse(variable, env(variable).ok_or_else(missing)?)
    };
    let (rank, size) = (number(launcher.rank)?, number(launcher.size)?);
    if size == 0 || size > MAX_MESH_RANKS {
        let message = format!("a mesh has between 1 and {MAX_MESH_RANKS} ranks, not {size}");
        return Err(Error::Setting { variable: launcher.size, message });
    }
    if rank >= size {
        return Err(Error::Rank { op: "mesh", rank, message: format!("is out of range: {} is {size}", launcher.size) });
    }
    if size == 1 {
        return Ok(None);
    }
    let address = address.map_or_else(|| master_address(env), Ok)?;
    Ok(Some(LaunchedProcess { rank, size, local_rank: number(launcher.local_rank)?, address }))
}

/// Returns the address of rank 0 from `MASTER_ADDR` and `MASTER_PORT`.
fn master_address(env: &dyn Fn(&str) -> Option<String>) -> Result<String> {
    let required = |variable: &'static str| {
        let message = format!("is not set; set MASTER_ADDR and MASTER_PORT, or {ADDRESS_VARIABLE}");
        env(variable).ok_or(Error::Setting { variable, message })
    };
    let (host, port) = (required("MASTER_ADDR")?, required("MASTER_PORT")?);
    // torchrun's key-value store may already listen at `MASTER_PORT`. Rank 0 then listens at the next port.
    let is_taken = env("TORCHELASTIC_USE_AGENT_STORE").is_some_and(|text| text == "True");
    let port = port.parse::<u16>().ok().filter(|port| *port > 0).and_then(|port| port.checked_add(u16::from(is_taken)));
    let invalid = || Error::Setting { variable: "MASTER_PORT", message: format!("is not a port; set {ADDRESS_VARIABLE}") };
    let port = port.ok_or_else(invalid)?;
    // IPv6 addresses need brackets.
    Ok(if host.contains(':') && !host.starts_with('[') { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find_in(variables: &[(&str, &str)]) -> Result<Option<LaunchedProcess>> {
        let value = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| value.to_string());
        find_launched_process(&value, value(ADDRESS_VARIABLE))
    }

    fn failure(variables: &[(&str, &str)]) -> String {
        find_in(variables).map(|found| format!("{found:?}")).unwrap_or_else(|e| e.to_string())
    }

    #[test]
    fn launchers_are_understood() {
        let master = [("MASTER_ADDR", "node0"), ("MASTER_PORT", "2000")];
        let want = |address: &str| Some(LaunchedProcess { rank: 1, size: 4, local_rank: 0, address: address.into() });
        for [rank, size, local] in [
            ["RANK", "WORLD_SIZE", "LOCAL_RANK"],
            ["OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"],
            ["SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID"],
        ] {
            let process = [(rank, "1"), (size, "4"), (local, "0")];
            assert_eq!(find_in(&[&process[..], &master].concat()).unwrap(), want("node0:2000"));
            assert_eq!(find_in(&[&process[..], &[(ADDRESS_VARIABLE, "other:3")]].concat()).unwrap(), want("other:3"));
            let agent = ("TORCHELASTIC_USE_AGENT_STORE", "True");
            assert_eq!(find_in(&[&process[..], &master, &[agent]].concat()).unwrap(), want("node0:2001"));
            assert_eq!(find_in(&[(rank, "0"), (size, "1")]).unwrap(), None);
            assert!(failure(&process).starts_with("MASTER_ADDR: is not set"));
            assert!(failure(&[(rank, "1")]).starts_with(&format!("{size}: is not set")));
            assert_eq!(failure(&[(rank, "4"), (size, "4")]), format!("[mesh] rank 4 is out of range: {size} is 4"));
            assert!(failure(&[(rank, "x"), (size, "4")]).contains("'x' is not a number"));
            assert!(failure(&[(rank, "0"), (size, "0")]).contains("between 1 and"));
            assert!(failure(&[(size, "4"), (local, "0")]).starts_with(&format!("{rank}: is not set, but {size} is 4")));
            assert!(failure(&[(size, "x")]).starts_with(&format!("{size}: 'x' is not a number")));
            assert_eq!(find_in(&[(size, "1")]).unwrap(), None);
        }
        assert!(failure(&[("PMI_RANK", "0"), ("PMI_SIZE", "2")]).starts_with("PMI_SIZE: is 2, but this launcher is not supported"));
        assert_eq!(find_in(&[("PMI_SIZE", "1")]).unwrap(), None);
        assert_eq!(find_in(&[("PMI_SIZE", "2"), ("SLURM_PROCID", "0"), ("SLURM_NTASKS", "1")]).unwrap(), None);
        assert_eq!(master_address(&|name| Some(if name == "MASTER_ADDR" { "::1" } else { "80" }.into())).unwrap(), "[::1]:80");
    }
}
