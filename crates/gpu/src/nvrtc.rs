//! Compiling kernels at run time with NVRTC, straight to machine code of one architecture.

use std::ffi::{CString, c_char, c_int};
use std::fmt;
use std::sync::OnceLock;

use crate::driver::{Handle, functions};
use crate::kernel_cache::KernelCache;
use crate::libraries::{self, Wanted};
use crate::{Error, Result};

/// What a device can execute: its compute capability.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, serde::Serialize)]
pub struct Architecture {
    /// Before the point.
    pub major: u32,
    /// After the point.
    pub minor: u32,
}

impl fmt::Display for Architecture {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "sm_{}{}", self.major, self.minor)
    }
}

/// CUDA C++ to be compiled. Needs no headers: what several kernels share is the text `prelude`, put before them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KernelSource {
    /// Name of the file, for messages.
    pub name: &'static str,
    /// Text put before the source.
    pub prelude: &'static str,
    /// The source.
    pub text: &'static str,
    /// Macros, as `NAME=VALUE`.
    pub defines: Vec<String>,
}

impl KernelSource {
    /// What tells it from other sources within one program.
    pub(crate) fn key(&self) -> String {
        format!("{} {}", self.name, self.defines.join(" "))
    }

    fn full_text(&self) -> String {
        format!("{}\n#line 1 \"{}\"\n{}", self.prelude, self.name, self.text)
    }
}

functions! {
    /// NVRTC.
    Nvrtc {
        version = "nvrtcVersion": fn(*mut c_int, *mut c_int) -> c_int;
        create = "nvrtcCreateProgram": fn(
            *mut Handle, *const c_char, *const c_char, c_int, *const *const c_char, *const *const c_char
        ) -> c_int;
        destroy = "nvrtcDestroyProgram": fn(*mut Handle) -> c_int;
        compile = "nvrtcCompileProgram": fn(Handle, c_int, *const *const c_char) -> c_int;
        log_size = "nvrtcGetProgramLogSize": fn(Handle, *mut usize) -> c_int;
        log = "nvrtcGetProgramLog": fn(Handle, *mut c_char) -> c_int;
        cubin_size = "nvrtcGetCUBINSize": fn(Handle, *mut usize) -> c_int;
        cubin = "nvrtcGetCUBIN": fn(Handle, *mut c_char) -> c_int;
        architecture_count = "nvrtcGetNumSupportedArchs": fn(*mut c_int) -> c_int;
        architectures = "nvrtcGetSupportedArchs": fn(*mut c_int) -> c_int;
    }
}

/// NVRTC's status for errors in the source.
const COMPILATION: c_int = 6;

/// The compiler.
#[derive(Debug)]
pub struct Compiler {
    nvrtc: Nvrtc,
    version: (u32, u32),
    cache: Option<KernelCache>,
}

