// Where machines go: CPU machines are spread, GPU machines packed, and no GPU is ever held twice, whatever
// happens at once.

import assert from 'node:assert';
import { describe, test } from 'node:test';
import fc from 'fast-check';
import { viewHosts } from '#cloud/hosts/host-view.ts';
import { createOffers, type Offer } from '#cloud/placement/instance-types.ts';
import type { Place } from '#cloud/placement/place.ts';
import { type Allocated, choosePlace, fits, freeGpus } from '#cloud/placement/placement.ts';
import { startCloud } from '#test/support/cloud/cloud.ts';
import { databases } from '#test/support/databases.ts';
import { propertyRuns, propertySeed } from '#test/support/property-seed.ts';

const models = ['NVIDIA H200', 'NVIDIA A10', 'NVIDIA H100 PCIe MIG 1g.10gb'];

function place(over: Partial<Place>): Place {
  return {
    hostId: 'h',
    hostName: 'h',
    region: 'us-west-1',
    node: null,
    accepting: true,
    isolated: true,
    vcpus: 8,
    memoryGib: 32,
    storageGib: 100,
    gpus: [],
    addressPool: undefined,
    images: null,
    defaultImage: null,
    sharesFilesystems: false,
    poolHosts: ['h'],
    ...over,
  };
}

const options = { emulate: false, emulatedInstances: 0, prices: {} };
const gpusOf = (count: number, model = models[0] as string) =>
  Array.from({ length: count }, (_, slot) => ({
    address: `0000:${slot.toString(16).padStart(2, '0')}:00.0`,
    model,
    memoryGib: 80,
  }));

/** What was placed, as the rows would count it. */
function createLedger() {
  const taken = new Map<Place, { vcpus: number; memoryGib: number; gpus: Set<string> }>();
  const of = (where: Place): Allocated & { gpus: Set<string> } =>
    taken.get(where) ?? { vcpus: 0, memoryGib: 0, gpus: new Set<string>() };
  return {
    of,
    add(where: Place, offer: Offer) {
      const before = of(where);
      const gpus = freeGpus(offer, where, before).slice(0, offer.type.specs.gpus);
      const isCpu = offer.pool === 'cpu';
      taken.set(where, {
        vcpus: before.vcpus + (isCpu ? offer.vcpus : 0),
        memoryGib: before.memoryGib + (isCpu ? offer.memoryGib : 0),
        gpus: new Set([...before.gpus, ...(offer.pool === 'gpu' ? gpus : [])]),
      });
      return gpus;
    },
  };
}

const anyPlaces = fc.array(
  fc.record({
    vcpus: fc.integer({ min: 1, max: 32 }),
    memoryGib: fc.integer({ min: 1, max: 128 }),
    accepting: fc.boolean(),
    gpus: fc.integer({ min: 0, max: 8 }),
    model: fc.constantFrom(...models),
  }),
  { minLength: 1, maxLength: 5 },
);

