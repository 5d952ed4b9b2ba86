//! Matrix products by cuBLASLt: row-major, batched, 32-bit accumulation, the same bits every time.
//!
//! Partial sums of a split inner dimension are added by a second kernel in a fixed order, never in place.

use std::collections::HashMap;
use std::ffi::{c_int, c_void};
use std::sync::{Mutex, PoisonError};

use crate::driver::{Handle, functions};
use crate::libraries::{self, Wanted};
use crate::{Buffer, Context, Error, Precision, Result};

const WORKSPACE_BYTES: usize = 32 << 20;

/// `C = alpha op(A) op(B) + beta C`, row-major, for every member of a batch. `op(A)` is (rows, inner), `op(B)`
/// (inner, columns), `C` (rows, columns).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatmulShape {
    /// Rows of `C`.
    pub rows: usize,
    /// Columns of `C`.
    pub columns: usize,
    /// Length of the sums.
    pub inner: usize,
    /// `A` is stored as (inner, rows).
    pub transpose_a: bool,
    /// `B` is stored as (columns, inner).
    pub transpose_b: bool,
    /// Number of products.
    pub batch: usize,
    /// Numbers between members of the batch, of `A`, `B` and `C`; 0: the same for all.
    pub batch_strides: [usize; 3],
    /// Numbers between rows as stored, of `A`, `B` and `C`; 0: packed.
    pub row_strides: [usize; 3],
    /// Storage of `A` and `B`.
    pub precision: Precision,
    /// Storage of `C`.
    pub output: Precision,
}

impl MatmulShape {
    /// A single product of packed matrices.
    pub fn new(rows: usize, columns: usize, inner: usize, precision: Precision, output: Precision) -> Self {
        Self {
            rows,
            columns,
            inner,
            transpose_a: false,
            transpose_b: false,
            batch: 1,
            batch_strides: [0; 3],
            row_strides: [0; 3],
            precision,
            output,
        }
    }

    /// With `A` and `B` stored transposed or not.
    pub fn transposed(self, transpose_a: bool, transpose_b: bool) -> Self {
        Self { transpose_a, transpose_b, ..self }
    }

    /// Rows and columns as stored, of `A`, `B` and `C`.
    fn stored(&self) -> [(usize, usize); 3] {
        let turn = |turned: bool, size: (usize, usize)| if turned { (size.1, size.0) } else { size };
        [
            turn(self.transpose_a, (self.rows, self.inner)),
            turn(self.transpose_b, (self.inner, self.columns)),
            (self.rows, self.columns),
        ]
    }
}

/// What cuBLASLt proposes (`cublasLtMatmulHeuristicResult_t`).
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Proposal {
    algorithm: [u64; 8],
    workspace_bytes: usize,
    status: c_int,
    waves: f32,
    reserved: [c_int; 4],
}

functions! {
    /// cuBLASLt.
    CublasLt {
        create = "cublasLtCreate": fn(*mut Handle) -> c_int;
        destroy = "cublasLtDestroy": fn(Handle) -> c_int;
        version = "cublasLtGetVersion": fn() -> usize;
        create_operation = "cublasLtMatmulDescCreate": fn(*mut Handle, c_int, c_int) -> c_int;
        set_operation = "cublasLtMatmulDescSetAttribute": fn(Handle, c_int, *const c_void, usize) -> c_int;
        destroy_operation = "cublasLtMatmulDescDestroy": fn(Handle) -> c_int;
        create_layout = "cublasLtMatrixLayoutCreate": fn(*mut Handle, c_int, u64, u64, i64) -> c_int;
        set_layout = "cublasLtMatrixLayoutSetAttribute": fn(Handle, c_int, *const c_void, usize) -> c_int;
        destroy_layout = "cublasLtMatrixLayoutDestroy": fn(Handle) -> c_int;
        create_preference = "cublasLtMatmulPreferenceCreate": fn(*mut Handle) -> c_int;
        set_preference = "cublasLtMatmulPreferenceSetAttribute": fn(Handle, c_int, *const c_void, usize) -> c_int;
        destroy_preference = "cublasLtMatmulPreferenceDestroy": fn(Handle) -> c_int;
        propose = "cublasLtMatmulAlgoGetHeuristic": fn(
            Handle, Handle, Handle, Handle, Handle, Handle, Handle, c_int, *mut Proposal, *mut c_int
        ) -> c_int;
        multiply = "cublasLtMatmul": fn(
            Handle, Handle, *const c_void, u64, Handle, u64, Handle, *const c_void, u64, Handle, u64, Handle,
            *const [u64; 8], u64, usize, Handle
        ) -> c_int;
    }
}

