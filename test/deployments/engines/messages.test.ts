// What engines print and how they end, as people read it. The lines are those of vLLM 0.32, SGLang 0.5.14 and
// llama-server 0.5.0.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findEnding } from '#deployments/engines/engine-script.ts';
import { findFailure, type Recipe, recipes } from '#deployments/engines/recipes.ts';

const meaningOf = (line: string, meanings: Recipe['progress']) =>
  meanings.find(([pattern]) => pattern.test(line))?.[1];

test('vLLM says how far it is', () => {
  const { progress } = recipes.vllm;
  for (const [line, meaning] of [
    ['INFO [cpu_model_runner.py:68] Starting to load model /models/small...', 'loading weights'],
    ['Loading safetensors checkpoint shards:  50% Completed | 1/2', 'loading weights'],
    ['INFO [entry.py:140] Starting vLLM server on http://127.0.0.1:8000', 'starting to listen'],
  ] as const)
    assert.equal(meaningOf(line, progress), meaning);
});

test('vLLM says why it does not start', () => {
  for (const [line, reason] of [
    [
      "ValueError: To serve at least one request with the model's max seq len (2048), (0.01 GiB KV cache is needed, which is larger than the available KV cache memory (0.0 GiB).",
      /too little memory/,
    ],
    [
      'ValueError: Available memory on node 0 (3.1/23.5 GiB) on startup is less than desired CPU memory utilization (0.9, 21.2 GiB).',
      /--gpu-memory-utilization/,
    ],
    ["ValueError: Invalid repository ID or local directory specified: '/none'.", /no such weights/],
  ] as const)
    assert.match(findFailure([line], recipes.vllm) ?? '', reason);
});

test('SGLang says how far it is, and that it failed', () => {
  const { progress } = recipes.sglang;
  for (const [line, meaning] of [
    ['[2026-11-18 16:53:52] Load weight begin. avail mem=139.13 GB', 'loading weights'],
    ['[2026-11-18 16:54:28] The server is fired up and ready to roll!', 'starting to listen'],
  ] as const)
    assert.equal(meaningOf(line, progress), meaning);
  const line =
    '[2026-11-18 16:51:30] SIGQUIT received. signum=None, frame=None. It usually means one child failed.';
  assert.match(findFailure([line], recipes.sglang) ?? '', /Its log says why/);
});

test('llama-server says how far it is', () => {
  const { progress } = recipes['llama-server'];
  for (const [line, meaning] of [
    ["0.00.028.478 I srv    load_model: loading model '/weights/a.gguf'", 'loading weights'],
    ['0.01.579.299 I srv  llama_server: model loaded', 'starting to listen'],
    ['0.01.589.120 I srv  llama_server: listening on http://127.0.0.1:8000', 'starting to listen'],
  ] as const)
    assert.equal(meaningOf(line, progress), meaning);
});

test('llama-server says why it does not start, before lines that only say that it does not', () => {
  const noModel = [
    'E llama_model_load_from_file_impl: failed to load model',
    "E srv    load_model: failed to load model, '/weights/a.gguf'",
    'E srv  llama_server: exiting due to model loading error',
  ];
  for (const [line, reason] of [
    ['error: invalid argument: --nonsense', /does not take one of its arguments/],
    ['error while handling argument "--ctx-size": stoi', /does not take one of its arguments/],
    [
      "E gguf_init_from_file: failed to open GGUF file '/weights/a.gguf' (No such file or directory)",
      /no such weights/,
    ],
    ['E gguf_init_from_reader: failed to read magic', /not a GGUF file/],
    [
      'E ggml_backend_cpu_buffer_type_alloc_buffer: failed to allocate buffer of size 717488128',
      /too little memory/,
    ],
    [
      'E llama_init_from_model: failed to initialize the context: failed to allocate buffer for kv cache',
      /too little memory/,
    ],
    ['E llama_model_load: error loading model: unknown', /could not be loaded/],
  ] as const)
    assert.match(findFailure([line, ...noModel], recipes['llama-server']) ?? '', reason);
});

test('the built-in engine says why it does not start', () => {
  for (const [message, reason] of [
    ["ENOENT: no such file or directory, open '/weights/a.gguf'", /no such weights/],
    ['The file of the model ends inside its header: it is cut off', /not a sound GGUF file/],
    [
      'The model needs 9000 MiB for weights and cache, but only 600 MiB are allowed.',
      /too little memory/,
    ],
    ['unknown', /could not be loaded/],
  ] as const) {
    const line = `The model could not be loaded: ${message}`;
    assert.match(findFailure([line], recipes.builtin) ?? '', reason);
  }
});

test('an engine that was built for another processor says so', () => {
  const ended = 'millrace: the engine ended with exit code 132';
  assert.match(findEnding(['loading', ended]) ?? '', /instruction that this processor lacks/);
});

test('an engine that the kernel killed probably had too little memory', () => {
  const ended = 'millrace: the engine ended with exit code 137';
  assert.match(
    findEnding(['loading', ended]) ?? '',
    /killed \(exit code 137\).* too little memory/,
  );
});