describe('placement', () => {
  test('for any hosts and order, what is placed fits, and what fits is placed', () => {
    fc.assert(
      fc.property(anyPlaces, fc.array(fc.nat(), { maxLength: 60 }), (shapes, picks) => {
        const places = shapes.map(({ gpus, model, ...shape }, index) =>
          place({ ...shape, hostId: `h${index}`, gpus: gpusOf(gpus, model) }),
        );
        const offers = createOffers(places, options).all.filter(({ pool }) => pool !== null);
        const ledger = createLedger();
        const held = new Set<string>();
        for (const pick of picks) {
          const offer = offers[pick % offers.length] as Offer;
          const able = places.filter((one) => fits(offer, one, ledger.of(one)));
          const chosen = choosePlace(offer, places, ledger.of);
          assert.equal(chosen === undefined, able.length === 0);
          if (chosen === undefined) continue;
          assert(chosen.accepting);
          const gpus = ledger.add(chosen, offer);
          if (offer.pool !== 'gpu') continue;
          assert.equal(gpus.length, offer.type.specs.gpus);
          for (const gpu of gpus) {
            const where: string = `${chosen.hostId}/${gpu}`;
            assert(!held.has(where), 'a GPU was given twice');
            held.add(where);
          }
        }
        for (const one of places) {
          // What CPU machines may hold, with every GPU's share beside it, is never more than there is.
          const shares = one.gpus.length * Math.floor(one.vcpus / 2 / (one.gpus.length || 1));
          assert(ledger.of(one).vcpus <= Math.max(1, one.vcpus - shares));
          assert(ledger.of(one).gpus.size <= one.gpus.length);
        }
      }),
      { seed: propertySeed, numRuns: propertyRuns(300) },
    );
  });

  test('a CPU instance goes to the place with the most room, a GPU instance to the tightest', () => {
    const places = [
      place({ hostId: 'large', vcpus: 64, memoryGib: 256, gpus: gpusOf(8) }),
      place({ hostId: 'small', vcpus: 16, memoryGib: 64, gpus: gpusOf(2) }),
      place({ hostId: 'plain', vcpus: 48, memoryGib: 192 }),
    ];
    const { find } = createOffers(places, options);
    const ledger = createLedger();
    const put = (type: string) => {
      const offer = find(type) as Offer;
      const chosen = choosePlace(offer, places, ledger.of);
      if (chosen) ledger.add(chosen, offer);
      return chosen?.hostId;
    };
    assert.equal(put('cpu_16x_general'), 'plain');
    assert.equal(put('cpu_1x_general'), 'large', 'both have 32 left; the first wins');
    assert.equal(put('cpu_1x_general'), 'plain');
    assert.equal(put('gpu_1x_h200'), 'small');
    assert.equal(put('gpu_1x_h200'), 'small');
    assert.equal(put('gpu_8x_h200'), 'large', 'a whole node is left for the large one');
    assert.equal(put('gpu_1x_h200'), undefined);
  });

  test('slices are instance types of their own, and a GPU in use takes its slices', () => {
    const [pci] = ['0000:41:00.0'];
    const slice = (uuid: string) => ({
      address: `${pci}/${uuid}`,
      model: 'NVIDIA H100 80GB HBM3 MIG 1g.10gb',
      memoryGib: 10,
    });
    const node = place({ vcpus: 16, gpus: [slice('MIG-1'), slice('MIG-2')] });
    const { all, find } = createOffers([node], options);
    const offer = find('gpu_1x_h100_sxm5_mig_1g_10gb') as Offer;
    assert.equal(offer.type.gpu_description, 'H100 80GB HBM3 MIG 1g.10gb (10 GB)');
    assert(!all.some(({ type }) => /^gpu_2x.*mig/.test(type.name)), 'one slice to a machine');
    const taken = (...gpus: string[]): Allocated => ({
      vcpus: 0,
      memoryGib: 0,
      gpus: new Set(gpus),
    });
    assert.deepEqual(freeGpus(offer, node, taken(`${pci}/MIG-1`)), [`${pci}/MIG-2`]);
    assert.deepEqual(freeGpus(offer, node, taken(`${pci}`)), [], 'the whole GPU is taken');
    const whole = place({ gpus: [{ address: `${pci}`, model: 'NVIDIA H200', memoryGib: 141 }] });
    const wholeOffer = createOffers([whole], options).find('gpu_1x_h200') as Offer;
    assert.deepEqual(freeGpus(wholeOffer, whole, taken(`${pci}/MIG-1`)), [], 'a slice of it is');
  });

  test('a type has one size: the smallest that any place would give', () => {
    const places = [place({ vcpus: 8, memoryGib: 64 }), place({ hostId: 'b', vcpus: 4 })];
    const { find } = createOffers(places, options);
    assert.equal(find('cpu_4x_general')?.memoryGib, 32);
    assert.equal(find('cpu_8x_general')?.memoryGib, 64);
  });
});