const REAL_F32: c_int = 0;
const REAL_F16: c_int = 2;
const REAL_BF16: c_int = 14;
/// 32-bit arithmetic without TF32.
const COMPUTE_F32: c_int = 68;
/// Split sums in a workspace of the compute or output type: not in place (1), whose order is not fixed.
const REDUCTION_SCHEMES: u32 = 2 | 4;

/// One product, planned.
#[derive(Debug)]
struct Plan {
    operation: Handle,
    layouts: [Handle; 3],
    algorithm: [u64; 8],
    workspace_bytes: usize,
}

/// cuBLASLt on one device.
#[derive(Debug)]
pub struct Matmuls {
    functions: CublasLt,
    state: Mutex<State>,
}

#[derive(Debug)]
struct State {
    handle: Handle,
    plans: HashMap<MatmulShape, Plan>,
}

// SAFETY: the handles are used only with the lock held.
unsafe impl Send for State {}

fn check(call: &'static str, status: c_int) -> Result<()> {
    if status == 0 { Ok(()) } else { Err(Error::Blas { call, status, detail: String::new() }) }
}

impl Matmuls {
    pub(crate) fn new(context: &Context) -> Result<Self> {
        let functions = CublasLt::from_library(libraries::load(Wanted::CublasLt)?)?;
        context.bind()?;
        let mut handle = std::ptr::null_mut();
        // SAFETY: writes one handle.
        check("cublasLtCreate", unsafe { (functions.create)(&mut handle) })?;
        Ok(Self { functions, state: Mutex::new(State { handle, plans: HashMap::new() }) })
    }

    /// Computes `C = alpha op(A) op(B) + beta C`.
    ///
    /// # Safety
    /// The addresses must be valid for the shape's matrices.
    pub unsafe fn multiply(
        &self,
        context: &Context,
        shape: &MatmulShape,
        (alpha, beta): (f32, f32),
        a: u64,
        b: u64,
        c: u64,
    ) -> Result<()> {
        context.bind()?;
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if !state.plans.contains_key(shape) {
            let plan = self.plan(state.handle, shape)?;
            state.plans.insert(*shape, plan);
        }
        let Some(plan) = state.plans.get(shape) else { return Ok(()) };
        let workspace =
            if plan.workspace_bytes > 0 { Some(context.allocate(plan.workspace_bytes)?) } else { None };
        // Row-major C = A B is column-major C^T = B^T A^T: the operands change places.
        // SAFETY: the caller vouches for the addresses; plan, algorithm and workspace belong together.
        let status = unsafe {
            (self.functions.multiply)(
                state.handle,
                plan.operation,
                std::ptr::from_ref(&alpha).cast(),
                b,
                plan.layouts[1],
                a,
                plan.layouts[0],
                std::ptr::from_ref(&beta).cast(),
                c,
                plan.layouts[2],
                c,
                plan.layouts[2],
                &plan.algorithm,
                workspace.as_ref().map_or(0, Buffer::address),
                plan.workspace_bytes,
                context.stream(),
            )
        };
        if status == 0 {
            Ok(())
        } else {
            Err(Error::Blas { call: "cublasLtMatmul", status, detail: format!(" for {shape:?}") })
        }
    }

