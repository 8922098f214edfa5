// Inbound rules as one network ACL for all machines of this installation on the endpoint's bridge; each rule
// names a machine's address. A bridge has no rules per machine, and traffic that no rule allows is dropped for
// the whole network. So rules are enforced only if no foreign machine is on it.

import { setTimeout as sleep } from 'node:timers/promises';
import { isDeepStrictEqual } from 'node:util';
import { DriverError, type FirewallSpec, type InboundRule } from '#cloud/drivers/driver.ts';
import type { DaemonClient } from '#cloud/drivers/incus/daemon/client.ts';
import { DaemonError } from '#cloud/drivers/incus/daemon/daemon-response.ts';
import { instanceName } from '#cloud/drivers/incus/machine/instance.ts';
import { createKeyedMutex } from '#lib/async/keyed-mutex.ts';
import type { AddressPlan } from './addresses.ts';
import { type AclRule, withDhcpRoutes, withMember, withNetworkRules } from './siblings.ts';

export interface NetworkAcl {
  readonly enforced: boolean;
  /** Replaces the machine's rules and its account; null removes them. */
  set(id: string, address: string | null, spec: MachineRules | null): Promise<void>;
}

export type MachineRules = Omit<FirewallSpec, 'id'>;

/** What one machine contributes to the ACL. */
interface Contribution {
  readonly rules: AclRule[];
  readonly member: { readonly account: string; readonly address: string } | null;
}

interface Acl {
  readonly description: string;
  readonly config: Record<string, string>;
  readonly egress: AclRule[];
  readonly ingress: AclRule[];
}

interface Network {
  readonly type: string;
  readonly managed: boolean;
  readonly config: Record<string, string>;
  readonly description: string;
  readonly used_by: readonly string[] | null;
}

const maxAttempts = 10;
/** Longer than the daemon takes between comparing a tag and writing. */
const settleMs = 150;

export const unenforced: NetworkAcl = { enforced: false, set: async () => {} };

export async function openNetworkAcl(
  client: DaemonClient,
  plan: AddressPlan,
  owner: string,
): Promise<NetworkAcl> {
  const network = await client.get<Network>(networkPath(plan));
  const foreign = (network.used_by ?? []).filter(
    (user) => /^\/1\.0\/instances\//.test(user) && !user.includes(`/${instanceName('')}`),
  );
  if (!network.managed || network.type !== 'bridge' || foreign.length > 0) return unenforced;
  const acl = new EnforcedAcl(client, plan, `millrace-${owner.slice(0, 12)}`);
  await acl.ensure();
  return acl;
}

class EnforcedAcl implements NetworkAcl {
  readonly enforced = true;
  readonly #client: DaemonClient;
  readonly #plan: AddressPlan;
  readonly #name: string;
  readonly #path: string;
  /** The ACL is replaced as a whole: one writer at a time here; tags protect changes by other processes. */
  readonly #mutex = createKeyedMutex();
  /** What is being written, by machine id. */
  readonly #latest = new Map<string, Contribution>();

  constructor(client: DaemonClient, plan: AddressPlan, name: string) {
    this.#client = client;
    this.#plan = plan;
    this.#name = name;
    this.#path = `/1.0/network-acls/${name}`;
  }

  ensure(): Promise<void> {
    return ensureAcl(this.#client, this.#plan, this.#name);
  }

  async set(id: string, address: string | null, spec: MachineRules | null): Promise<void> {
    const wanted = toContribution(this.#plan, id, address, spec);
    this.#latest.set(id, wanted);
    try {
      await this.#write(id, wanted);
      await this.#confirm(id, wanted);
    } finally {
      if (this.#latest.get(id) === wanted) this.#latest.delete(id);
    }
  }

  #write(id: string, wanted: Contribution): Promise<void> {
    return this.#mutex.run('acl', async () => {
      for (let attempt = 1; ; attempt += 1) {
        try {
          return await this.#change(id, wanted);
        } catch (error) {
          const code = error instanceof DaemonError ? error.code : 0;
          if (attempt === maxAttempts || (code !== 412 && code !== 404)) throw error;
          if (code === 404) await this.ensure();
        }
      }
    });
  }

