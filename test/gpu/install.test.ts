// `millrace gpu install` against a registry on this computer: what it downloads, keeps, refuses and puts where. Whether
// the kernels run can only be seen on a computer with a GPU.

import assert from 'node:assert/strict';
import { createHash } from 'node:crypto';
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { dirname, join } from 'node:path';
import { type TestContext, test } from 'node:test';
import { c } from 'tar';
import { type Computer, chooseKernels } from '#gpu/choose.ts';
import { toPartName } from '#gpu/download.ts';
import { GpuError } from '#gpu/errors.ts';
import { installKernels } from '#gpu/install.ts';
import { cudaLibrary, findKernels, gpuFolder, kernelsFolder, vulkanLibrary } from '#gpu/kernels.ts';
import { kernelPackages, type PinnedPackage } from '#gpu/packages.ts';
import { llamaVersion } from '#lib/computer/llama-libraries.ts';
import millrace from '../../package.json' with { type: 'json' };

const kernels = Buffer.alloc(3_000_000, 'kernels of a GPU');

/** A registry with one package, and a list of the ranges that it was asked for. */
async function startRegistry(t: TestContext) {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-registry-'));
  const member = kernelPackages.cuda13.member;
  mkdirSync(join(folder, dirname(member)), { recursive: true });
  writeFileSync(join(folder, member), kernels);
  writeFileSync(join(folder, dirname(member), 'libother.so'), 'not wanted');
  await c({ file: join(folder, 'package.tgz'), cwd: folder, gzip: true }, ['package']);
  const tarball = readFileSync(join(folder, 'package.tgz'));
  const wanted: PinnedPackage = {
    ...kernelPackages.cuda13,
    bytes: tarball.length,
    sha512: createHash('sha512').update(tarball).digest('base64'),
  };
  const ranges: (string | undefined)[] = [];
  /** Bytes after which the connection breaks, for each request in turn; negative for an empty body. */
  const breaks: number[] = [];
  const path = `/@node-llama-cpp/linux-x64-cuda/-/linux-x64-cuda-${llamaVersion}.tgz`;
  const server = createServer((request, response) => {
    if (request.url !== path) return response.writeHead(404).end();
    ranges.push(request.headers.range);
    const from = Number(/^bytes=(\d+)-$/.exec(request.headers.range ?? '')?.[1] ?? 0);
    const broken = breaks.shift();
    const rest = broken !== undefined && broken < 0 ? Buffer.of() : tarball.subarray(from);
    response.writeHead(from > 0 ? 206 : 200, { 'content-length': rest.length });
    if (broken === undefined || broken < 0) return response.end(rest);
    return response.write(rest.subarray(0, broken), () => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const dataDir = join(folder, 'data');
  t.after(() => {
    server.closeAllConnections();
    server.close();
    rmSync(folder, { recursive: true });
  });
  const options = {
    dataDir,
    registry: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    progress: () => {},
    signal: new AbortController().signal,
    retryDelayMs: 0,
  };
  return { wanted, options, ranges, breaks, dataDir };
}

test('the kernels are where models look for them, and nothing else is kept', async (t) => {
  const { wanted, options, dataDir } = await startRegistry(t);
  assert.equal(findKernels(dataDir), null);
  const seen: number[] = [];
  const file = await installKernels(wanted, { ...options, progress: (bytes) => seen.push(bytes) });
  assert.equal(findKernels(dataDir), file);
  assert.deepEqual(readFileSync(file), kernels);
  assert.deepEqual(readdirSync(kernelsFolder(dataDir)), [cudaLibrary]);
  assert.equal(readdirSync(gpuFolder(dataDir)).length, 1);
  assert.equal(seen.at(-1), wanted.bytes);
});

test('kernels of another kind are replaced', async (t) => {
  const { wanted, options, dataDir } = await startRegistry(t);
  mkdirSync(kernelsFolder(dataDir), { recursive: true });
  writeFileSync(join(kernelsFolder(dataDir), vulkanLibrary), '');
  await installKernels(wanted, options);
  assert.deepEqual(readdirSync(kernelsFolder(dataDir)), [cudaLibrary]);
});

test('a download that breaks off continues where it stopped', async (t) => {
  const { wanted, options, ranges, breaks, dataDir } = await startRegistry(t);
  breaks.push(1000);
  await installKernels(wanted, options);
  assert.deepEqual(readFileSync(findKernels(dataDir) as string), kernels);
  assert.equal(ranges[0], undefined);
  assert.match(ranges[1] ?? '', /^bytes=[1-9]\d*-$/);
});

test('a later run continues the download of an earlier one', async (t) => {
  const { wanted, options, ranges, breaks, dataDir } = await startRegistry(t);
  breaks.push(1000, 0, 0, 0, 0, 0);
  await assert.rejects(installKernels(wanted, options), /Run the command again to continue/);
  assert.equal(findKernels(dataDir), null);
  const before = ranges.length;
  breaks.length = 0;
  await installKernels(wanted, options);
  assert.equal(ranges.length, before + 1);
  assert.match(ranges.at(-1) ?? '', /^bytes=[1-9]\d*-$/);
});

test('a registry whose responses end too early is not asked without end', async (t) => {
  const { wanted, options, ranges, breaks } = await startRegistry(t);
  breaks.push(-1, -1, -1, -1, -1);
  await assert.rejects(installKernels(wanted, options), /ended after 0 bytes/);
  assert.equal(ranges.length, 5);
});

test('a package with another checksum or size is refused and not kept', async (t) => {
  const { wanted, options, dataDir } = await startRegistry(t);
  const part = join(gpuFolder(dataDir), toPartName(wanted));
  const other = { ...wanted, sha512: createHash('sha512').digest('base64') };
  await assert.rejects(installKernels(other, options), /checksum of .* is wrong/);
  assert.equal(readFileSync(part).length, 0);
  const smaller = { ...wanted, bytes: 100 };
  await assert.rejects(installKernels(smaller, options), /larger than the 100 bytes/);
  const missing = { ...wanted, version: '0.0.0' };
  await assert.rejects(installKernels(missing, options), /status 404/);
  assert.equal(findKernels(dataDir), null);
  assert.ok(!existsSync(kernelsFolder(dataDir)));
});

test('the pinned packages are of the version that is installed', () => {
  assert.equal(millrace.optionalDependencies['@node-llama-cpp/linux-x64'], llamaVersion);
});

test('the kernels fit the GPU, its driver and the runtime', () => {
  const cuda = (major: number) => [`libcudart.so.${major}`, `libcublas.so.${major}`];
  const computer = (given: Partial<Computer>): Computer => ({
    platform: 'linux-x64',
    ...{ architectures: [], driver: null, renders: false, libraries: new Set() },
    ...given,
  });
  const nvidia = { architectures: ['89'], driver: 580 };
  const choose = (given: Partial<Computer>, libraries: string[]) =>
    chooseKernels(computer({ ...given, libraries: new Set(libraries) }));
  assert.equal(choose(nvidia, [...cuda(12), ...cuda(13)]), 'cuda13');
  assert.equal(choose(nvidia, cuda(12)), 'cuda12');
  // An H100 compiles PTX 9.1 only with a driver of CUDA 13.1.
  const h100 = { architectures: ['90'], driver: 580 };
  assert.equal(choose(h100, [...cuda(12), ...cuda(13)]), 'cuda12');
  assert.equal(choose({ ...h100, driver: 590 }, cuda(13)), 'cuda13');
  assert.throws(() => choose(h100, cuda(13)), /older than CUDA 13\.1.*gpu build/);
  assert.throws(() => choose(nvidia, ['libcudart.so.13']), /libcublas/);
  assert.equal(choose({ renders: true }, ['libvulkan.so.1']), 'vulkan');
  assert.throws(() => choose({ renders: true }, []), /libvulkan1/);
  assert.throws(() => choose({}, []), GpuError);
  assert.throws(() => choose({ ...nvidia, platform: 'darwin-arm64' }, []), /Macs need none/);
});