for (const database of databases) {
  test(`a GPU that models use is offered to no machine until they give it back, on ${database}`, async () => {
    const cloud = await startCloud(database, { driver: { report: { gpus: gpusOf(2) } } });
    const { modelGpus } = cloud.cloud;
    const countFree = async () => {
      const offer = cloud.cloud.offers().find('gpu_2x_h200') as Offer;
      return (await cloud.cloud.capacity.available())(offer).length;
    };
    assert.equal(await countFree(), 1);
    const taken = [await modelGpus?.take(), await modelGpus?.take()];
    assert.equal(new Set(taken).size, 2);
    assert.equal(await modelGpus?.take(), null, 'none is left');
    assert.equal(await countFree(), 0);
    const [host] = await viewHosts(cloud.db, cloud.cloud.hosts.all());
    assert.deepEqual(
      host?.nodes[0]?.gpus.map(({ used_by_models }) => used_by_models),
      [true, true],
    );
    await modelGpus?.giveBack();
    assert.equal(await countFree(), 1);
    // What a killed server left behind is free after its next start.
    await modelGpus?.take();
    await cloud.another();
    assert.equal(await countFree(), 1);
  });

  test(`200 concurrent launches never assign a GPU twice, on ${database}`, async () => {
    const cloud = await startCloud(database, {
      instancesPerAccount: 1000,
      driver: { report: { vcpus: 16, memoryGib: 64, gpus: gpusOf(4) } },
    });
    // The same PCI addresses on every host and node: they are different GPUs.
    const node = (name: string, count: number) => ({
      ...{ name, online: true, vcpus: 16, memoryGib: 64, storageGib: 100 },
      gpus: gpusOf(count),
    });
    const nodes = [node('n1', 4), node('n2', 3)];
    const hosts = [
      cloud.driver,
      await cloud.addHost('cluster', 'us-west-1', { report: { vcpus: 32, memoryGib: 128, nodes } }),
      await cloud.addHost('single', 'us-west-1', { report: { vcpus: 16, gpus: gpusOf(5) } }),
    ];
    const other = await cloud.another();
    const principal = {
      kind: 'key' as const,
      role: 'owner' as const,
      keyId: '0'.repeat(32),
      accountId: cloud.accountId,
      scopes: ['cloud' as const],
      address: '127.0.0.1',
    };
    const launches = Array.from({ length: 200 }, (_, index) =>
      (index % 2 === 0 ? cloud.cloud : other).launch(principal, {
        region_name: 'us-west-1',
        instance_type_name: `gpu_${index % 5 === 0 ? 2 : 1}x_h200`,
        ssh_key_names: ['laptop'],
      }),
    );
    const answers = await Promise.allSettled(launches);
    const launched = answers.flatMap((one) => (one.status === 'fulfilled' ? [one.value] : []));
    for (const answer of answers) {
      if (answer.status === 'rejected') assert.match(answer.reason.code, /insufficient-capacity/);
    }
    await cloud.settle();
    const held = hosts.flatMap((driver, host) =>
      launched.flatMap((id) => {
        const { gpus = [], node = null } = driver.find(id)?.spec ?? {};
        return gpus.map((gpu) => `${host}/${node}/${gpu}`);
      }),
    );
    assert.equal(new Set(held).size, held.length, 'one GPU is held twice');
    assert(held.length >= 15 && held.length <= 16, `${held.length} of 16 GPUs are held`);
    const rows = await cloud.db.selectFrom('instance_gpus').selectAll().execute();
    assert.equal(rows.length, held.length);
    const twice = cloud.db
      .insertInto('instance_gpus')
      .values({ ...(rows[0] as (typeof rows)[0]), instance_id: launched[1] as string })
      .execute();
    await assert.rejects(twice, 'the database itself refuses a second holder');
  });
}
