#!/usr/bin/env python3
"""Do the renderer's tests notice a wrong formula?

    python3 tests/render_mutants.py [--only 3,7] [--target DIR]

Copies the workspace, puts some sixty wrong formulas beside the right ones (chosen by an environment variable when the
tests run, so that one build serves all), runs the tests of the crate `render` with each, and prints which of them
survive. A mutant that survives is a formula that no test looks at.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

# File, what is there once, what a mutant has instead, what that means.
MUTANTS = [
    ("camera.rs", "self.ray(x / size - 0.5, 0.5 - y / size)", "self.ray(0.5 - x / size, 0.5 - y / size)", "image mirrored (path tracer)"),
    ("camera.rs", "(relative.dot(RIGHT) * scale + 0.5) * size", "(relative.dot(RIGHT) * scale + 0.49) * size", "projection shifted"),
    ("camera.rs", "0.14128 * (2.0 * v).cos()", "0.14128 * (2.0 * v).sin()", "pixel filter not symmetric"),
    ("camera.rs", "z * z - radius * radius", "z * z", "object's bounds too small"),
    ("image.rs", "(x as f32 + 0.5) * scale - 0.5;", "(x as f32) * scale - 0.5;", "camera rays half a sample aside"),
    ("image.rs", "camera.ray(u, v)", "camera.ray(u, -v)", "object upside down"),
    ("image.rs", "(t * (x * scale - 0.5)) * camera::RIGHT", "(t * (x * scale - 0.5)) * -camera::RIGHT", "floor mirrored"),
    ("image.rs", "(0.5 - y * scale) * camera.up", "(0.5 - y * scale) * 1.02 * camera.up", "floor 2 % taller"),
    ("image.rs", "top + (bottom - top) * fy", "top", "floor not interpolated down"),
    ("view.rs", "self.object_from_world * point - self.translation", "self.object_from_world * point", "translation left out (to object)"),
    ("view.rs", "self.world_from_object * (point + self.translation)", "self.world_from_object * point + self.translation", "translation after the rotation"),
    ("view.rs", "if face_normal.dot(direction) > 0.0 { -1.0 } else { 1.0 }", "1.0", "back faces not turned"),
    ("view.rs", "self.position + lift * self.face_normal", "self.position", "rays not lifted"),
    ("bsdf.rs", "m2 * m2 * m\n", "m2 * m2\n", "Schlick's power 4"),
    ("bsdf.rs", "self.roughness * (1.0 + l_dot_v)", "self.roughness * (1.0 - l_dot_v)", "Burley's retro-reflection"),
    ("bsdf.rs", "(1.0 - 0.5 * fl) * (1.0 - 0.5 * fv) + retro * (fl + fv + fl * fv * (retro - 1.0));", "(1.0 - 0.5 * fl) + retro * (fl + fv + fl * fv * (retro - 1.0));", "Burley's view term left out"),
    ("bsdf.rs", "FRAC_1_PI * n_dot_l * f\n", "FRAC_1_PI * f\n", "no cosine in the diffuse term"),
    ("bsdf.rs", "(self.roughness * self.roughness).max(MIN_ALPHA)", "self.roughness.max(MIN_ALPHA)", "alpha is the roughness"),
    ("bsdf.rs", "distribution * masking * 0.25 / n_dot_v", "distribution * 0.25 / n_dot_v", "no masking"),
    ("bsdf.rs", "alpha_squared * FRAC_1_PI / (d * d)", "alpha_squared * FRAC_1_PI / d", "GGX without its square"),
    ("bsdf.rs", "0.5 * a * a * (1.0 + b * b)", "0.5 * a * a", "Fresnel, one polarisation"),
    ("bsdf.rs", "0.08 * self.specular * (1.0 - self.metallic)", "0.04 * self.specular * (1.0 - self.metallic)", "half the normal reflectance"),
    ("bsdf.rs", "0.5 * (1.0 + view.z)", "0.5 * (1.0 - view.z)", "visible normals"),
    ("lights.rs", "SUN_STRENGTH / (PI * cos * cos * cos)", "SUN_STRENGTH / PI", "radiance of the sun"),
    ("lights.rs", "normal.dot(*d).max(0.0)", "normal.dot(*d)", "sun below the horizon"),
    ("lights.rs", "Vec3::new((sin * cos_phi) as f32, (sin * sin_phi) as f32, cos as f32)", "Vec3::new((sin * sin_phi) as f32, (sin * cos_phi) as f32, cos as f32)", "spot's phi"),
    ("lights.rs", "direction.dot(facing) / distance_squared", "direction.dot(facing) / distance", "spot without inverse square (sampled)"),
    ("lights.rs", "cos * x * x * (3.0 - 2.0 * x)", "x * x * (3.0 - 2.0 * x)", "beam's cosine"),
    ("lights.rs", "cos * x * x * (3.0 - 2.0 * x)", "cos * x", "beam's edge linear"),
    ("lights.rs", "mean * normal.dot(facing) + moment * normal.dot(outward)", "mean * normal.dot(facing)", "lamp's moment left out"),
    ("colour.rs", "hsv_to_rgb(hue, 0.6, 0.6)", "hsv_to_rgb(hue, 0.6, 0.62)", "floor 3 % brighter"),
    ("colour.rs", "hsv_to_rgb(hue, 1.0, 0.8)", "hsv_to_rgb(hue, 0.9, 0.8)", "spot less saturated"),
    ("colour.rs", "Vec3::new(channel(5.0), channel(3.0), channel(1.0))", "Vec3::new(channel(1.0), channel(3.0), channel(5.0))", "red and blue exchanged"),
    ("colour.rs", "((v + 0.055) / 1.055).powf(2.4)", "v.powf(2.2)", "sRGB as a power"),
    ("colour.rs", "self.table[i] + (self.table[i + 1] - self.table[i]) * fraction", "self.table[i]", "Filmic curve in steps"),
    ("floor.rs", "irradiance += (value - irradiance) * weight", "irradiance = value", "no fading into the open floor"),
    ("floor.rs", "arriving[lane] += open.0[lane] * direction.world.z", "arriving[lane] += direction.world.z", "no shadow of the sun on the floor"),
    ("floor.rs", "irradiance += view.spot.intensity * (spot * open)", "irradiance += view.spot.intensity * spot", "no shadow of the spot on the floor"),
    ("floor.rs", "light[lane] * (PI / hemisphere.len() as f32)", "light[lane] * (1.0 / hemisphere.len() as f32)", "world's light on the floor"),
    ("lit_scene.rs", "0.5 * (1.0 - up) * floor", "0.5 * (1.0 + up) * floor", "bounced light from above"),
    ("lit_scene.rs", "alpha * leaving + (1.0 - alpha) * behind", "leaving", "transparency ignored in bounces"),
    ("maps.rs", "texel(x0, y0).lerp(texel(x1, y0), fx)", "texel(x0, height - 1 - y0).lerp(texel(x1, height - 1 - y0), fx)", "textures upside down, every other row"),
    ("maps.rs", "top.lerp(bottom, fy)", "top", "textures not filtered"),
    ("mesh.rs", "(w * n0 + hit.u * n1 + hit.v * n2)", "(n0 + n1 + n2)", "flat shading"),
    ("sampling.rs", "((i as f32 + 0.5) / n as f32).sqrt()", "((i as f32 + 0.5) / n as f32)", "disc points crowd in the middle"),
    ("sampling.rs", "1.0 - (2.0 * i as f32 + 1.0) / n as f32", "1.0 - (1.0 * i as f32 + 1.0) / n as f32", "half a sphere"),
    ("path.rs", "indirect.min(Vec3::splat(INDIRECT_CLAMP))", "indirect", "path tracer: no clamp"),
    ("path.rs", "SUN_STRENGTH * open(sun, f32::INFINITY) * value", "SUN_STRENGTH * value", "path tracer: no shadow of the sun"),
    ("points/lanes.rs", "m * m * (m * m) * m\n", "m * m * (m * m)\n", "in lanes: Schlick's power 4"),
    ("points/lanes.rs", "points.roughness.0[lane] * (1.0 + l_dot_v)", "points.roughness.0[lane] * (1.0 - l_dot_v)", "in lanes: Burley's retro-reflection"),
    ("points/lanes.rs", "FRAC_1_PI * cosine * burley", "FRAC_1_PI * burley", "in lanes: no cosine in the diffuse term"),
    ("points/lanes.rs", "a2 * FRAC_1_PI / (d * d)", "a2 * FRAC_1_PI / d", "in lanes: GGX without its square"),
    ("points/lanes.rs", "0.5 * p * p * (1.0 + q * q)", "0.5 * p * p", "in lanes: Fresnel, one polarisation"),
    ("points/lanes.rs", "self.distribution * self.g_l * self.g_v * 0.25", "self.distribution * 0.25", "in lanes: no masking"),
    ("points/lanes.rs", "open.0[lane] * terms.diffuse.0[lane]", "terms.diffuse.0[lane]", "no shadows of lights on the object"),
    ("points.rs", "irradiance * sums.diffuse.0[lane] / total", "sums.diffuse.0[lane] / total", "sun's irradiance left out"),
    ("points.rs", "self.lanes.alpha.0[lane] < LAMP_LOBE && total > 0.0", "false", "lamp never mirrored"),
    ("points.rs", "spot.intensity * (facing * mean)", "spot.intensity * mean", "spot's highlight without distance"),
    ("points.rs", "floor.radiance(point.truncate())", "Vec3::splat(WORLD_RADIANCE)", "no light from the floor on the object"),
    ("points.rs", "PI * light[lane] / total", "light[lane] / total", "a third of the indirect light"),
    ("points/lanes.rs", "WORLD_RADIANCE + sun_share.0[lane] * sun_radiance(l)", "sun_share.0[lane] * sun_radiance(l)", "world not reflected in the lobe"),
    ("points.rs", "if is_narrow(lane) { sun_share[lane] } else { 0.0 }", "if is_narrow(lane) { 1.0 } else { 0.0 }", "sun's highlight in shadow"),
    ("points.rs", "SUN_STRENGTH / sun.len() as f32", "0.5 * SUN_STRENGTH / sun.len() as f32", "sun's wide highlight halved"),
]

SWITCH = """
/// Which wrong formula is in use.
pub(crate) fn mutant(number: u32) -> bool {
    static CHOSEN: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *CHOSEN.get_or_init(|| std::env::var("RENDER_MUTANT").ok().and_then(|text| text.parse().ok()).unwrap_or(0)) == number
}
"""


def mutate(source):
    by_file = {}
    for number, (file, old, new, _) in enumerate(MUTANTS, 1):
        by_file.setdefault(file, {}).setdefault(old, []).append((number, new))
    for file, changes in by_file.items():
        path = os.path.join(source, file)
        with open(path) as opened:
            text = opened.read()
        for old, variants in changes.items():
            if text.count(old) != 1:
                sys.exit(f"{file}: {old!r} is there {text.count(old)} times")
            is_statement = " += " in old or old.startswith("irradiance")
            tail = "\n" if old.endswith("\n") else ""
            tail = ";" if old.endswith(";") else tail
            right = old.rstrip("\n").rstrip(";")
            for number, new in variants:
                wrong = new.rstrip("\n").rstrip(";")
                if is_statement:
                    right = f"if crate::mutant({number}) {{ {wrong} }} else {{ {right} }}"
                else:
                    right = f"(if crate::mutant({number}) {{ {wrong} }} else {{ {right} }})"
            text = text.replace(old, right + tail)
        with open(path, "w") as opened:
            opened.write(text)
    with open(os.path.join(source, "lib.rs"), "a") as opened:
        opened.write(SWITCH)


def build(copy, target):
    command = ["cargo", "test", "--release", "-p", "render", "--no-run", "--message-format=json"]
    done = subprocess.run(command, cwd=copy, capture_output=True, text=True, env={**os.environ, "CARGO_TARGET_DIR": target})
    if done.returncode:
        for line in done.stdout.splitlines():
            message = json.loads(line).get("message")
            if isinstance(message, dict) and message.get("level") == "error":
                print(message["rendered"], file=sys.stderr)
        sys.exit("the mutants do not compile")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [one["executable"] for one in found if one.get("executable")]


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--only", default="")
    # Not the folder of ordinary builds: cargo would take what was built of the copy for what was built of the originals.
    parser.add_argument("--target", default=os.path.join(ROOT, "target", "mutants"))
    arguments = parser.parse_args()
    only = {int(number) for number in arguments.only.split(",") if number}
    # Always the same place, so that only what changed is built again.
    copy = os.path.join(os.path.abspath(arguments.target), "render-mutants")
    shutil.rmtree(copy, ignore_errors=True)
    os.makedirs(copy)
    for name in ["Cargo.toml", "Cargo.lock", "clippy.toml"]:
        shutil.copy2(os.path.join(ROOT, name), copy)
    for name in ["crates", "python"]:
        shutil.copytree(os.path.join(ROOT, name), os.path.join(copy, name))
    mutate(os.path.join(copy, "crates/render/src"))
    tests = build(copy, arguments.target)
    survivors = []
    for number, (file, _, _, meaning) in enumerate([("", "", "", "none (all must pass)"), *MUTANTS]):
        if only and number not in only:
            continue
        killed_by = None
        for test in tests:
            environment = {**os.environ, "RENDER_MUTANT": str(number), "RUST_BACKTRACE": "0"}
            cwd = os.path.join(copy, "crates/render")
            try:
                done = subprocess.run(
                    [test, "--test-threads=2"], cwd=cwd, capture_output=True, text=True, env=environment, timeout=900
                )
            except subprocess.TimeoutExpired:
                killed_by = "(does not end)"
                break
            if done.returncode:
                failed = [line.split()[1] for line in done.stdout.splitlines() if line.endswith("... FAILED")]
                killed_by = failed[0] if failed else f"status {done.returncode}"
                break
        if number and killed_by is None:
            survivors.append(number)
        verdict = killed_by or ("SURVIVES" if number else "passes")
        print(f"{number:3} {file:13} {meaning:42} {verdict}", flush=True)
    print(f"{len(survivors)} of {len(only) or len(MUTANTS)} survive: {survivors}")


if __name__ == "__main__":
    main()
