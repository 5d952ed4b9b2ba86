#!/usr/bin/env python3
"""Does the comparison of the GPU with the CPU notice a wrong formula in the GPU's renderer?

    python3 tests/render_mutants_cuda.py BINARY                 needs a GPU, or tests/host_cuda/run.sh before it; no Rust
    python3 tests/render_mutants_cuda.py BINARY --list          are all formulas there, once? needs no GPU
    python3 tests/render_mutants_cuda.py TESTS --compile        do all mutants compile? needs NVRTC, no GPU

The kernels are text inside the program, compiled at run time. Each mutant is a copy of the program in which a formula is
replaced by a wrong one of the same length; `equicaps check renders --random` then compares its GPU with its CPU, which is
the right one still. A mutant that survives is a formula that the comparison does not look at. For `--compile` the file
is the unit tests of the crate `render` (target/release/deps/render-*), one of which compiles the kernels.
"""

import argparse
import concurrent.futures
import json
import os
import shutil
import struct
import subprocess
import sys
import tempfile
import time
import zlib

# What is there once, what a mutant has instead (no longer), what that means.
MUTANTS = [
    ("return vec(-u, -__fadd_rn(", "return vec(u, -__fadd_rn(", "camera: image mirrored"),
    ("#define FOCAL 1.388889f", "#define FOCAL 1.393000f", "camera: 0.3 % narrower"),
    ("along = __fmul_rn((float)x + 0.5f, scale)", "along = __fmul_rn((float)x, scale)", "camera: rays half a sample aside"),
    ("return (x < y) != (", "return (x < y) == (", "camera: the other one of surfaces in one place"),
    ("left = behind;", "left = 0.0f;", "camera: nothing behind transparent surfaces"),
    ("float least = reach == 0 ? 0.9f", "float least = reach == 0 ? 0.1f", "sampling: light taken from other surfaces"),
    ("k >> 1 ? fy : 1.0f - fy);", "1.0f);", "sampling: light not interpolated down"),
    ("float3 normal = normalized(w * vec(s.normals) + hit.u * vec(s.normals + 3) + hit.v * vec(s.normals + 6), face)", "float3 normal = face", "shading: flat"),
    ("point.normal = away ? -normal : normal;", "point.normal = normal;", "shading: back faces not turned"),
    ("position + LIFT * face", "position", "shadows: rays not lifted"),
    ("texel_pair(1.0f - (map.scale[1] * uv.y", "texel_pair((map.scale[1] * uv.y", "textures: upside down"),
    ("start + y1 * width + x1), fx);\n    return mix(top, bottom, fy);", "start + y1 * width + x1), fx);\n    return top;", "textures: not filtered down"),
    ("return vec(srgb_decode(b, value.x), srgb_decode(b, value.y), srgb_decode(b, value.z));", "return (1.0f / 255.0f) * vec(value.x, value.y, value.z);", "textures: taken for linear"),
    ("return mix(b->sun_table[i], b->sun_table[i + 1], x - (float)i);", "return 0.9f * b->sun_table[i];", "light: sun 10 % weaker"),
    ("#define WORLD_RADIANCE 0.05f", "#define WORLD_RADIANCE 0.06f", "light: world brighter"),
    ("cone.x * dot(normal, facing) + cone.y * dot(normal, outward)", "cone.x * dot(normal, facing)", "light: lamp's moment left out"),
    ("clamp((quotient(1.0f, distance) - low) * scale", "clamp((quotient(1.0f, distance)) * scale", "light: spot's table by another distance"),
    ("0.5f * (1.0f - normal.z) * below", "0.5f * (1.0f + normal.z) * below", "bounces: floor's light from above"),
    ("float sun_share = sunlit ? sun_open : 1.0f;", "float sun_share = 1.0f;", "bounces: no shadow of the sun"),
    ("(spot * lamp_open) * vec", "spot * vec", "bounces: no shadow of the spot"),
    ("(1.0f - alpha) * behind;", "0.0f * behind;", "bounces: nothing behind transparent surfaces"),
    ("return m * m * (m * m) * m;", "return m * m * (m * m);", "shading: Schlick's power 4"),
    ("retro = p.roughness * (1.0f + l_dot_v);", "retro = p.roughness * (1.0f - l_dot_v);", "shading: Burley's retro-reflection"),
    ("diffuse = INVERSE_PI * cosine * burley;", "diffuse = INVERSE_PI * burley;", "shading: no cosine"),
    ("p.reflectance = 0.08f * specular", "p.reflectance = 0.04f * specular", "highlights: half the reflectance"),
    ("fmaxf(p.roughness * p.roughness, MIN_ALPHA)", "fmaxf(p.roughness, MIN_ALPHA)", "highlights: alpha is the roughness"),
    ("smith(n_dot_l, of.a2) * of.view * fresnel", "of.view * fresnel", "highlights: no masking"),
    ("spread = quotient(of.a2, d * d);", "spread = quotient(of.a2, d);", "highlights: GGX without its square"),
    ("0.5f * a * a * (r * r + q * q)", "0.5f * a * a * (r * r)", "highlights: Fresnel, one polarisation"),
    ("light += open * diffuse;\n            if (", "light += diffuse;\n            if (", "shadows: none of the sun on the object"),
    ("light += open * diffuse;\n            lit_points", "light += weight * diffuse;\n lit_points", "shadows: none of the spot on the object"),
    ("light = light + weight * incoming;", "light = light;", "light: none of the world on the object"),
    ("(1.0f - blocked / b->floor_sun_total)", "1.0f", "floor: no shadow of the sun"),
    ("(PI / (float)b->hemisphere_count) * light", "(1 / (float)b->hemisphere_count) * light", "floor: a third of the object's light"),
    ("(spot * open) * vec(view.spot_intensity);", "spot * vec(view.spot_intensity);", "floor: no shadow of the spot"),
    ("fminf((1.0f - offset / half) * (1.0f / FADE), 1.0f)", "1.0f", "floor: no fading into the open floor"),
    ("1.1f * LAMP_RADIUS * (scale - 1.0f) * slant", "0.0f", "floor: shadow's box without penumbra"),
    ("xyz(at[nodes]), xyz(at[nodes + 1]), fx), fy)", "xyz(at[nodes]), xyz(at[nodes + 1]), fx), 0)", "floor: not interpolated down"),
    ("float weight = b->filter[j];", "float weight = b->filter[1];", "sampling: pixel filter"),
    ("value = (1.0f - sum.w) * value + xyz(sum);", "value = value + xyz(sum);", "colour: floor shines through"),
    ("display = mix(b->filmic_table[i], b->filmic_table[i + 1], fraction);", "display = b->filmic_table[i];", "colour: response in steps"),
    ("fminf(display + (0.5f + 0.5f * 0.0033f * 255.0f), 255.0f)", "fminf(display, 255.0f)", "colour: rounded down"),
    ("out[2] = encode(b, value.z);", "out[2] = encode(b, value.x);", "colour: blue is red"),
    ("m.alpha * (map_lookup(view, m.opacity, uv, map_level(m.opacity, 0.25f * footprint)).w * (1.0f / 255.0f))", "m.alpha", "materials: no holes"),
    ("return 1.0f - down.w * mix(top, bottom, fy);", "return 1.0f - 255.0f * down.w;", "materials: holes have shadows"),
    ("own * map_colour(b, view, m.emission_map, uv, footprint)", "own", "materials: emission without its map"),
    ("while (texels > MAX_TEXELS &&", "while (texels < 0.0f &&", "materials: no mips"),
    ("normalized(n + m.normal_strength * (mapped - n), n)", "n", "materials: no map of normals"),
    ("p.metallic * (1.0f - rise))", "0.0f)", "materials: metals reflect nothing of their colour"),
    ("p.roughness *= (float)(bytes >> 8 & 255)", "p.roughness *= (float)(bytes & 255)", "materials: roughness is specular"),
    ("float share = quotient(even, fmaxf(even + chance * of.view * spread, 1e-12f));", "float share = 1.0f;", "bounces: no darkening by lobes"),
    ("#define ENCLOSURE 0.7f", "#define ENCLOSURE 0.0f", "bounces: no less light in concavities"),
    ("is_inside ? 1.0f : spot_edge(view, p.position, xyz(lamp[i].world))", "1.0f", "light: the beam's edge"),
    ("p.alpha >= LAMP_LOBE || along", "p.alpha >= 0.0f || along", "highlights: the lamp is not mirrored"),
    ("if (!(dot(point.face, reflected) >= threshold))", "if (false)", "shading: normals that reflect into the surface"),
]


