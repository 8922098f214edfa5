// Memory that models need, and whether places have it.

import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { before, describe, test } from 'node:test';
import { findKnownModel, knownModels } from '#deployments/fits/known-models.ts';
import { describeNeed, toMemoryNeed, toUsable } from '#deployments/fits/memory.ts';
import { findModelShape } from '#deployments/fits/model-shapes.ts';
import type { FitsView, KnownModelView } from '#deployments/ground/schema.ts';
import { sumMemory } from '#gpu/memory-in-use.ts';
import { builtinModel } from '#inference/engines/local/builtin.ts';
import { toFields, toGpuProcesses } from '#lib/computer/nvidia-smi.ts';
import { openTestDeployments, type TestDeployments } from '#test/support/deployments.ts';
import { makeFolder } from '#test/support/process.ts';
import { startTestServer, type TestServer } from '#test/support/server.ts';

const gib = 2 ** 30;
const gpu = (total: number, inUse = 0) => ({ bytes: total * gib, inUseBytes: inUse * gib });
const settings = { engine: 'vllm', args: [] as string[], target: 8 } as const;
/** Llama 3.1 8B: 131,072 bytes of cache for each token. */
const shape = { weightBytes: 16 * gib, cacheValues: 65_536, contextWindow: 131_072 };

describe('the memory that a model needs', () => {
  test('is that of its weights, of the requests to aim for, and of the engine', () => {
    const short = { ...settings, args: ['--max-model-len', '8192'] };
    const need = toMemoryNeed(shape, short);
    assert.equal(need.cacheBytes, 8 * gib);
    assert.equal(
      describeNeed(need, gpu(24)),
      '25.3 of 24.0 GiB: weights 16.0, KV cache 8.0 (8 × 8,192 tokens), overhead 1.3',
    );
    assert.match(
      describeNeed(need, gpu(24, 6.1)),
      /^25\.3 of 24\.0 GiB, 6\.1 in use by other programs: weights 16\.0/,
    );
    const half = toMemoryNeed(shape, {
      ...short,
      args: [...short.args, '--kv-cache-dtype', 'fp8'],
    });
    assert.equal(half.cacheBytes, 4 * gib);
  });

  test('has room for one request of the whole window, which vLLM insists on', () => {
    const need = toMemoryNeed(shape, settings);
    assert.deepEqual([need.requests, need.tokens], [1, 131_072]);
    const { requests, tokens } = toMemoryNeed(shape, { ...settings, engine: 'sglang' });
    assert.deepEqual([requests, tokens], [8, 8_192]);
    const shared = { ...settings, engine: 'llama-server', args: ['-c', '16K'] } as const;
    assert.equal(toMemoryNeed(shape, { ...shared, args: [...shared.args] }).cacheBytes, 2 * gib);
  });

  test('is compared with the GPUs that the engine uses, or with the memory of the computer', () => {
    const place = { name: 'p', gpus: [gpu(80, 9), gpu(80, 1)], memoryBytes: 400 * gib };
    assert.deepEqual(toUsable(place, settings), gpu(80, 1));
    assert.deepEqual(toUsable(place, { ...settings, args: ['--tp=2'] }), gpu(160, 10));
    assert.deepEqual(toUsable({ ...place, gpus: [] }, settings), gpu(400));
  });

  test('has to be free of other programs', () => {
    const csv = 'GPU-1, 10, 1024\nGPU-1, 11, 2048\nGPU-2, 12, 512\nGPU-2, 13, [N/A]\n';
    const sums = sumMemory(toGpuProcesses(toFields(csv)));
    assert.deepEqual(
      [...sums],
      [
        ['GPU-1', 3 * gib],
        ['GPU-2', gib / 2],
      ],
    );
  });
});