impl Compiler {
    /// The compiler, loaded on the first call; needs no GPU.
    pub fn get() -> Result<&'static Self> {
        static COMPILER: OnceLock<Result<Compiler>> = OnceLock::new();
        COMPILER.get_or_init(Self::load).as_ref().map_err(Clone::clone)
    }

    /// The compiler for a test that kernels compile: nothing where it is not installed, unless the environment sets
    /// EQUICAPS_REQUIRE_NVRTC, as CI does.
    pub fn for_tests() -> Option<&'static Self> {
        Self::get()
            .inspect_err(|error| {
                assert!(std::env::var_os("EQUICAPS_REQUIRE_NVRTC").is_none(), "{error}");
                eprintln!("skipped: no kernel was compiled, as {error}");
            })
            .ok()
    }

    /// Fails a test whose kernels do not compile for every kind of device that is supported.
    pub fn check_for_tests(source: &KernelSource) {
        let Some(compiler) = Self::for_tests() else { return };
        for (major, minor) in [(8, 0), (9, 0)] {
            match compiler.compile(source, Architecture { major, minor }) {
                Ok(image) => assert!(image.starts_with(b"\x7fELF"), "for {major}.{minor}: not a program"),
                Err(error) => panic!("for {major}.{minor}: {error}"),
            }
        }
    }

    fn load() -> Result<Self> {
        let nvrtc = Nvrtc::from_library(libraries::load(Wanted::Nvrtc)?)?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: writes two numbers.
        check("nvrtcVersion", unsafe { (nvrtc.version)(&mut major, &mut minor) })?;
        let version = (u32::try_from(major).unwrap_or(0), u32::try_from(minor).unwrap_or(0));
        Ok(Self { nvrtc, version, cache: KernelCache::of_user() })
    }

    /// Its version, major and minor.
    pub fn version(&self) -> (u32, u32) {
        self.version
    }

    /// Compiles `source`, or reads what was compiled before.
    pub fn compile_cached(&self, source: &KernelSource, architecture: Architecture) -> Result<Vec<u8>> {
        let Some(cache) = &self.cache else { return self.compile(source, architecture) };
        let identity = format!(
            "nvrtc {}.{}\n{architecture}\n{}\n{}",
            self.version.0,
            self.version.1,
            source.defines.join("\n"),
            source.full_text()
        );
        if let Some(image) = cache.get(&identity) {
            return Ok(image);
        }
        let image = self.compile(source, architecture)?;
        cache.put(&identity, &image);
        Ok(image)
    }

    /// Compiles `source` to machine code.
    pub fn compile(&self, source: &KernelSource, architecture: Architecture) -> Result<Vec<u8>> {
        let target = self.target(architecture)?;
        let text = c_string(&source.full_text());
        let name = c_string(source.name);
        let mut options = vec![c_string(&format!("--gpu-architecture={target}")), c_string("--std=c++17")];
        options.extend(source.defines.iter().map(|define| c_string(&format!("-D{define}"))));
        let options: Vec<*const c_char> = options.iter().map(|option| option.as_ptr()).collect();
        let mut program = std::ptr::null_mut();
        // SAFETY: all strings live until the end of this function; the program is destroyed below.
        unsafe {
            check(
                "nvrtcCreateProgram",
                (self.nvrtc.create)(
                    &mut program,
                    text.as_ptr(),
                    name.as_ptr(),
                    0,
                    std::ptr::null(),
                    std::ptr::null(),
                ),
            )?;
        }
        let result = self.compile_program(program, &options, source, target);
        // SAFETY: the program is alive.
        unsafe { (self.nvrtc.destroy)(&mut program) };
        result
    }

    fn compile_program(
        &self,
        program: Handle,
        options: &[*const c_char],
        source: &KernelSource,
        target: Architecture,
    ) -> Result<Vec<u8>> {
        // SAFETY: the program and the options are alive; sizes are asked for before writing.
        unsafe {
            let count = c_int::try_from(options.len()).unwrap_or(0);
            let status = (self.nvrtc.compile)(program, count, options.as_ptr());
            if status == COMPILATION {
                let mut size = 0;
                check("nvrtcGetProgramLogSize", (self.nvrtc.log_size)(program, &mut size))?;
                let mut log = vec![0u8; size];
                check("nvrtcGetProgramLog", (self.nvrtc.log)(program, log.as_mut_ptr().cast()))?;
                let log = String::from_utf8_lossy(&log).trim_end_matches('\0').to_owned();
                return Err(Error::Compile { kernel: source.key(), architecture: target.to_string(), log });
            }
            check("nvrtcCompileProgram", status)?;
            let mut size = 0;
            check("nvrtcGetCUBINSize", (self.nvrtc.cubin_size)(program, &mut size))?;
            let mut image = vec![0u8; size];
            check("nvrtcGetCUBIN", (self.nvrtc.cubin)(program, image.as_mut_ptr().cast()))?;
            Ok(image)
        }
    }

    /// The newest architecture that the compiler knows and the device can execute: code for 8.0 runs on 8.9, and so on
    /// within one major number.
    fn target(&self, device: Architecture) -> Result<Architecture> {
        let mut count = 0;
        // SAFETY: writes one number.
        check("nvrtcGetNumSupportedArchs", unsafe { (self.nvrtc.architecture_count)(&mut count) })?;
        let mut known = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: writes `count` numbers.
        check("nvrtcGetSupportedArchs", unsafe { (self.nvrtc.architectures)(known.as_mut_ptr()) })?;
        known
            .into_iter()
            .filter_map(|number| u32::try_from(number).ok())
            .map(|number| Architecture { major: number / 10, minor: number % 10 })
            .filter(|known| known.major == device.major && known.minor <= device.minor)
            .max()
            .ok_or_else(|| Error::Compile {
                kernel: "(any)".to_owned(),
                architecture: device.to_string(),
                log: format!(
                    "NVRTC {}.{} does not know this architecture; install a newer one",
                    self.version.0, self.version.1
                ),
            })
    }
}

fn check(call: &'static str, status: c_int) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(Error::Nvrtc { call, status }) }
}

/// Sources and options contain no zero bytes; one that does is cut there.
fn c_string(text: &str) -> CString {
    let end = text.find('\0').unwrap_or(text.len());
    CString::new(&text[..end]).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(text: &'static str) -> KernelSource {
        KernelSource { name: "test.cu", prelude: "typedef float T;", text, defines: vec!["TWO=2".to_owned()] }
    }

    #[test]
    fn kernels_compile_and_mistakes_are_reported_with_their_line() {
        let compiler = match Compiler::get() {
            Ok(compiler) => compiler,
            Err(error) => {
                eprintln!("skipped: {error}");
                return;
            }
        };
        let architecture = Architecture { major: 8, minor: 0 };
        let good = source("extern \"C\" __global__ void twice(T* x) { x[threadIdx.x] *= TWO; }");
        let image = compiler.compile(&good, architecture).unwrap();
        assert_eq!(&image[..4], b"\x7fELF");
        let bad = source("\n\nextern \"C\" __global__ void wrong(T* x) { x[0] = y; }");
        let message = compiler.compile(&bad, architecture).unwrap_err().to_string();
        assert!(message.contains("test.cu(3)") && message.contains("\"y\""), "{message}");
    }

    #[test]
    fn an_unknown_architecture_is_refused() {
        let Ok(compiler) = Compiler::get() else { return };
        let message =
            compiler.compile(&source(""), Architecture { major: 99, minor: 0 }).unwrap_err().to_string();
        assert!(message.contains("sm_990"), "{message}");
    }
}
