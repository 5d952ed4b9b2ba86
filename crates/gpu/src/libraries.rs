//! Finding NVIDIA's libraries where people have them: the loader's path, the CUDA toolkit's folders, and the `nvidia`
//! packages of the active Python (so that `pip install nvidia-cudnn-cu13` and the like are enough).
//!
//! A library is loaded by its full path with its symbols made global, so that libraries loaded later (cuDNN loads
//! seven of its own, NVRTC its built-ins) resolve by name to the ones loaded here.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::OnceLock;

use crate::{Error, Result};

/// A library we may need.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Wanted {
    /// The driver, which comes with the graphics driver.
    Driver,
    /// The run-time compiler of kernels.
    Nvrtc,
    /// Matrix products.
    CublasLt,
    /// Convolutions.
    Cudnn,
    /// Several GPUs; one does without.
    Nccl,
}

impl Wanted {
    /// All libraries that a GPU needs, in the order in which they must be loaded.
    pub const ALL: [Self; 4] = [Self::Driver, Self::Nvrtc, Self::CublasLt, Self::Cudnn];

    /// Its name for people.
    pub fn title(self) -> &'static str {
        match self {
            Self::Driver => "the NVIDIA driver",
            Self::Nvrtc => "NVRTC (CUDA 12 or 13)",
            Self::CublasLt => "cuBLASLt (CUDA 12 or 13)",
            Self::Cudnn => "cuDNN 9",
            Self::Nccl => "NCCL 2",
        }
    }

    /// File names it may have, the preferred one first.
    fn file_names(self) -> &'static [&'static str] {
        match self {
            Self::Driver => &["libcuda.so.1", "libcuda.so"],
            Self::Nvrtc => &["libnvrtc.so.13", "libnvrtc.so.12"],
            Self::CublasLt => &["libcublasLt.so.13", "libcublasLt.so.12"],
            Self::Cudnn => &["libcudnn.so.9"],
            Self::Nccl => &["libnccl.so.2", "libnccl.so"],
        }
    }

    /// How the names of those libraries of the same folder begin that it loads by name; loaded before it where they
    /// are there.
    fn parts(self) -> &'static [&'static str] {
        match self {
            Self::Cudnn => &[
                "libcudnn_graph.so.9",
                "libcudnn_ops.so.9",
                "libcudnn_cnn.so.9",
                "libcudnn_heuristic.so.9",
                "libcudnn_engines_precompiled.so.9",
                "libcudnn_engines_runtime_compiled.so.9",
            ],
            Self::Nvrtc => &["libnvrtc-builtins.so"],
            _ => &[],
        }
    }

    /// How to get it.
    pub fn installation(self) -> &'static str {
        match self {
            Self::Driver => "install NVIDIA's driver for this GPU (version 525 or later)",
            Self::Nvrtc => {
                "install the CUDA toolkit, or `pip install nvidia-cuda-nvrtc` (`-cu12` for CUDA 12 drivers)"
            }
            Self::CublasLt => {
                "install the CUDA toolkit, or `pip install nvidia-cublas` (`-cu12` for CUDA 12 drivers)"
            }
            Self::Cudnn => {
                "install cuDNN 9, or `pip install nvidia-cudnn-cu13` (`-cu12` for CUDA 12 drivers)"
            }
            Self::Nccl => "install NCCL 2, or `pip install nvidia-nccl-cu13` (`-cu12` for CUDA 12 drivers)",
        }
    }
}

/// A library that was not found: what was looked for, and where.
#[derive(Clone, Debug)]
pub struct Missing {
    /// The library.
    pub wanted: Wanted,
    /// File names that were looked for.
    pub file_names: Vec<String>,
    /// Places that were looked in.
    pub places: Vec<String>,
    /// Files that are there but did not load, with the loader's message.
    pub failures: Vec<String>,
}

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            formatter,
            "{} was not found (looked for {} in {})",
            self.wanted.title(),
            self.file_names.join(", "),
            self.places.join(", ")
        )?;
        for failure in &self.failures {
            write!(formatter, "; {failure}")?;
        }
        write!(formatter, ": {}", self.wanted.installation())
    }
}

/// A loaded library. Never unloaded: NVIDIA's libraries keep state for the life of the process.
#[derive(Debug)]
pub struct Loaded {
    library: libloading::os::unix::Library,
    /// Where it was found: a path, or a bare file name that the loader resolved.
    pub found: PathBuf,
}

impl Loaded {
    /// The function `symbol` (with the terminating zero byte), as a function pointer type `F`.
    ///
    /// # Safety
    /// `F` must be the type of that function.
    pub(crate) unsafe fn function<F: Copy>(&self, symbol: &'static str) -> Result<F> {
        // SAFETY: the caller vouches for the type; the library is never unloaded.
        let found = unsafe { self.library.get::<F>(symbol) };
        found.map(|symbol| *symbol).map_err(|_| Error::MissingSymbol {
            library: self.found.display().to_string(),
            symbol: symbol.trim_end_matches('\0').to_owned(),
        })
    }
}