def mutants(binary):
    """The content of the program, and (place, text, meaning) of every mutant."""
    with open(binary, "rb") as opened:
        content = opened.read()
    found, bad = [], []
    for number, (old, new, meaning) in enumerate(MUTANTS, 1):
        right, wrong = old.encode(), new.encode()
        count = content.count(right)
        if count != 1:
            bad.append(f"mutant {number}: {old!r} is there {count} times")
        elif len(wrong) > len(right):
            bad.append(f"mutant {number}: {new!r} is longer than {old!r}")
        elif wrong == right:
            bad.append(f"mutant {number}: {new!r} is the right formula")
        found.append((content.find(right), wrong.ljust(len(right)), meaning))
    if bad:
        sys.exit("\n".join(bad))
    return content, found


def write_mutant(content, mutant, folder, number):
    path = os.path.join(folder, f"mutant-{number}")
    with open(path, "wb") as opened:
        if mutant is None:
            opened.write(content)
        else:
            at, wrong, _ = mutant
            opened.write(content[:at])
            opened.write(wrong)
            opened.write(content[at + len(wrong):])
    os.chmod(path, 0o755)
    return path


def png(width, height, pixel):
    """A PNG of 8-bit RGB whose pixels are pixel(x, y)."""

    def chunk(kind, data):
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    rows = b"".join(b"\0" + bytes(value for x in range(width) for value in pixel(x, y)) for y in range(height))
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(rows)) + chunk(b"IEND", b"")


