//! The kernels compile wherever NVRTC is; what they compute is checked where there is a device.

use std::sync::Arc;

use gpu::{Architecture, Compiler, KernelSource};
use scene::LatentRanges;

use super::{Object, Renderer, Shot};
use crate::settings::Settings;
use crate::shared::{Field, Layout, declarations};
use crate::{PreparedMesh, Quality};

#[test]
fn the_compiler_refuses_a_struct_that_differs_from_the_host() {
    let Some(compiler) = Compiler::for_tests() else { return };
    let compile = |bytes: usize, offset: usize| {
        let word = Field { name: "word", offset: 0, bytes: 4, c_type: "unsigned int", count: None };
        let pair = Field { name: "pair", offset, bytes: 8, c_type: "float", count: Some(2) };
        let fields = Box::leak(Box::new([word, pair]));
        let text = declarations(&[Layout { name: "Probe", bytes, fields }]);
        let source = KernelSource { name: "probe.cu", prelude: "", text: text.leak(), defines: vec![] };
        compiler.compile(&source, Architecture { major: 9, minor: 0 }).map_err(|error| error.to_string())
    };
    assert!(compile(12, 4).is_ok());
    assert!(compile(12, 8).unwrap_err().contains("place of Probe::pair"));
    assert!(compile(16, 4).unwrap_err().contains("size of Probe"));
}

#[test]
fn kernels_compile_for_every_supported_architecture() {
    Compiler::check_for_tests(&super::kernel_source(&Settings::new(Quality::Fast)));
}

/// A device, where there is one.
fn context() -> Option<gpu::Context> {
    gpu::Context::new(0).map_err(|error| eprintln!("skipped: {error}")).ok()
}

#[test]
fn the_device_makes_the_images_of_the_cpu() {
    let Some(context) = context() else { return };
    let size = 64;
    for quality in Quality::ALL {
        let mut renderer = Renderer::new(&context, quality).unwrap();
        let mut shots = vec![Shot { object: None, latents: LatentRanges::BENCH_T.sample(5, "empty", 0) }];
        let mut expected = vec![crate::render(None, &shots[0].latents, size, quality)];
        for label in [0, 7, 21, 40] {
            let mesh = PreparedMesh::new(&procedural::build(3, label, 0));
            let object = Arc::new(Object::new(&mesh));
            for view in 0..2 {
                let latents = LatentRanges::BENCH_T.sample(5, &format!("{label}"), view);
                expected.push(crate::render(Some(&mesh), &latents, size, quality));
                shots.push(Shot { object: Some(object.clone()), latents });
            }
        }
        let images = renderer.render_to_host(&shots, size).unwrap();
        for (index, (ours, cpu)) in images.chunks(Renderer::image_bytes(size)).zip(&expected).enumerate() {
            let psnr = crate::psnr(ours, &cpu.pixels);
            println!("{quality} view {index}: {psnr:.1} dB");
            assert!(psnr >= 45.0, "{quality}, view {index}: {psnr:.1} dB");
        }
        // Neither the batch nor the objects that come and go change an image.
        let mut small = Renderer::with_memory(&context, quality, 3 << 20, 1).unwrap();
        for _ in 0..2 {
            assert!(small.render_to_host(&shots, size).unwrap() == images);
        }
    }
}

#[test]
fn an_object_for_the_device_alone_is_the_same() {
    let many: Vec<scene::Mesh> = vec![
        procedural::build(1, 3, 0),
        procedural::build(1, 40, 2),
        crate::simplify::tests::bumpy_sphere(60),
    ];
    for mesh in &many {
        let [whole, alone] = [Object::new(&PreparedMesh::new(mesh)), Object::of(mesh)];
        assert!(!alone.is_empty() && whole.bytes == alone.bytes);
    }
}
