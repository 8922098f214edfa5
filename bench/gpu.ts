// Everything that needs a GPU, in one run: a machine with the GPU from launch to terminate, the embedded engine beside
// llama-server with the same weights, and llama-server through Millrace beside itself. It says what is missing here and
// runs the rest. Usage, as root: node bench/gpu.ts [--weights file.gguf] [--llama-server program] [--rounds 7]
// [--streams 1,8,64,256] [--tokens 256] [--data-dir folder], where `millrace gpu build` wrote its kernels to that folder.

import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { cpus, tmpdir } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { checkMachine } from './gpu/machine.ts';
import { type Server, startLlamaServer, startMillrace } from './gpu/servers.ts';
import { compare, type Level } from './gpu/streams.ts';
import { shape125m, writeModel } from './make-gguf.ts';

const { values: options } = parseArgs({
  options: {
    weights: { type: 'string' },
    'llama-server': { type: 'string' },
    rounds: { type: 'string', default: '7' },
    streams: { type: 'string', default: '1,8,64,256' },
    tokens: { type: 'string', default: '256' },
    'data-dir': { type: 'string' },
  },
});
const ports = { millrace: 18_086, other: 18_087 };
const rounds = Number(options.rounds);
const levels = options.streams
  .split(',')
  .map((streams): Level => ({ streams: Number(streams), tokens: Number(options.tokens) }));
const slots = Math.max(...levels.map(({ streams }) => streams));
const llamaServer = options['llama-server'];
const folder = mkdtempSync(join(tmpdir(), 'millrace-bench-gpu-'));

const smi = spawnSync('nvidia-smi', ['--query-gpu=name,driver_version', '--format=csv,noheader']);
const gpu = smi.status === 0 ? smi.stdout.toString().trim() : '';
console.log(`GPU: ${gpu || 'none: nvidia-smi lists none. What follows ran on the CPU.'}`);
console.log(`CPU: ${cpus()[0]?.model}, ${cpus().length} cores`);
if (!llamaServer) {
  console.log(
    'llama-server: not given. A second Millrace takes its place, to check this script only.',
  );
}
try {
  await checkMachine(ports.millrace, gpu !== '');
  await compareModels(options.weights ?? writeWeights());
} finally {
  rmSync(folder, { recursive: true, force: true });
}

async function compareModels(weights: string): Promise<void> {
  // Up to eight streams: beyond its sequences, the embedded engine queues.
  const few = levels.filter(({ streams }) => streams <= 8);
  await withOther(weights, async (other, name) => {
    await withServer(await startEmbedded(ports.millrace, weights), async (embedded) => {
      await compare(['embedded', embedded], [name, other], few, rounds);
      sayDevice(embedded);
    });
    await withServer(await startGateway(other), (gateway) =>
      compare(['through Millrace', gateway], [name, other], levels, rounds),
    );
  });
}

async function withOther(weights: string, work: (server: Server, name: string) => Promise<void>) {
  const other = llamaServer
    ? await startLlamaServer(llamaServer, ports.other, weights, slots)
    : await startEmbedded(ports.other, weights);
  await withServer(other, (server) =>
    work(server, llamaServer ? 'llama-server' : 'a second Millrace'),
  );
}

async function withServer(server: Server, work: (server: Server) => Promise<void>): Promise<void> {
  try {
    await work(server);
  } finally {
    await server.stop();
  }
}

function startEmbedded(port: number, weights: string): Promise<Server> {
  const inference = { stand_in: weights, preload: true };
  const model = 'llama3.1-8b-instruct';
  const kernelsFrom = options['data-dir'];
  const config = { cloud: { driver: 'none' }, inference };
  return startMillrace(port, config, { model, kernelsFrom });
}

/** The model is loaded after the start, and its line in the log says where it computes. */
function sayDevice({ readLog }: Server): void {
  const device = /"gpu":("\w+"|false)/.exec(readLog())?.[1] ?? 'unknown';
  console.log(`the embedded engine computed on: ${device === 'false' ? 'the CPU' : device}`);
}

function startGateway(other: Server): Promise<Server> {
  const backend = {
    name: 'other',
    url: `${other.url}/v1`,
    server: llamaServer ? 'llama-server' : 'openai',
    model: other.model,
    api_key: other.key,
    concurrency: slots,
  };
  const model = {
    owned_by: 'bench',
    context_window: 1024,
    price: { input: 0, output: 0 },
    backends: [backend],
  };
  const models = { builtin_ids: false, catalog: { m: model } };
  return startMillrace(ports.millrace, { cloud: { driver: 'none' }, models }, { model: 'm' });
}

function writeWeights(): string {
  const file = join(folder, 'random.gguf');
  writeModel(file, shape125m);
  console.log('weights: not given; 125 million random ones');
  return file;
}
