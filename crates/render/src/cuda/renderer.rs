//! Batches of views through the kernels.

mod plan;

use std::sync::Arc;

use gpu::{Argument, Buffer, Context, Error, Kernel, Launch, Result};
use scene::Latents;

use super::cache::Cache;
use super::layout::{BatchData, Both, Derived, Sample, ViewData};
use super::object::Object;
use super::tables::Tables;
use crate::settings::Settings;
use crate::{PreparedMesh, Quality};
use plan::Planned;

/// Threads of a block of the kernels that trace.
pub(super) const THREADS: usize = 128;
/// Threads of a block of the kernels that have one block a view.
const VIEW_THREADS: usize = 512;
/// Threads of a view that share the nodes of its floor, at most.
const MOST_THREADS: usize = 8192;
/// Threads of all views that share their camera rays, and their points, about: views and the number of their points
/// differ, and blocks without work cost time.
const RAY_THREADS: usize = 16 << 20;
const POINT_THREADS: usize = 4 << 20;
/// Views rendered together at most.
const MOST_VIEWS: usize = 1024;
/// Bytes a slot of a camera ray takes in all buffers.
const SLOT_BYTES: usize = 4 + size_of::<Sample>() + 4 + 32 + 16;
/// Nodes of the coarse floor.
const COARSE_NODES: usize = 49 * 49;

/// One image to be made; `None` is the empty scene.
#[derive(Clone, Debug)]
pub struct Shot {
    /// What is seen.
    pub object: Option<Arc<Object>>,
    /// How it is seen.
    pub latents: Latents,
}

/// Renders batches of views on one device.
#[derive(Debug)]
pub struct Renderer {
    context: Context,
    settings: Settings,
    tables: Tables,
    kernels: Kernels,
    cache: Cache,
    empty: Arc<Object>,
    scratch_bytes: usize,
    rays: Buffer,
}

macro_rules! kernels {
    ($($name:ident),* $(,)?) => {
        #[derive(Debug)]
        struct Kernels { $($name: Kernel,)* }

        impl Kernels {
            fn load(context: &Context, settings: &Settings) -> Result<Self> {
                let source = super::kernel_source(settings);
                Ok(Self { $($name: context.kernel(&source, stringify!($name))?,)* })
            }
        }
    };
}

kernels! {
    prepare, select_irradiance, select_shadow, trace_irradiance, trace_shadow, fill_coarse_floor, trace_camera,
    place_points, number_points, shade_sun, shade_spot, shade_indirect, fill_floor_lattice, light_samples, write_pixels,
}

impl Renderer {
    /// A renderer of one preset. Compiles the kernels on the first use (seconds; kept on disk afterwards). A third of
    /// the memory that is free now may be used for objects, a sixth, at most 24 GB, for scratch: the larger the batches,
    /// the less the device waits for their ends.
    pub fn new(context: &Context, quality: Quality) -> Result<Self> {
        let free = context.free_bytes()?;
        Self::with_memory(context, quality, free / 3, (free / 6).min(24 << 30))
    }

    /// A renderer that keeps at most `cache_bytes` of objects on the device and uses about `scratch_bytes` more.
    pub fn with_memory(
        context: &Context,
        quality: Quality,
        cache_bytes: usize,
        scratch_bytes: usize,
    ) -> Result<Self> {
        let settings = Settings::new(quality);
        Ok(Self {
            context: context.clone(),
            tables: Tables::new(context, &settings)?,
            kernels: Kernels::load(context, &settings)?,
            cache: Cache::new(context, cache_bytes)?,
            empty: Arc::new(Object::new(&PreparedMesh::default())),
            scratch_bytes,
            rays: context.allocate_zeroed(8)?,
            settings,
        })
    }

    /// Bytes of an image of `size` x `size` pixels.
    pub fn image_bytes(size: u32) -> usize {
        3 * size as usize * size as usize
    }

    /// The device.
    pub fn context(&self) -> &Context {
        &self.context
    }

    /// Renders `shots`, `size` x `size` pixels each, into the device memory `target`, one image after the other. The
    /// work is issued on the context's stream and may not be done when this returns. Where device memory does not
    /// suffice for the whole batch, it is rendered in parts.
    pub fn render(&mut self, shots: &[Shot], size: u32, target: gpu::View) -> Result<()> {
        // Checks the size, too.
        let target = target.part(0, shots.len() * Self::image_bytes(size))?;
        let planned = Planned::all(shots, &self.empty, &self.settings, size);
        let mut rest = planned.as_slice();
        while !rest.is_empty() {
            let count = self.part(rest, size);
            let (now, later) = rest.split_at(count);
            self.render_part(now, size, target.address)?;
            rest = later;
        }
        Ok(())
    }

