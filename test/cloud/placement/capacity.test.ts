// Capacity is real: what is admitted fits, whatever happens at once, and comes back when machines are gone.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import type { InstanceTypes } from '#cloud/schema.ts';
import { ownHostId, startCloud, type TestCloud } from '#test/support/cloud/cloud.ts';
import { bothDatabases } from '#test/support/databases.ts';

const gpus = (count: number) =>
  Array.from({ length: count }, (_, index) => ({
    address: `GPU-${index}`,
    model: 'NVIDIA H200',
    memoryGib: 141,
  }));

const input = (type: string) => ({
  region_name: 'us-west-1',
  instance_type_name: type,
  ssh_key_names: ['laptop'],
});

async function launchMany({ call }: TestCloud, type: string, count: number) {
  const answers = await Promise.all(
    Array.from({ length: count }, () =>
      call<{ instance_ids: string[] }>('POST', '/instance-operations/launch', input(type)),
    ),
  );
  const refused = answers.filter(({ status }) => status !== 200);
  for (const { status, body } of refused) {
    assert.equal(status, 400);
    assert.equal(body.error.code, 'instance-operations/launch/insufficient-capacity');
  }
  return answers
    .filter(({ status }) => status === 200)
    .map(({ body }) => body.data.instance_ids[0] as string);
}

const space = { freeGib: 52, reserveGib: 2, promises: true };

const typesOf = async ({ call }: TestCloud) =>
  (await call<InstanceTypes>('GET', '/instance-types')).body.data;

