# The program in a container.
#
#   docker build -t equicaps .                                                  # CPU
#   docker build -t equicaps:cuda --build-arg BASE=nvidia/cuda:13.0.1-cudnn-runtime-ubuntu24.04 .
#
#   docker run --rm -v "$PWD:/work" --user "$(id -u):$(id -g)" equicaps demo
#   docker run --rm --gpus all -v "$PWD:/work" --user "$(id -u):$(id -g)" equicaps:cuda train --data views --device cuda:0 --run runs/first
#
# BASE is what the program runs in: any image with glibc 2.35 or later (and libgcc_s). For GPUs it must hold NVRTC, cuBLASLt and cuDNN 9,
# which are loaded when they are needed; building needs no CUDA. `--build-arg COMMIT="$(git rev-parse HEAD)"` lets runs say what made them.
ARG BASE=debian:bookworm-slim

FROM rust:1.95-slim-bookworm AS build
WORKDIR /src
COPY . .
ARG COMMIT=
RUN EQUICAPS_COMMIT="$COMMIT" cargo build --release --locked

FROM ${BASE}
COPY --from=build /src/target/release/equicaps /usr/local/bin/equicaps
WORKDIR /work
ENTRYPOINT ["equicaps"]
CMD ["--help"]