describe('what a model is', () => {
  test('is read from a GGUF file', async () => {
    const read = await findModelShape(builtinModel.modelPath);
    assert(read !== undefined && read.weightBytes > 1e6 && read.cacheValues > 0);
  });

  test('is read from a folder with config.json and safetensors', async () => {
    const folder = makeFolder();
    const config = {
      ...{ num_hidden_layers: 32, num_attention_heads: 32, num_key_value_heads: 8 },
      ...{ hidden_size: 4_096, max_position_embeddings: 131_072 },
    };
    writeFileSync(join(folder, 'config.json'), JSON.stringify(config));
    for (const part of ['a', 'b'])
      writeFileSync(join(folder, `${part}.safetensors`), Buffer.alloc(1_000));
    const expected = { weightBytes: 2_000, cacheValues: 65_536, contextWindow: 131_072 };
    assert.deepEqual(await findModelShape(folder), expected);
    assert.equal(await findModelShape(join(folder, 'gone')), undefined);
  });

  test('is known for well-known repositories, and for quantised copies of them', () => {
    const names = knownModels.map(({ repository }) => repository);
    assert.equal(new Set(names).size, names.length);
    const plain = findKnownModel('Qwen/Qwen2.5-7B-Instruct')?.weightBytes ?? 0;
    const quantised = findKnownModel('someone/Qwen2.5-7B-Instruct-AWQ')?.weightBytes ?? 0;
    assert(quantised > plain / 4 && quantised < plain / 3);
    assert.equal(findKnownModel('someone/unheard-of'), undefined);
  });
});

describe('a deployment', () => {
  let server: TestServer;
  let deployments: TestDeployments;
  before(async () => {
    server = await startTestServer();
    deployments = openTestDeployments(server, await server.join());
  });
  const large = {
    ...{ model: 'llama3.1-405b-instruct-fp8', engine: 'vllm', program: process.execPath, args: [] },
    source: 'meta-llama/Llama-3.1-405B-Instruct',
  };

  test('that does not fit is refused with the numbers, unless that is overridden', async () => {
    const { status, error } = await deployments.create('large', large);
    assert.equal(status, 409);
    assert.match(
      error?.message ?? '',
      /does not fit: it needs \d+\.\d of \d+\.\d GiB: weights 756\.0, KV cache 6\d\.\d \(1 × 131,072 tokens\), overhead 16\.1\. .* `--no-check-memory`, `check_memory: false` in the configuration file/,
    );
    const created = await deployments.create('large', { ...large, check_memory: false });
    assert.equal(created.status, 200);
    const changed = await deployments.call('POST', '/large', { check_memory: true, target: 4 });
    assert.equal(changed.status, 409);
    await deployments.removeAll();
  });

  test('is chosen by what fits, which is computed for every instance type', async () => {
    const { data } = await deployments.call<FitsView>(
      'GET',
      '/-/fits?model=llama3.1-8b-instruct&context=8192',
    );
    assert.equal(data.parameters_billions, 8.03);
    assert.equal(data.need?.weights_gib, 15);
    assert(data.places.some(({ name }) => name === 'host'));
    for (const { fits, usable_gib } of data.places)
      assert.equal(fits, usable_gib >= (data.need?.total_gib ?? 0));
    const known = await deployments.call<KnownModelView[]>('GET', '/-/models');
    assert(known.data.some(({ licence }) => licence === 'Apache-2.0'));
    const unknown = await deployments.call<FitsView>('GET', '/-/fits?model=unheard-of');
    assert.deepEqual([unknown.data.need, unknown.data.places], [null, []]);
  });

  test('reads files only for owners', async () => {
    const path = `/-/fits?engine=builtin&model=${encodeURIComponent(builtinModel.modelPath)}`;
    const address = `/api/v1/deployments${path}&source=${encodeURIComponent(builtinModel.modelPath)}`;
    assert.equal((await server.fetch(address)).status, 403);
    const { data } = await deployments.call<FitsView>('GET', address.slice(19));
    assert((data.need?.weights_gib ?? 0) >= 0);
  });
});