for (const database of bothDatabases) {
  describe(`capacity on ${database}`, () => {
    test('of fifty concurrent launches, exactly those that fit are admitted', async () => {
      const cloud = await startCloud(database, { driver: { report: { vcpus: 16 } } });
      const admitted = await launchMany(cloud, 'cpu_2x_general', 50);
      assert.equal(admitted.length, 8);
      const rows = await cloud.db.selectFrom('instances').select('address').execute();
      assert.equal(rows.length, 8, 'a refused launch left a row');
      assert.equal(new Set(rows.map(({ address }) => address)).size, 8);
      const types = await typesOf(cloud);
      assert.deepEqual(types.cpu_1x_general?.regions_with_capacity_available, []);
    });

    test('with over-commit, more machines fit, each with a smaller share, and none is larger than its host', async () => {
      const report = { vcpus: 4, memoryGib: 32, storageGib: 160 };
      const cloud = await startCloud(database, { vcpuOvercommit: 4, driver: { report } });
      const types = await typesOf(cloud);
      assert.equal(types.cpu_8x_general, undefined);
      assert.deepEqual(types.cpu_1x_general?.instance_type.specs, {
        vcpus: 1,
        memory_gib: 2,
        storage_gib: 10,
        gpus: 0,
      });
      assert.equal((await launchMany(cloud, 'cpu_4x_general', 1)).length, 1);
      assert.equal((await launchMany(cloud, 'cpu_1x_general', 50)).length, 12);
    });

    test('launches that their host has not created yet count against its disk', async () => {
      const disk = { hostId: ownHostId, ...space, filesystemGib: 0 };
      const ownDisk = async () => disk;
      const report = { vcpus: 16, storageGib: 160 };
      const cloud = await startCloud(database, { ownDisk, driver: { report } });
      const answers = await Promise.all(
        Array.from({ length: 8 }, () =>
          cloud.call('POST', '/instance-operations/launch', input('cpu_2x_general')),
        ),
      );
      const statuses = answers.map(({ status }) => status).sort();
      assert.deepEqual(statuses, [200, 200, 507, 507, 507, 507, 507, 507]);
      const refused = answers.find(({ status }) => status === 507)?.body.error;
      assert.equal(refused?.code, 'instance-operations/launch/insufficient-capacity');
      assert.match(
        refused?.message ?? '',
        /^Not enough capacity .* takes 20 GiB, .* 52 GiB are free, 40 GiB are promised to what is being created, and 2 GiB stay reserved/,
      );
      const types = await typesOf(cloud);
      assert.equal(types.cpu_1x_general?.regions_with_capacity_available.length, 1);
      assert.deepEqual(types.cpu_2x_general?.regions_with_capacity_available, []);
    });

    test('filesystems that do not fit beside those that wait are refused', async () => {
      const disk = { hostId: ownHostId, ...space, filesystemGib: 20 };
      const cloud = await startCloud(database, { ownDisk: async () => disk });
      const create = (name: string) =>
        cloud.call('POST', '/filesystems', { name, region: 'us-west-1' });
      const answers = await Promise.all(['a', 'b', 'c', 'd'].map(create));
      assert.deepEqual(answers.map(({ status }) => status).sort(), [200, 200, 507, 507]);
      const { body } = await cloud.call<unknown[]>('GET', '/file-systems');
      assert.equal(body.data.length, 2);
    });

    test('the disk of an emulated instance is a share, so that as many fit as may exist', async () => {
      const report = { vcpus: 16, storageGib: 320 };
      const options = { emulate: true, emulatedInstances: 16, driver: { report } };
      const cloud = await startCloud(database, options);
      assert.equal((await launchMany(cloud, 'gpu_8x_h100_sxm5', 1)).length, 1);
      const rows = await cloud.db.selectFrom('instances').select('storage_gib').execute();
      assert.deepEqual(
        rows.map(({ storage_gib }) => storage_gib),
        [20],
      );
    });

    test('an emulated type says the disk that its instances get, at least 10 GiB', async () => {
      for (const [storageGib, expected] of [
        [320, 20],
        [16, 10],
      ]) {
        const options = {
          emulate: true,
          emulatedInstances: 16,
          driver: { report: { storageGib } },
        };
        const cloud = await startCloud(database, options);
        const disks = Object.entries(await typesOf(cloud))
          .filter(([name]) => name.startsWith('gpu_'))
          .map(([, { instance_type }]) => instance_type.specs.storage_gib);
        assert.deepEqual(new Set(disks), new Set([expected]));
        const [id = ''] = await launchMany(cloud, 'gpu_1x_a10', 1);
        assert.equal((await cloud.instance(id)).instance_type.specs.storage_gib, expected);
        await cloud.settle();
        assert.equal(cloud.driver.find(id)?.spec.storageGib, expected);
      }
    });

    test('a GPU is assigned to one instance at a time, and no CPU instance can strand it', async () => {
      const report = { vcpus: 16, memoryGib: 64, gpus: gpus(4) };
      const cloud = await startCloud(database, { driver: { report } });
      assert.equal((await launchMany(cloud, 'cpu_8x_general', 3)).length, 1);
      const admitted = await launchMany(cloud, 'gpu_1x_h200', 50);
      assert.equal(admitted.length, 4);
      await cloud.settle();
      const given = admitted.flatMap((id) => cloud.driver.find(id)?.spec.gpus ?? []);
      assert.deepEqual(given.toSorted(), ['GPU-0', 'GPU-1', 'GPU-2', 'GPU-3']);
      assert.equal((await launchMany(cloud, 'gpu_2x_h200', 2)).length, 0);
    });

    test('capacity is freed once the machine is gone, not before', async () => {
      const report = { vcpus: 4, gpus: gpus(1) };
      const cloud = await startCloud(database, { driver: { report } });
      const [id = ''] = await launchMany(cloud, 'gpu_1x_h200', 1);
      await cloud.settle();
      await cloud.call('POST', '/instance-operations/terminate', { instance_ids: [id] });
      assert.equal((await launchMany(cloud, 'gpu_1x_h200', 1)).length, 0);
      await cloud.settle();
      assert.equal((await launchMany(cloud, 'gpu_1x_h200', 1)).length, 1);
    });

    test('the quota of an account holds under fifty concurrent launches', async () => {
      const cloud = await startCloud(database, {
        instancesPerAccount: 3,
        driver: { report: { vcpus: 64 } },
      });
      const answers = await Promise.all(
        Array.from({ length: 50 }, () =>
          cloud.call('POST', '/instance-operations/launch', input('cpu_1x_general')),
        ),
      );
      const codes = answers.map(({ status, body }) => (status === 200 ? 'ok' : body.error.code));
      assert.equal(codes.filter((code) => code === 'ok').length, 3);
      assert.equal(codes.filter((code) => code === 'global/quota-exceeded').length, 47);
    });
  });
}

