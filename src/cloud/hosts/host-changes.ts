// Operations on hosts: add, drain, remove and check. Only an empty host can be removed, and nothing here
// touches a machine.

import type { Audit } from '#accounts/audit/audit.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import { DriverError } from '#cloud/drivers/driver.ts';
import { findRegion } from '#cloud/regions.ts';
import type { HostRow } from '#db/tables/cloud-rows.ts';
import type { Database } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { conflict, invalidBody, notFound } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import { toEndpointColumns, toHostRow, toPlainFingerprint } from './host.ts';
import type { HostDrivers, HostEndpoint } from './host-drivers.ts';
import { getHostRow, removeHost } from './host-removal.ts';
import { viewHosts } from './host-view.ts';
import type { Hosts } from './hosts.ts';
import type { HostChecks, HostView, NewHost } from './schema.ts';

export interface HostChanges {
  list(): Promise<HostView[]>;
  add(principal: SessionPrincipal, input: NewHost): Promise<HostView>;
  setDraining(principal: SessionPrincipal, name: string, draining: boolean): Promise<HostView>;
  /** With `forget`, a silent host is removed together with its instances, which count as terminated. */
  remove(principal: SessionPrincipal, name: string, forget: boolean): Promise<void>;
  check(name: string): Promise<HostChecks>;
}

export interface HostChangesParts {
  audit: Audit;
  drivers: HostDrivers;
  hosts: Hosts;
  /** Names of the hosts in the configuration file. */
  inFile: ReadonlySet<string>;
  /** The id of this server's own host; null if it has none. */
  ownId: string | null;
}

interface Context extends HostChangesParts {
  readonly db: Database;
  readonly clock: Clock;
}

const maxHosts = 1000;

export function createHostChanges(
  db: Database,
  clock: Clock,
  parts: HostChangesParts,
): HostChanges {
  const context: Context = { db, clock, ...parts };
  const { hosts } = parts;
  return {
    list: () => viewHosts(db, hosts.all()),
    add: (principal, input) => add(context, principal, input),
    setDraining: (principal, name, draining) => setDraining(context, principal, name, draining),
    async remove(principal, name, forget) {
      await removeHost(context, principal, name, forget);
      await hosts.refresh([]);
    },
    check: (name) => check(context, name),
  };
}

async function add(context: Context, principal: SessionPrincipal, input: NewHost) {
  const { db, clock, audit, hosts } = context;
  const { name, region } = input;
  if (findRegion(region) === undefined) {
    throw invalidBody(`${region} is not a region that clients know.`, 'region');
  }
  // Before enrolment, which uses up the token.
  await refuseTakenName(db, name);
  const row = toNewRow(input, await findEndpoint(context, input), clock.now());
  await db.transaction().execute(async (tx) => {
    const added = await tx
      .insertInto('hosts')
      .values(row)
      .onConflict((clash) => clash.column('name').doNothing())
      .returning('id')
      .executeTakeFirst();
    if (added === undefined) throw hostNameTaken(name);
    const { url, target } = row;
    await audit.record(tx, principal, {
      action: 'host.added',
      resourceId: row.id,
      details: { name, region, url, target },
    });
  });
  await hosts.refresh([row.id]);
  return show(context, name);
}

async function refuseTakenName(db: Database, name: string): Promise<void> {
  const known = await db.selectFrom('hosts').select('name').execute();
  if (known.some((one) => one.name === name)) throw hostNameTaken(name);
  if (known.length >= maxHosts) throw conflict(`There can be at most ${maxHosts} hosts.`);
}

const hostNameTaken = (name: string) => conflict(`A host named ${name} already exists.`, 'name');

async function findEndpoint({ drivers }: Context, input: NewHost): Promise<HostEndpoint> {
  const { token, url, fingerprint } = input;
  if (url?.startsWith('https:') && !URL.canParse(url)) {
    throw invalidBody('url is not an address such as https://host:8443.', 'url');
  }
  if (token == null) {
    if (url == null) throw invalidBody('Give a token or a url.', 'token');
    return { url, fingerprint: toPlainFingerprint(fingerprint) };
  }
  return drivers.enrol({ token, url: url ?? null }).catch((error: unknown) => {
    throw error instanceof DriverError ? invalidBody(error.message, 'token') : error;
  });
}

/** The row of a host that an operator adds while the server runs. */
export const toNewRow = (
  input: Omit<NewHost, 'token'>,
  endpoint: HostEndpoint,
  now: number,
): HostRow =>
  toHostRow({
    id: newId(),
    ...toEndpointColumns(input),
    extras: JSON.stringify({ ovn_uplink: input.ovn_uplink ?? undefined }),
    ...endpoint,
    source: 'live',
    created_at: now,
  });

async function setDraining(
  context: Context,
  principal: SessionPrincipal,
  name: string,
  draining: boolean,
) {
  const { db, audit, hosts } = context;
  await db.transaction().execute(async (tx) => {
    const { id } = await getHostRow(tx, name);
    await tx
      .updateTable('hosts')
      .set({ draining: draining ? 1 : 0 })
      .where('id', '=', id)
      .execute();
    const action = draining ? 'host.drained' : 'host.resumed';
    await audit.record(tx, principal, { action, resourceId: id, details: { name } });
  });
  await hosts.refresh([]);
  return show(context, name);
}

async function show({ db, hosts }: Context, name: string): Promise<HostView> {
  return (await viewHosts(db, [getHost(hosts, name)]))[0] as HostView;
}

function getHost(hosts: Hosts, name: string) {
  const host = hosts.all().find(({ row }) => row.name === name);
  if (host === undefined) throw notFound(`Host ${name}`);
  return host;
}

async function check({ drivers, hosts }: Context, name: string): Promise<HostChecks> {
  const { row, online, reason } = getHost(hosts, name);
  if (drivers.canOpen(row)) {
    const checks = await drivers.check(row);
    return { ok: checks.every(({ ok }) => ok), checks };
  }
  const message = `It is another server's own host. ${reason ?? 'That server is running.'}`;
  return { ok: online, checks: [{ name: 'reachability', ok: online, message }] };
}