/// The library, found and loaded on the first call.
pub fn load(wanted: Wanted) -> Result<&'static Loaded> {
    static DRIVER: OnceLock<Result<Loaded>> = OnceLock::new();
    static NVRTC: OnceLock<Result<Loaded>> = OnceLock::new();
    static CUBLASLT: OnceLock<Result<Loaded>> = OnceLock::new();
    static CUDNN: OnceLock<Result<Loaded>> = OnceLock::new();
    static NCCL: OnceLock<Result<Loaded>> = OnceLock::new();
    let slot = match wanted {
        Wanted::Driver => &DRIVER,
        Wanted::Nvrtc => &NVRTC,
        Wanted::CublasLt => &CUBLASLT,
        Wanted::Cudnn => &CUDNN,
        Wanted::Nccl => &NCCL,
    };
    slot.get_or_init(|| {
        if wanted == Wanted::Cudnn {
            // cuDNN calls these two by name; whether they are needed is its own decision.
            let _ = load(Wanted::Nvrtc);
            let _ = load(Wanted::CublasLt);
        }
        find(wanted)
    })
    .as_ref()
    .map_err(Clone::clone)
}

/// The version of a library that is there, where it tells one without a device.
pub fn version(wanted: Wanted) -> Option<String> {
    let three_parts = |number: usize, thousand: usize| {
        format!("{}.{}.{}", number / (thousand * 10), number / 100 % (thousand / 10), number % 100)
    };
    match wanted {
        Wanted::Driver => {
            let number = crate::driver::Driver::get().and_then(crate::driver::Driver::version_number).ok()?;
            Some(format!("for CUDA {}.{}", number / 1000, number % 1000 / 10))
        }
        Wanted::Nvrtc => {
            let (major, minor) = crate::nvrtc::Compiler::get().ok()?.version();
            Some(format!("{major}.{minor}"))
        }
        Wanted::CublasLt => crate::matmul::library_version().map(|number| three_parts(number, 1000)),
        // 91900 is 9.19.0
        Wanted::Cudnn => crate::cudnn::library_version().map(|number| three_parts(number, 1000)),
        // 22809 is 2.28.9
        Wanted::Nccl => crate::nccl::library_version().map(|number| three_parts(number, 1000)),
    }
}

/// Looks in every place for every name, places first: a whole toolkit is preferred to parts of several.
fn find(wanted: Wanted) -> Result<Loaded> {
    let mut file_names = wanted.file_names().to_vec();
    if matches!(wanted, Wanted::Nvrtc | Wanted::CublasLt) && crate::driver::major_version() == Some(12) {
        // A driver of CUDA 12 does not run code of CUDA 13.
        file_names.retain(|name| name.ends_with("12"));
    }
    let mut failures = Vec::new();
    for name in &file_names {
        match open(Path::new(name)) {
            Ok(library) => return Ok(Loaded { library, found: PathBuf::from(name) }),
            // The loader's word for "no such file": anything else deserves telling.
            Err(message) if message.contains("No such file") => {}
            Err(message) => failures.push(message),
        }
    }
    let mut folders = toolkit_folders();
    if wanted != Wanted::Driver {
        folders.extend(python_folders());
    }
    for folder in &folders {
        for name in &file_names {
            let path = folder.join(name);
            if !path.is_file() {
                continue;
            }
            for part in wanted.parts() {
                let starts = |path: &&PathBuf| {
                    path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(part))
                };
                for path in entries(folder).iter().filter(starts) {
                    if let Ok(library) = open(path) {
                        std::mem::forget(library);
                    }
                }
            }
            match open(&path) {
                Ok(library) => return Ok(Loaded { library, found: path }),
                Err(message) => failures.push(message),
            }
        }
    }
    let mut places = vec!["the loader's path".to_owned()];
    places.extend(folders.iter().map(|folder| folder.display().to_string()));
    if wanted != Wanted::Driver && python_folders().is_empty() {
        places.push("the `nvidia` packages of the active Python (none found)".to_owned());
    }
    let file_names = file_names.iter().map(|&name| name.to_owned()).collect();
    Err(Error::MissingLibrary(Box::new(Missing { wanted, file_names, places, failures })))
}

fn open(path: &Path) -> std::result::Result<libloading::os::unix::Library, String> {
    use libloading::os::unix::{Library, RTLD_GLOBAL, RTLD_LAZY};
    // SAFETY: NVIDIA's libraries have no initialisers that ask anything of us.
    unsafe { Library::open(Some(path), RTLD_LAZY | RTLD_GLOBAL) }.map_err(|error| {
        use std::error::Error as _;
        error.source().map_or_else(|| error.to_string(), ToString::to_string)
    })
}