describe('instance types', () => {
  test('the host is divided into sizes, and the catalog is listed without capacity', async () => {
    const cloud = await startCloud('sqlite', { driver: { report: { vcpus: 6, memoryGib: 24 } } });
    const types = await typesOf(cloud);
    const sizes = Object.keys(types).filter((name) => name.startsWith('cpu_'));
    assert.deepEqual(sizes, [
      'cpu_1x_general',
      'cpu_2x_general',
      'cpu_4x_general',
      'cpu_6x_general',
    ]);
    assert.deepEqual(types.cpu_4x_general?.instance_type, {
      name: 'cpu_4x_general',
      description: '4x CPU General (16 GiB)',
      gpu_description: 'N/A',
      price_cents_per_hour: 20,
      specs: { vcpus: 4, memory_gib: 16, storage_gib: 341, gpus: 0 },
    });
    assert.deepEqual(types.cpu_6x_general?.regions_with_capacity_available, [
      { name: 'us-west-1', description: 'California, USA' },
    ]);
    assert.deepEqual(types.gpu_1x_a10, {
      instance_type: {
        name: 'gpu_1x_a10',
        description: '1x A10 (24 GB PCIe)',
        gpu_description: 'A10 (24 GB PCIe)',
        price_cents_per_hour: 129,
        specs: { vcpus: 30, memory_gib: 200, storage_gib: 1400, gpus: 1 },
      },
      regions_with_capacity_available: [],
    });
  });

  test('the order of the catalog is kept: one client lets later entries win', async () => {
    const names = Object.keys(await typesOf(await startCloud()));
    assert(names.indexOf('gpu_1x_a100') < names.indexOf('gpu_1x_a100_sxm4'));
    assert.equal(names[0], 'gpu_1x_gh200');
    assert.equal(names.at(-1), 'cpu_8x_general');
  });

  test("the host's GPUs take names and prices from the catalog where it has them", async () => {
    const report = {
      vcpus: 16,
      gpus: [
        { address: 'a', model: 'NVIDIA H100 80GB HBM3', memoryGib: 80 },
        { address: 'b', model: 'NVIDIA GeForce RTX 4090', memoryGib: 24 },
      ],
    };
    const types = await typesOf(await startCloud('sqlite', { driver: { report } }));
    assert.equal(types.gpu_1x_h100_sxm5?.instance_type.price_cents_per_hour, 429);
    assert.equal(types.gpu_1x_h100_sxm5?.regions_with_capacity_available.length, 1);
    assert.equal(types.gpu_1x_rtx_4090?.instance_type.description, '1x RTX 4090 (24 GB)');
  });

  test('gpus that the catalog lacks are priced by their family, then by their memory', async () => {
    const priceOf = async (model: string, memoryGib: number) => {
      const report = { vcpus: 16, gpus: [{ address: 'a', model, memoryGib }] };
      const types = await typesOf(await startCloud('sqlite', { driver: { report } }));
      const own = Object.entries(types).find(
        ([name, { regions_with_capacity_available: places }]) =>
          name.startsWith('gpu_') && places.length > 0,
      );
      return own?.[1].instance_type.price_cents_per_hour;
    };
    assert.equal(await priceOf('NVIDIA H200', 141), 479);
    assert.equal(await priceOf('NVIDIA H100 NVL', 94), 329);
    assert.equal(await priceOf('NVIDIA A100 80GB PCIe', 80), 279);
    assert.equal(await priceOf('NVIDIA A10', 24), 129);
    assert.equal(await priceOf('Tesla T4', 16), 49);
    assert.equal(await priceOf('NVIDIA H200 MIG 1g.18gb', 18), 69, 'a seventh, rounded up');
    assert.equal(await priceOf('NVIDIA GeForce RTX 4090', 24), 72);
    assert.equal(await priceOf('Somebody X1', 1), 10);
  });

  test("emulation gives the catalog's types capacity, describes it, and is bounded", async () => {
    const cloud = await startCloud('sqlite', { emulate: true, emulatedInstances: 2 });
    const types = await typesOf(cloud);
    const { instance_type, regions_with_capacity_available } = types.gpu_8x_h100_sxm5 ?? {};
    assert.match(instance_type?.description ?? '', /^8x H100 \(80 GB SXM5\).*emulated/);
    assert.equal(regions_with_capacity_available?.length, 1);
    assert.equal((await launchMany(cloud, 'gpu_8x_h100_sxm5', 5)).length, 2);
  });

  test('types without isolation say so in their description', async () => {
    const cloud = await startCloud('sqlite', { driver: { report: { isolated: false } } });
    const { cpu_1x_general } = await typesOf(cloud);
    assert.match(cpu_1x_general?.instance_type.description ?? '', /not isolated/);
  });

  test('the operator sets prices', async () => {
    const cloud = await startCloud('sqlite', { prices: { cpu_1x_general: 7 } });
    assert.equal((await typesOf(cloud)).cpu_1x_general?.instance_type.price_cents_per_hour, 7);
  });
});