    fn plan(&self, handle: Handle, shape: &MatmulShape) -> Result<Plan> {
        let functions = &self.functions;
        let data_type = |precision: Precision| match precision {
            Precision::F32 => REAL_F32,
            Precision::F16 => REAL_F16,
            Precision::Bf16 => REAL_BF16,
        };
        let null = std::ptr::null_mut();
        let mut plan = Plan { operation: null, layouts: [null; 3], algorithm: [0; 8], workspace_bytes: 0 };
        let mut preference = null;
        let types = [data_type(shape.precision), data_type(shape.precision), data_type(shape.output)];
        let mut proposal = Proposal::default();
        let mut found = 0;
        // SAFETY: each call writes one handle, or reads one number of the size given.
        unsafe {
            let create = (functions.create_operation)(&mut plan.operation, COMPUTE_F32, REAL_F32);
            check("cublasLtMatmulDescCreate", create)?;
            // cuBLASLt's A is our B.
            for (attribute, transposed) in [(3, shape.transpose_b), (4, shape.transpose_a)] {
                let value = c_int::from(transposed);
                let set = (functions.set_operation)(
                    plan.operation,
                    attribute,
                    std::ptr::from_ref(&value).cast(),
                    4,
                );
                check("cublasLtMatmulDescSetAttribute", set)?;
            }
            for (index, (rows, columns)) in shape.stored().into_iter().enumerate() {
                let stride = if shape.row_strides[index] == 0 { columns } else { shape.row_strides[index] };
                let layout = &mut plan.layouts[index];
                let stride = i64::try_from(stride).unwrap_or(i64::MAX);
                let create =
                    (functions.create_layout)(layout, types[index], columns as u64, rows as u64, stride);
                check("cublasLtMatrixLayoutCreate", create)?;
                if shape.batch > 1 {
                    let count = c_int::try_from(shape.batch).unwrap_or(c_int::MAX);
                    let offset = i64::try_from(shape.batch_strides[index]).unwrap_or(i64::MAX);
                    let set = (functions.set_layout)(*layout, 5, std::ptr::from_ref(&count).cast(), 4);
                    check("cublasLtMatrixLayoutSetAttribute", set)?;
                    let set = (functions.set_layout)(*layout, 6, std::ptr::from_ref(&offset).cast(), 8);
                    check("cublasLtMatrixLayoutSetAttribute", set)?;
                }
            }
            check("cublasLtMatmulPreferenceCreate", (functions.create_preference)(&mut preference))?;
            let limit: u64 = WORKSPACE_BYTES as u64;
            let set = (functions.set_preference)(preference, 1, std::ptr::from_ref(&limit).cast(), 8);
            check("cublasLtMatmulPreferenceSetAttribute", set)?;
            let set =
                (functions.set_preference)(preference, 3, std::ptr::from_ref(&REDUCTION_SCHEMES).cast(), 4);
            check("cublasLtMatmulPreferenceSetAttribute", set)?;
            let [a, b, c] = plan.layouts;
            let status = (functions.propose)(
                handle,
                plan.operation,
                b,
                a,
                c,
                c,
                preference,
                1,
                &mut proposal,
                &mut found,
            );
            (functions.destroy_preference)(preference);
            if status != 0 || found == 0 || proposal.status != 0 {
                let detail = format!(": no way to compute {shape:?}");
                return Err(Error::Blas { call: "cublasLtMatmulAlgoGetHeuristic", status, detail });
            }
        }
        plan.algorithm = proposal.algorithm;
        plan.workspace_bytes = proposal.workspace_bytes;
        Ok(plan)
    }
}

/// cuBLASLt's version, for example 130002.
pub(crate) fn library_version() -> Option<usize> {
    let functions = CublasLt::from_library(libraries::load(Wanted::CublasLt).ok()?).ok()?;
    // SAFETY: takes nothing.
    Some(unsafe { (functions.version)() })
}

impl Drop for Matmuls {
    fn drop(&mut self) {
        let state = self.state.get_mut().unwrap_or_else(PoisonError::into_inner);
        // SAFETY: the handles are ours and not used again.
        unsafe {
            for plan in state.plans.values() {
                for layout in plan.layouts {
                    (self.functions.destroy_layout)(layout);
                }
                (self.functions.destroy_operation)(plan.operation);
            }
            (self.functions.destroy)(state.handle);
        }
    }
}
