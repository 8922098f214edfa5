// What engines print and how they end, as people read it. The lines are those of vLLM 0.32.

import assert from 'node:assert/strict';
import { test } from 'node:test';
import { findEnding } from '#deployments/engines/engine-script.ts';
import { type Recipe, recipes } from '#deployments/engines/recipes.ts';

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
  const { failures } = recipes.vllm;
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
    assert.match(meaningOf(line, failures) ?? '', reason);
});

test('an engine that the kernel killed probably had too little memory', () => {
  const ended = 'millrace: the engine ended with exit code 137';
  assert.match(
    findEnding(['loading', ended]) ?? '',
    /killed \(exit code 137\).* too little memory/,
  );
});