def box(material, low, high):
    """Lines of an OBJ file: a box with texture coordinates; the first vertex is number 1 + 8 times `box.count`."""
    corners = [[(high if corner >> axis & 1 else low)[axis] for axis in range(3)] for corner in range(8)]
    sides = [(0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5)]
    first, box.count = 1 + 8 * box.count, box.count + 1
    lines = ["v {} {} {}".format(*corner) for corner in corners] + [f"usemtl {material}"]
    return lines + ["f " + " ".join(f"{first + i}/{k + 1}" for k, i in enumerate(side)) for side in sides]


def write_meshes(root):
    """Objects with what built-in ones have little of: a texture with an up and a down, transparent surfaces, and surfaces
    in one place."""
    outside, inside = ((-0.5, -0.5, -0.5), (0.5, 0.3, 0.5)), ((-0.2, -0.2, 0.55), (0.3, 0.2, 0.8))
    kinds = {
        "textured": (1.0, 0.6, 0.5, inside),
        "clear": (0.4, 0.5, 0.5, inside),
        "shining": (1.0, 0.1, 0.9, inside),
        "double": (1.0, 0.6, 0.5, outside),
    }
    for name, (opacity, roughness, specular, second) in kinds.items():
        folder = os.path.join(root, "shapes", name)
        os.makedirs(folder)
        box.count = 0
        lines = ["mtllib model.mtl", "vt 0 0", "vt 1 0", "vt 1 1", "vt 0 1"]
        lines += box("outside", *outside) + box("inside", *second)
        with open(os.path.join(folder, "model.obj"), "w") as opened:
            opened.write("\n".join(lines) + "\n")
        exponent = max(2.0 / roughness**4 - 2.0, 0.0)
        with open(os.path.join(folder, "model.mtl"), "w") as opened:
            opened.write(f"newmtl outside\nd {opacity}\nNs {exponent}\nKs {specular} {specular} {specular}\nmap_Kd picture.png\n")
            opened.write("newmtl inside\nKd 0.8 0.2 0.1\n")
        with open(os.path.join(folder, "picture.png"), "wb") as opened:
            opened.write(png(16, 16, lambda x, y: (240 - 12 * y, 40 + 10 * x, 30 if y < 8 else 200)))


