# remat-opt with ONNX Runtime and OR-Tools. `docker build -t remat-opt .`, then `docker run --rm -v "$PWD:/work" remat-opt MODEL.onnx -o OUT.onnx`.
FROM rust:1.92-slim-trixie AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends python3 python3-venv \
    && rm -rf /var/lib/apt/lists/*
WORKDIR /source
COPY . .
RUN python3 -m venv /venv && /venv/bin/pip wheel --no-cache-dir --no-deps --wheel-dir /wheels .

FROM python:3.13-slim-trixie
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir "$(echo /wheels/*.whl)[proofs]" && rm -r /wheels \
    && useradd --create-home remat
USER remat
WORKDIR /work
ENTRYPOINT ["remat-opt"]
