// Checks that an operator can run on an endpoint before machines are placed on it. Each result is a sentence.

import { createDaemonClient, type DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import { engineOf, flavorOf, type ServerInfo } from '#cloud/drivers/incus/daemon/flavor.ts';
import { smallImage } from '#cloud/drivers/incus/images/image-recipe.ts';
import { listImages } from '#cloud/drivers/incus/images/images.ts';
import { planAddresses } from '#cloud/drivers/incus/network/addresses.ts';
import { checkUplink } from '#cloud/drivers/incus/network/ovn-uplink.ts';
import { defaults, type IncusOptions } from './context.ts';
import { takeInventory } from './inventory.ts';

export interface EndpointCheck {
  readonly name: 'reachability' | 'trust' | 'storage' | 'network' | 'images' | 'gpus';
  readonly ok: boolean;
  readonly message: string;
}

const names: readonly EndpointCheck['name'][] = ['storage', 'network', 'images', 'gpus'];

export async function checkEndpoint(options: IncusOptions): Promise<EndpointCheck[]> {
  const client = createDaemonClient(options.endpoint, options.project ?? defaults.project);
  try {
    const checks: EndpointCheck[] = [];
    const info = await attempt(checks, 'reachability', async () => {
      const answer = await client.get<ServerInfo>('/1.0');
      return [answer, `${options.endpoint.url} answers.`] as const;
    });
    const trusted = info?.auth === 'trusted';
    checks.push({
      name: 'trust',
      ok: trusted,
      message: trusted
        ? `${engineOf(info)} trusts this server.`
        : 'It does not trust this server: enrol with a one-time token.',
    });
    if (!trusted) {
      return [...checks, ...names.map((name) => ({ name, ok: false, message: 'Not looked at.' }))];
    }
    await lookInside(client, info, options, checks);
    return checks;
  } finally {
    await client.close();
  }
}

async function lookInside(
  client: DaemonClient,
  info: ServerInfo,
  options: IncusOptions,
  checks: EndpointCheck[],
) {
  const { pool = defaults.pool, network = flavorOf(info).network, target = null } = options;
  await attempt(checks, 'storage', async () => {
    const { driver } = await client.get<{ driver: string }>(
      `/1.0/storage-pools/${encodeURIComponent(pool)}`,
    );
    const can = driver === 'dir' ? 'keeps no disk limits and reports no usage' : 'limits disks';
    return [driver, `Pool "${pool}" (${driver}) ${can}.`] as const;
  });
  await attempt(checks, 'network', async () => {
    const plan = await planAddresses(client, network, options.addresses);
    const range = `Network "${network}" has ${plan.first} to ${plan.last} for machines.`;
    const { ovnUplink: uplink } = options;
    if (uplink === undefined) return [plan, range] as const;
    await checkUplink(client, flavorOf(info), uplink);
    return [plan, `${range} Accounts get private networks on "${uplink}".`] as const;
  });
  await attempt(checks, 'images', async () => {
    const images = (await listImages(client)).map(({ name }) => name);
    const wanted = options.defaultImage ?? smallImage;
    if (!images.includes(wanted)) {
      const ways = '`millrace images import` adds one, `millrace images build` a small one.';
      throw new Error(`There is no image "${wanted}": ${ways}`);
    }
    return [
      images,
      `${images.length} ${images.length === 1 ? 'image' : 'images'}, "${wanted}" by default.`,
    ] as const;
  });
  await attempt(checks, 'gpus', async () => {
    const gpus = options.gpus ?? {};
    const report = await takeInventory(client, info, { pool, target, gpus });
    const models = [...new Set(report.gpus.map(({ model }) => model))];
    const found =
      report.gpus.length === 0 ? 'No GPUs.' : `${report.gpus.length} GPUs: ${models.join(', ')}.`;
    return [models, found] as const;
  });
}

async function attempt<Value>(
  checks: EndpointCheck[],
  name: EndpointCheck['name'],
  look: () => Promise<readonly [Value, string]>,
): Promise<Value | undefined> {
  try {
    const [value, message] = await look();
    checks.push({ name, ok: true, message });
    return value;
  } catch (error) {
    checks.push({ name, ok: false, message: (error as Error).message });
    return undefined;
  }
}
