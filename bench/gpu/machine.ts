// A machine with a GPU, from launch to terminate: nvidia-smi and a CUDA program inside, and the GPU free afterwards.
// Without a GPU, the same path with a machine of CPUs.

import assert from 'node:assert/strict';
import ssh2 from 'ssh2';
import { type Server, startMillrace } from './servers.ts';

/** Adds two vectors on the GPU and prints "ok" if every sum is right. */
const program = `#include <cstdio>
__global__ void add(const float *a, const float *b, float *c, int n) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) c[i] = a[i] + b[i];
}
int main() {
  const int n = 1 << 24;
  float *a, *b, *c;
  cudaMallocManaged(&a, n * 4); cudaMallocManaged(&b, n * 4); cudaMallocManaged(&c, n * 4);
  for (int i = 0; i < n; i++) { a[i] = i % 1000; b[i] = 1; }
  add<<<(n + 255) / 256, 256>>>(a, b, c, n);
  if (cudaDeviceSynchronize() != cudaSuccess) return 1;
  for (int i = 0; i < n; i++) if (c[i] != i % 1000 + 1) return 2;
  puts("ok");
}
`;

interface Instance {
  readonly status: string;
  readonly ip: string;
  readonly ssh_port?: number;
}

interface Offer {
  readonly regions_with_capacity_available: readonly { readonly name: string }[];
}

export async function checkMachine(port: number, hasGpu: boolean): Promise<void> {
  const server = await startMillrace(port, { cloud: { rate_limit: false } });
  try {
    const type = await findType(server, hasGpu ? 'gpu_' : 'cpu_');
    const { private_key } = await api<{ private_key: string }>(server, 'ssh-keys', { name: 'k' });
    const began = performance.now();
    const launched = await api<{ instance_ids: string[] }>(server, 'instance-operations/launch', {
      ...type,
      ssh_key_names: ['k'],
    });
    const id = launched.instance_ids[0] ?? '';
    const { ip, ssh_port } = await waitFor(server, id, 'active');
    const ms = performance.now() - began;
    console.log(`machine ${type.instance_type_name}: active after ${ms.toFixed(0)} ms`);
    const inside = (command: string) => ssh({ ip, port: ssh_port ?? 22, private_key }, command);
    assert.equal((await inside('echo hi')).trim(), 'hi');
    if (hasGpu) await checkGpu(inside);
    await api(server, 'instance-operations/terminate', { instance_ids: [id] });
    await waitFor(server, id, 'terminated');
    assert.deepEqual(await findType(server, type.instance_type_name), type, 'the type is free');
    console.log('machine: terminated, and its type has capacity again');
  } finally {
    await server.stop();
  }
}

async function checkGpu(inside: (command: string) => Promise<string>): Promise<void> {
  console.log(`nvidia-smi inside: ${(await inside('nvidia-smi -L')).trim()}`);
  const build = `cat > add.cu <<'END'\n${program}END\nnvcc -o add add.cu && ./add`;
  const built = await inside(`command -v nvcc >/dev/null || { echo missing; exit; }; ${build}`);
  if (built.trim() === 'missing') console.log('CUDA program: not run, nvcc is not installed here');
  else {
    assert.equal(built.trim(), 'ok');
    console.log('CUDA program inside: built by nvcc, and its sums are right');
  }
}

async function api<Data>({ url, key }: Server, path: string, body?: object): Promise<Data> {
  const response = await fetch(`${url}/api/v1/${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: { authorization: `Bearer ${key}` },
    body: body === undefined ? null : JSON.stringify(body),
  });
  const answer = (await response.json()) as { data: Data };
  if (!response.ok) throw new Error(`${path}: ${JSON.stringify(answer)}`);
  return answer.data;
}

/** The first type with capacity whose name starts so. */
async function findType(server: Server, prefix: string) {
  const offers = await api<Record<string, Offer>>(server, 'instance-types');
  for (const [name, { regions_with_capacity_available: regions }] of Object.entries(offers)) {
    const [region] = regions;
    if (name.startsWith(prefix) && region) {
      return { instance_type_name: name, region_name: region.name };
    }
  }
  throw new Error(`no type ${prefix}* has capacity`);
}

async function waitFor(server: Server, id: string, status: string): Promise<Instance> {
  for (let tries = 0; tries < 600; tries++) {
    const instance = await api<Instance>(server, `instances/${id}`);
    if (instance.status === status) return instance;
    await new Promise((done) => setTimeout(done, 50));
  }
  throw new Error(`${id} did not become ${status}`);
}

interface Login {
  readonly ip: string;
  readonly port: number;
  readonly private_key: string;
}

/** By the ssh client that the product brings: hosts with a GPU may have none. Resolves to the command's output. */
function ssh({ ip, port, private_key }: Login, command: string): Promise<string> {
  return new Promise((resolve, reject) => {
    const client = new ssh2.Client();
    client.on('error', reject).on('ready', () => {
      client.exec(command, (error, channel) => {
        if (error) return reject(error);
        let output = '';
        channel.on('data', (bytes: Buffer) => {
          output += bytes.toString();
        });
        channel.stderr.on('data', (bytes: Buffer) => process.stderr.write(bytes));
        channel.on('close', (code: number) => {
          client.end();
          if (code === 0) resolve(output);
          else reject(new Error(`${command}: status ${code}`));
        });
      });
    });
    client.connect({ host: ip, port, username: 'ubuntu', privateKey: private_key });
  });
}