/// Folders of the CUDA toolkit and of the driver that are there.
fn toolkit_folders() -> Vec<PathBuf> {
    let mut roots: Vec<PathBuf> = ["CUDA_PATH", "CUDA_HOME", "CUDA_ROOT"]
        .iter()
        .filter_map(std::env::var_os)
        .map(PathBuf::from)
        .collect();
    let mut installed: Vec<PathBuf> = entries(Path::new("/usr/local"))
        .into_iter()
        .filter(|path| path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("cuda")))
        .collect();
    installed.reverse(); // the newest of cuda-12.8, cuda-13.0 ... first
    roots.extend(installed);
    roots.push(PathBuf::from("/opt/cuda"));
    let mut folders = Vec::new();
    for root in roots {
        for lib in ["lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"] {
            folders.push(root.join(lib));
        }
    }
    for system in [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/lib/wsl/lib",
        "/usr/local/nvidia/lib64",
    ] {
        folders.push(PathBuf::from(system));
    }
    existing(folders)
}

/// `lib` folders of the `nvidia` packages of the active Python, asked for once.
fn python_folders() -> Vec<PathBuf> {
    static FOLDERS: OnceLock<Vec<PathBuf>> = OnceLock::new();
    FOLDERS.get_or_init(|| nvidia_packages(&python_site_packages())).clone()
}

fn python_site_packages() -> Vec<PathBuf> {
    let mut sites = Vec::new();
    for root in ["VIRTUAL_ENV", "CONDA_PREFIX"].iter().filter_map(std::env::var_os) {
        for python in entries(&Path::new(&root).join("lib")) {
            sites.push(python.join("site-packages"));
        }
    }
    let question =
        "import site, sys; print('\\n'.join(p for p in sys.path + [site.getusersitepackages()] if p))";
    for python in ["python3", "python"] {
        let answer =
            Command::new(python).args(["-c", question]).stdin(Stdio::null()).stderr(Stdio::null()).output();
        if let Ok(answer) = answer
            && answer.status.success()
        {
            sites.extend(String::from_utf8_lossy(&answer.stdout).lines().map(PathBuf::from));
            break;
        }
    }
    existing(sites)
}

/// Folders of shared libraries below `site-packages/nvidia`: `cudnn/lib`, `cu13/lib`, `cuda_nvrtc/lib` ...
fn nvidia_packages(sites: &[PathBuf]) -> Vec<PathBuf> {
    let packages = sites.iter().flat_map(|site| entries(&site.join("nvidia")));
    existing(packages.map(|package| package.join("lib")).collect())
}

/// The entries of a folder in order of their names; none where it cannot be read.
fn entries(folder: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut paths: Vec<PathBuf> = entries.filter_map(|entry| entry.ok().map(|entry| entry.path())).collect();
    paths.sort();
    paths
}

/// Those of the folders that exist, each once.
fn existing(folders: Vec<PathBuf>) -> Vec<PathBuf> {
    let mut kept: Vec<PathBuf> = Vec::new();
    for folder in folders {
        if folder.is_dir() && !kept.contains(&folder) {
            kept.push(folder);
        }
    }
    kept
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_of_a_python_environment_are_found() {
        let folder = tempfile::tempdir().unwrap();
        for package in ["cudnn", "cu13", "not_a_library"] {
            std::fs::create_dir_all(folder.path().join("nvidia").join(package)).unwrap();
        }
        for package in ["cudnn", "cu13"] {
            std::fs::create_dir(folder.path().join("nvidia").join(package).join("lib")).unwrap();
        }
        let found = nvidia_packages(&[folder.path().to_owned(), PathBuf::from("/does/not/exist")]);
        let names: Vec<_> =
            found.iter().map(|path| path.strip_prefix(folder.path()).unwrap().to_owned()).collect();
        assert_eq!(names, [PathBuf::from("nvidia/cu13/lib"), PathBuf::from("nvidia/cudnn/lib")]);
    }

    #[test]
    fn a_missing_library_says_how_to_get_it() {
        let missing = Missing {
            wanted: Wanted::Cudnn,
            file_names: vec!["libcudnn.so.9".into()],
            places: vec!["the loader's path".into(), "/usr/local/cuda/lib64".into()],
            failures: Vec::new(),
        };
        let text = Error::MissingLibrary(Box::new(missing)).to_string();
        assert!(text.contains("libcudnn.so.9") && text.contains("/usr/local/cuda/lib64"), "{text}");
        assert!(text.contains("pip install nvidia-cudnn-cu13"), "{text}");
    }
}