    /// [`Self::render`], and copies the images to the host: those of `shots` one after the other.
    pub fn render_to_host(&mut self, shots: &[Shot], size: u32) -> Result<Vec<u8>> {
        let mut pixels = vec![0; shots.len() * Self::image_bytes(size)];
        self.render_into(shots, size, &mut pixels)?;
        Ok(pixels)
    }

    /// [`Self::render_to_host`] into memory that is there already.
    pub fn render_into(&mut self, shots: &[Shot], size: u32, pixels: &mut [u8]) -> Result<()> {
        let target = self.context.allocate(shots.len() * Self::image_bytes(size))?;
        self.render(shots, size, target.view())?;
        // SAFETY: the buffer is ours.
        unsafe { self.context.read(target.view(), pixels) }
    }

    /// Rays traced so far; waits for the device.
    pub fn rays(&self) -> Result<u64> {
        let mut bytes = [0; 8];
        // SAFETY: the buffer is ours.
        unsafe { self.context.read(self.rays.view(), &mut bytes) }?;
        Ok(u64::from_ne_bytes(bytes))
    }

    /// Lets go of all objects on the device.
    pub fn clear_cache(&mut self) -> Result<()> {
        self.cache.clear()
    }

    /// Whether an object had to leave device memory for another one so far.
    pub fn has_evicted(&self) -> bool {
        self.cache.has_evicted()
    }

    /// Renders views together; where device memory turns out not to suffice, with an empty cache, and then in halves.
    fn render_part(&mut self, views: &[Planned], size: u32, images: u64) -> Result<()> {
        match self.issue(views, size, images) {
            Err(Error::OutOfMemory { .. }) => self.cache.clear()?,
            other => return other,
        }
        if views.len() == 1 {
            return self.issue(views, size, images);
        }
        let (first, second) = views.split_at(views.len() / 2);
        self.render_part(first, size, images)?;
        self.render_part(second, size, images)
    }

