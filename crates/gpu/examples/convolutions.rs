//! Times cuDNN's convolutions for every layer of the published ResNet-18 at 256x256, forward and both gradients, with
//! deterministic algorithms only. `cargo run --release -p gpu --example convolutions [BATCH]`

use gpu::convolution::ConvolutionShape;
use gpu::matmul::MatmulShape;
use gpu::{Context, Precision, Result, Timer};

fn main() -> Result<()> {
    let batch = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1024);
    let context = Context::new(0)?;
    println!("{:?}", context.properties());
    let layers = [
        // (size, in, out, kernel, padding, stride, times used)
        (64, 64, 64, 3, 1, 1, 4),
        (64, 64, 128, 3, 1, 1, 1),
        (65, 128, 128, 3, 0, 2, 1),
        (32, 128, 128, 3, 1, 1, 2),
        (32, 128, 256, 3, 1, 1, 1),
        (33, 256, 256, 3, 0, 2, 1),
        (16, 256, 256, 3, 1, 1, 2),
        (16, 256, 512, 3, 1, 1, 1),
        (17, 512, 512, 3, 0, 2, 1),
        (8, 512, 512, 3, 1, 1, 2),
        (64, 64, 64, 1, 0, 1, 1),
        (64, 64, 128, 1, 0, 2, 1),
        (32, 128, 256, 1, 0, 2, 1),
        (16, 256, 512, 1, 0, 2, 1),
        (8, 512, 32, 3, 1, 1, 1),
        (8, 512, 288, 3, 1, 1, 1),
        (8, 512, 320, 3, 1, 1, 0),
    ];
    let mut total = 0.0;
    println!("layer | ms forward, data gradient, data gradient added, weight gradient | algorithms");
    for (size, channels_in, channels_out, kernel, padding, stride, times) in layers {
        let shape = ConvolutionShape {
            batch,
            height: size,
            width: size,
            channels_in,
            channels_out,
            kernel: [kernel; 2],
            padding: [padding; 2],
            stride: [stride; 2],
            precision: Precision::Bf16,
        };
        match time(&context, &shape) {
            Ok(milliseconds) => {
                total += f64::from(times) * (milliseconds[0] + milliseconds[1] + milliseconds[3]);
                println!("{shape} (x{times}) | {milliseconds:.3?}");
            }
            Err(error) => println!("{shape} | {error}"),
        }
    }
    println!("all together {total:.1} ms per {batch} images; {:?}", context.memory_use());
    for choice in context.convolutions()?.choices() {
        println!(
            "{} {:?}: algorithm {} math {} {:.3} ms",
            choice.shape, choice.pass, choice.algorithm, choice.math, choice.milliseconds
        );
    }
    for (channels_in, channels_out, size) in
        [(8, 8, 16), (8, 16, 17), (64, 36, 2), (64, 4, 2), (64, 5, 3), (3, 8, 64)]
    {
        for precision in [Precision::F32, Precision::Bf16] {
            let shape = ConvolutionShape {
                batch: 8,
                height: size,
                width: size,
                channels_in,
                channels_out,
                kernel: [3; 2],
                padding: [1; 2],
                stride: [1; 2],
                precision,
            };
            println!(
                "small {shape} {precision:?}: {:?}",
                time(&context, &shape).map_err(|error| error.to_string())
            );
        }
    }
    products(&context)
}

fn time(context: &Context, shape: &ConvolutionShape) -> Result<[f64; 4]> {
    let bytes = shape.precision.bytes();
    let [height, width] = shape.output_size();
    let x = context.allocate_zeroed(shape.batch * shape.height * shape.width * shape.channels_in * bytes)?;
    let w = context.allocate_zeroed(
        shape.channels_out * shape.kernel[0] * shape.kernel[1] * shape.channels_in * bytes,
    )?;
    let y = context.allocate_zeroed(shape.batch * height * width * shape.channels_out * bytes)?;
    // Numbers like 0.37: zeros run faster than real data.
    let pattern: Vec<u8> =
        (0..1 << 20).map(|i| if i % 2 == 0 { ((i * 37) >> 3) as u8 } else { 0x3e }).collect();
    for buffer in [&x, &w, &y] {
        for start in (0..buffer.bytes()).step_by(pattern.len()) {
            let part = buffer.view().part(start, pattern.len().min(buffer.bytes() - start))?;
            // SAFETY: the buffer is alive.
            unsafe { context.write(part, &pattern[..part.bytes])? };
        }
    }
    let convolutions = context.convolutions()?;
    let mut result = [0.0; 4];
    for (index, slot) in result.iter_mut().enumerate() {
        let run = || match index {
            0 => convolutions.forward(context, shape, x.view(), w.view(), y.view()),
            1 => convolutions.data_gradient(context, shape, w.view(), y.view(), x.view(), false),
            2 => convolutions.data_gradient(context, shape, w.view(), y.view(), x.view(), true),
            _ => convolutions.weight_gradient(context, shape, x.view(), y.view(), w.view()),
        };
        run()?;
        let timer = Timer::start(context)?;
        for _ in 0..5 {
            run()?;
        }
        *slot = timer.stop()? / 5.0;
    }
    Ok(result)
}

fn products(context: &Context) -> Result<()> {
    for (rows, columns, inner, precision) in [
        (8192, 8192, 8192, Precision::Bf16),
        (320, 320, 1024, Precision::F32),
        (1024, 320, 320, Precision::F32),
    ] {
        let buffers =
            [rows * inner, inner * columns, rows * columns].map(|count| context.allocate_zeroed(count * 4));
        let [a, b, c] = buffers;
        let (a, b, c) = (a?, b?, c?);
        let shape = MatmulShape::new(rows, columns, inner, precision, precision);
        // SAFETY: the buffers are large enough.
        let run = || unsafe {
            context.matmuls()?.multiply(context, &shape, (1.0, 0.0), a.address(), b.address(), c.address())
        };
        run()?;
        let timer = Timer::start(context)?;
        for _ in 0..5 {
            run()?;
        }
        println!("product {rows}x{columns}x{inner} {precision:?}: {:.3} ms", timer.stop()? / 5.0);
    }
    Ok(())
}