  async #change(id: string, wanted: Contribution): Promise<void> {
    const { value: acl, tag } = await this.#client.tagged<Acl>(this.#path);
    const others = acl.ingress.filter(({ description }) => description !== describe(id));
    const config = withMember(acl.config, id, wanted.member);
    const isGone = others.length === acl.ingress.length && isDeepStrictEqual(config, acl.config);
    if (isGone && wanted.rules.length === 0) return;
    const { description, egress } = acl;
    const ingress = withNetworkRules(this.#plan, config, [...others, ...wanted.rules]);
    const body = { description, config, egress, ingress };
    await this.#client.run('PUT', this.#path, { body, headers: { 'if-match': tag } });
  }

  /** Verifies a write: the daemon's tag comparison is not atomic, so one of two concurrent writes may be lost. */
  async #confirm(id: string, wanted: Contribution): Promise<void> {
    for (let attempt = 1; attempt < maxAttempts; attempt += 1) {
      await sleep(settleMs);
      if (this.#latest.get(id) !== wanted) return;
      const acl = await this.#client.find<Acl>(this.#path);
      const kept = (acl?.ingress ?? []).filter(({ description }) => description === describe(id));
      const config = withMember(acl?.config ?? {}, id, wanted.member);
      const isMember = isDeepStrictEqual(config, acl?.config ?? {});
      if (kept.length === wanted.rules.length && isMember) return;
      await this.#write(id, wanted);
    }
  }
}

async function ensureAcl(client: DaemonClient, plan: AddressPlan, name: string): Promise<void> {
  if (!(await client.find(`/1.0/network-acls/${name}`))) {
    const description = 'Inbound rules of Millrace machines';
    await client
      .run('POST', '/1.0/network-acls', { body: { name, description } })
      .catch((error) => {
        if (!(error instanceof DaemonError && /already/i.test(error.message))) throw error;
      });
  }
  const { config, description } = await client.get<Network>(networkPath(plan));
  const acls = (config['security.acls'] ?? '').split(',').filter((one) => one !== '');
  const dnsmasq = withDhcpRoutes(plan, config['raw.dnsmasq']);
  if (acls.includes(name) && config['raw.dnsmasq'] === dnsmasq) return;
  const changed = {
    ...config,
    'raw.dnsmasq': dnsmasq,
    'security.acls': [...new Set([...acls, name])].join(','),
    'security.acls.default.ingress.action': 'drop',
    'security.acls.default.egress.action': 'allow',
  };
  await client.run('PUT', networkPath(plan), { body: { config: changed, description } });
}

const networkPath = (plan: AddressPlan) => `/1.0/networks/${encodeURIComponent(plan.network)}`;
const describe = (id: string) => `millrace ${id}`;

function toContribution(
  plan: AddressPlan,
  id: string,
  address: string | null,
  spec: MachineRules | null,
): Contribution {
  if (address === null || spec === null) return { rules: [], member: null };
  const { account, firewall } = spec;
  return {
    rules: toAclRules(id, address, plan.gateway, firewall),
    member: account === undefined ? null : { account, address },
  };
}

/** The gateway may always connect to ssh, so that the server can tell whether a machine is up. */
export function toAclRules(
  id: string,
  address: string,
  gateway: string,
  rules: readonly InboundRule[],
): AclRule[] {
  const own: InboundRule = {
    protocol: 'tcp',
    portRange: [22, 22],
    sourceNetwork: `${gateway}/32`,
  };
  return [own, ...rules].flatMap(({ protocol, portRange, sourceNetwork }) => {
    if (!/^\d{1,3}(\.\d{1,3}){3}(\/\d{1,2})?$/.test(sourceNetwork)) {
      throw new DriverError('impossible', `"${sourceNetwork}" is not an IPv4 network.`);
    }
    const common = {
      action: 'allow',
      state: 'enabled',
      description: describe(id),
      destination: `${address}/32`,
      ...(sourceNetwork.endsWith('/0') ? {} : { source: sourceNetwork }),
    };
    if (protocol === 'icmp') return [{ ...common, protocol: 'icmp4' }];
    const [low, high] = portRange ?? [0, 65_535];
    const everyPort = low <= 1 && high === 65_535;
    // Ports imply TCP or UDP. Only a range of all ports also allows protocols without ports.
    if (protocol === 'all' && everyPort) return [common];
    const ports = everyPort ? {} : { destination_port: low === high ? `${low}` : `${low}-${high}` };
    const protocols = protocol === 'all' ? ['tcp', 'udp'] : [protocol];
    return protocols.map((one) => ({ ...common, protocol: one, ...ports }));
  });
}