    /// Issues the work of views that fit together.
    fn issue(&mut self, views: &[Planned], size: u32, images: u64) -> Result<()> {
        let context = self.context.clone();
        let s = self.settings;
        self.cache.begin();
        let mut data = Vec::with_capacity(views.len());
        let (mut slots, mut cells) = (0, 0);
        for view in views {
            let mut view_data = view.data;
            let is_empty = view_data.is_empty;
            if is_empty == 0 {
                view.object.place(self.cache.address(&view.object)?, &mut view_data);
            }
            view_data.is_empty = is_empty;
            view_data.sample_start = slots as u64;
            view_data.cell_start = cells as u64;
            slots += view.slots;
            cells += view.cells;
            data.push(view_data);
        }
        self.cache.release()?;
        let count = views.len();
        let square = |n: usize| (n + 1) * (n + 1);
        let allocate = |bytes: usize| context.allocate(bytes.max(16));
        let view_buffer = context.upload(bytemuck::cast_slice(&data))?;
        let derived = allocate(count * size_of::<Derived>())?;
        let directions = allocate(count * self.direction_count() * size_of::<Both>())?;
        let touched = allocate(count * s.shadow_cells * s.shadow_cells)?;
        let nodes = allocate(count * self.node_capacity() * 4)?;
        let irradiance = allocate(count * square(s.irradiance_cells) * 16)?;
        let shadow = allocate(count * square(s.shadow_cells) * 4)?;
        let open_floor = allocate(count * COARSE_NODES * 16)?;
        let coarse_floor = allocate(count * COARSE_NODES * 16)?;
        let floor_nodes = self.floor_nodes(size);
        let floor_lattice = allocate(count * floor_nodes * floor_nodes * 16)?;
        let own = allocate(slots * 4)?;
        let samples = allocate(slots * size_of::<Sample>())?;
        let cell_point = allocate(cells * 4)?;
        let cell_extras = allocate(cells * 4)?;
        let point_sample = allocate(slots * 4)?;
        let shades = allocate(slots * 32)?;
        let radiance = allocate(slots * 16)?;
        let mut batch = BatchData {
            views: view_buffer.address(),
            derived: derived.address(),
            directions: directions.address(),
            touched: touched.address(),
            nodes: nodes.address(),
            irradiance: irradiance.address(),
            shadow: shadow.address(),
            open_floor: open_floor.address(),
            coarse_floor: coarse_floor.address(),
            floor_lattice: floor_lattice.address(),
            own: own.address(),
            samples: samples.address(),
            cell_point: cell_point.address(),
            cell_extras: cell_extras.address(),
            point_sample: point_sample.address(),
            shades: shades.address(),
            radiance: radiance.address(),
            images,
            rays: self.rays.address(),
            view_count: count as i32,
            size: size as i32,
            supersampling: s.supersampling as i32,
            shading_step: s.shading_step as i32,
            floor_step: s.floor_step as i32,
            sun_count: s.sun_directions as i32,
            lamp_count: s.lamp_points as i32,
            sphere_count: s.gather_directions as i32,
            lobe_count: s.lobe_samples as i32,
            floor_sun_count: s.floor_sun_directions as i32,
            hemisphere_count: s.floor_gather_directions as i32,
            floor_lamp_count: s.floor_lamp_points as i32,
            direction_count: self.direction_count() as i32,
            irradiance_cells: s.irradiance_cells as i32,
            shadow_cells: s.shadow_cells as i32,
            node_capacity: self.node_capacity() as i32,
            floor_nodes: floor_nodes as i32,
            irradiance_tolerance: s.irradiance_tolerance,
            shadow_tolerance: s.shadow_tolerance,
            ..bytemuck::Zeroable::zeroed()
        };
        self.tables.place(&mut batch);
        let batch = context.upload(bytemuck::bytes_of(&batch))?;
        let most = |value: &dyn Fn(&ViewData) -> usize| data.iter().map(value).max().unwrap_or(0);
        let tiles =
            |width: i32, height: i32| (width as usize).div_ceil(8) * (height as usize).div_ceil(4) * 32;
        let run = |kernel: &Kernel, name: &str, launch: Launch, argument: usize| {
            let _scope = context.scope(|| name.to_owned(), 0.0, 0.0);
            // SAFETY: all kernels take the batch and one number; the buffers outlive the work, since they return to
            // the pool of the stream that it is issued on.
            unsafe { kernel.launch(launch, &[Argument::from(&batch), Argument::from(argument)]) }
        };
        let by_view = Launch::linear(count, VIEW_THREADS);
        let by_item = |items: usize| Launch::grid([items.div_ceil(THREADS), count, 1], THREADS);
        let k = &self.kernels;
        run(&k.prepare, "prepare", by_view, 0)?;
        run(&k.fill_coarse_floor, "floor", by_item(COARSE_NODES), 0)?;
        let levels = |cells: usize| (0..=(cells / 16).ilog2()).rev().map(|level| 1_usize << level);
        for step in levels(s.irradiance_cells) {
            run(&k.select_irradiance, "select nodes", by_view, step)?;
            let nodes = square(s.irradiance_cells / step);
            run(&k.trace_irradiance, "floor irradiance", by_item((4 * nodes).min(MOST_THREADS)), 0)?;
        }
        for step in levels(s.shadow_cells) {
            run(&k.select_shadow, "select nodes", by_view, step)?;
            let nodes = square(s.shadow_cells / step);
            run(&k.trace_shadow, "floor shadow", by_item((16 * nodes).min(MOST_THREADS)), 0)?;
        }
        run(&k.fill_coarse_floor, "floor", by_item(COARSE_NODES), 1)?;
        run(&k.fill_floor_lattice, "floor", by_item(floor_nodes * floor_nodes), 0)?;
        if slots > 0 {
            let all_cells = most(&|view| view.columns as usize * view.rows as usize);
            let rays = most(&|view| tiles(view.width, view.height)).min(RAY_THREADS.div_ceil(count));
            run(&k.trace_camera, "camera rays", by_item(rays), 0)?;
            run(&k.place_points, "place points", by_item(all_cells), 0)?;
            run(&k.number_points, "place points", by_view, 0)?;
            let points = all_cells.min(POINT_THREADS.div_ceil(count));
            run(&k.shade_sun, "shade sun", by_item(points), 0)?;
            run(&k.shade_spot, "shade spot", by_item(super::spot_group(&s) * points), 0)?;
            run(&k.shade_indirect, "shade indirect", by_item(points), 0)?;
            run(&k.light_samples, "light samples", by_item(rays), 0)?;
        }
        run(&k.write_pixels, "write pixels", by_item(size as usize * size as usize), 0)?;
        self.cache.end()
    }
}