def compare(program, arguments, meshes, folder):
    """Exit status, mean and worst PSNR in dB, and what was said."""
    command = [program, "check", "renders", "--random", str(arguments.views), "--size", str(arguments.size)]
    command += ["--quality", arguments.quality, "--device", arguments.device, "--meshes", meshes, "--json", "--quiet"]
    command += ["--threads", str(arguments.threads)]
    environment = {**os.environ, "XDG_CACHE_HOME": os.path.join(folder, "cache"), "RUST_BACKTRACE": "0"}
    try:
        done = subprocess.run(command, capture_output=True, text=True, env=environment, timeout=arguments.timeout)
    except subprocess.TimeoutExpired:
        return None, None, None, f"longer than {arguments.timeout} s"
    try:
        answer = json.loads(done.stdout)
        return done.returncode, answer.get("mean_db"), answer.get("worst_db"), done.stderr.strip()
    except ValueError:
        return done.returncode, None, None, (done.stderr or done.stdout).strip()[-300:]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary")
    parser.add_argument("--list", action="store_true", help="check the formulas and stop")
    parser.add_argument("--compile", action="store_true", help="compile every mutant of the crate's tests and stop")
    parser.add_argument("--only", default="", help="numbers of mutants, separated by commas")
    parser.add_argument("--views", type=int, default=24)
    parser.add_argument("--size", type=int, default=128)
    parser.add_argument("--quality", default="standard")
    parser.add_argument("--device", default="cuda:0")
    parser.add_argument("--jobs", type=int, default=6, help="mutants at once")
    parser.add_argument("--threads", type=int, default=3, help="CPU threads of each")
    parser.add_argument("--timeout", type=float, default=60.0, help="seconds for one mutant")
    parser.add_argument("--seconds", type=float, default=140.0, help="seconds for all: mutants left then are not tried")
    arguments = parser.parse_args()
    content, found = mutants(arguments.binary)
    only = {int(number) for number in arguments.only.split(",") if number}
    numbers = [number for number in range(1, len(found) + 1) if not only or number in only]
    if arguments.list:
        for number in numbers:
            old, new, meaning = MUTANTS[number - 1]
            print(f"{number:3} {meaning}\n      {' '.join(old.split())}\n      {' '.join(new.split())}")
        print(f"{len(numbers)} formulas, each there once")
        return
    began = time.monotonic()
    folder = tempfile.mkdtemp(prefix="render-mutants-")
    try:
        if arguments.compile:
            failed = []
            for number in [0, *numbers]:
                program = write_mutant(content, found[number - 1] if number else None, folder, number)
                environment = {**os.environ, "EQUICAPS_REQUIRE_NVRTC": "1", "RUST_BACKTRACE": "0"}
                done = subprocess.run([program, "kernels_compile"], capture_output=True, text=True, env=environment)
                os.remove(program)
                if done.returncode or " 0 passed" in done.stdout:
                    failed.append(number)
                    print(f"{number:3} does not compile\n{done.stdout[-2000:]}", flush=True)
            print(f"{len(numbers) + 1} compiled, {len(failed)} do not: {failed}")
            sys.exit(1 if failed else 0)
        meshes = os.path.join(folder, "meshes")
        write_meshes(meshes)
        program = write_mutant(content, None, folder, 0)
        status, mean, worst, said = compare(program, arguments, meshes, folder)
        os.remove(program)
        if status != 0 or mean is None:
            sys.exit(f"the right formulas do not pass (status {status}, mean {mean} dB, worst {worst} dB): {said}")
        print(f"right formulas: mean {mean:.2f} dB, worst {worst:.2f} dB, {time.monotonic() - began:.1f} s", flush=True)
        print(f"{'':3} {'formula':46} {'mean dB':>8} {'worst dB':>8}  verdict")
        survivors, untried, broken = [], [], []

        def attempt(number):
            if time.monotonic() - began > arguments.seconds:
                return number, "untried", None, None, ""
            program = write_mutant(content, found[number - 1], folder, number)
            result = compare(program, arguments, meshes, folder)
            os.remove(program)
            return number, *result

        with concurrent.futures.ThreadPoolExecutor(max(arguments.jobs, 1)) as pool:
            for number, status, mean, worst, said in pool.map(attempt, numbers):
                shown = [f"{value:8.2f}" if value is not None else f"{'-':>8}" for value in (mean, worst)]
                if status == "untried":
                    untried.append(number)
                    verdict = "not tried: no time left"
                elif status == 0:
                    survivors.append(number)
                    verdict = "SURVIVES"
                elif status == 1 and mean is not None:
                    verdict = "killed"
                else:
                    # No comparison took place: not what a mutant is for.
                    broken.append(number)
                    verdict = f"NO RESULT (status {status}): {said}"
                print(f"{number:3} {found[number - 1][2]:46} {' '.join(shown)}  {verdict}", flush=True)
        killed = len(numbers) - len(survivors) - len(untried) - len(broken)
        print(f"{killed} of {len(numbers)} killed; survive: {survivors}; no result: {broken}; not tried: {untried}; "
              f"{time.monotonic() - began:.1f} s")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
