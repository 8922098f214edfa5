// What operators do to hosts: add, drain, remove and check them. Only what is empty can be removed, and
// nothing here touches a machine.

import type { Audit } from '#accounts/audit.ts';
import type { SessionPrincipal } from '#accounts/principal.ts';
import { DriverError } from '#cloud/drivers/driver.ts';
import { findRegion } from '#cloud/regions.ts';
import type { HostRow } from '#db/cloud-rows.ts';
import type { Database, Tx } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { conflict, invalidBody, notFound } from '#lib/errors.ts';
import { newId } from '#lib/ids.ts';
import type { HostDrivers } from './host-drivers.ts';
import { viewHosts } from './host-view.ts';
import type { Hosts } from './hosts.ts';
import type { HostChecks, HostView, NewHost } from './schema.ts';

export interface HostChanges {
  list(): Promise<HostView[]>;
  add(principal: SessionPrincipal, input: NewHost): Promise<HostView>;
  setDraining(principal: SessionPrincipal, name: string, draining: boolean): Promise<HostView>;
  /** With `forget` also while it has machines, if it is silent: they count as terminated. */
  remove(principal: SessionPrincipal, name: string, forget: boolean): Promise<void>;
  check(name: string): Promise<HostChecks>;
}

export interface HostChangesParts {
  audit: Audit;
  drivers: HostDrivers;
  hosts: Hosts;
  /** Names that the configuration file gives. */
  inFile: ReadonlySet<string>;
  ownId: string | null;
}

const maxHosts = 1000;

export function createHostChanges(
  db: Database,
  clock: Clock,
  parts: HostChangesParts,
): HostChanges {
  const { audit, drivers, hosts } = parts;

  async function show(name: string): Promise<HostView> {
    const host = hosts.all().find(({ row }) => row.name === name);
    if (host === undefined) throw notFound(`Host ${name}`);
    return (await viewHosts(db, [host]))[0] as HostView;
  }

  async function add(principal: SessionPrincipal, input: NewHost): Promise<HostView> {
    const { name, region } = input;
    if (findRegion(region) === undefined) {
      throw invalidBody(`${region} is not a region that clients know.`, 'region');
    }
    await checkNew(name);
    const row = toRow(input, await findEndpoint(input), clock.now());
    await db.transaction().execute(async (tx) => {
      const added = await tx
        .insertInto('hosts')
        .values(row)
        .onConflict((clash) => clash.column('name').doNothing())
        .returning('id')
        .executeTakeFirst();
      if (added === undefined) throw nameTaken(name);
      const { url, target } = row;
      await audit.record(tx, principal, {
        action: 'host.added',
        resourceId: row.id,
        details: { name, region, url, target },
      });
    });
    await hosts.look([row.id]);
    return show(name);
  }

  /** Before the token is used up. */
  async function checkNew(name: string): Promise<void> {
    const known = await db.selectFrom('hosts').select('name').execute();
    if (known.some((one) => one.name === name)) throw nameTaken(name);
    if (known.length >= maxHosts) throw conflict(`There can be ${maxHosts} hosts at most.`);
  }

  async function findEndpoint({ token, url, fingerprint }: NewHost) {
    if (url?.startsWith('https:') && !URL.canParse(url)) {
      throw invalidBody('url is not an address such as https://host:8443.', 'url');
    }
    if (token == null) {
      if (url == null) throw invalidBody('Give a token or a url.', 'token');
      return { url, fingerprint: fingerprint?.toLowerCase().replaceAll(':', '') ?? null };
    }
    return drivers.enrol({ token, url: url ?? null }).catch((error: unknown) => {
      throw error instanceof DriverError ? invalidBody(error.message, 'token') : error;
    });
  }

  async function setDraining(principal: SessionPrincipal, name: string, draining: boolean) {
    await db.transaction().execute(async (tx) => {
      const row = await getRow(tx, name);
      await tx
        .updateTable('hosts')
        .set({ draining: draining ? 1 : 0 })
        .where('id', '=', row.id)
        .execute();
      const action = draining ? 'host.drained' : 'host.resumed';
      await audit.record(tx, principal, { action, resourceId: row.id, details: { name } });
    });
    await hosts.look([]);
    return show(name);
  }

  async function remove(principal: SessionPrincipal, name: string, forget: boolean) {
    if (parts.inFile.has(name)) {
      throw conflict(`Host ${name} is in the configuration file: remove it there first.`);
    }
    await db.transaction().execute(async (tx) => {
      // A launch may be about to choose it.
      await tx.updateTable('turns').set({ name: 'launch' }).where('name', '=', 'launch').execute();
      const row = await getRow(tx, name);
      if (row.id === parts.ownId) {
        throw conflict(`Host ${name} is this server: drain it, or set cloud.driver to none.`);
      }
      const forgotten = forget ? await forgetAll(tx, row) : {};
      await refuseWhileUsed(tx, row);
      await tx.deleteFrom('hosts').where('id', '=', row.id).execute();
      await audit.record(tx, principal, {
        action: 'host.removed',
        resourceId: row.id,
        details: { name, ...forgotten },
      });
    });
    await hosts.look([]);
  }

  /** For a host that will never answer again: nothing else could end its machines, or their bills. */
  async function forgetAll(tx: Tx, { id, name }: HostRow) {
    if (hosts.all().some(({ row, online }) => row.id === id && online)) {
      throw conflict(`Host ${name} answers: terminate its machines instead of forgetting them.`);
    }
    const ended = await tx
      .updateTable('instances')
      .set((row) => ({
        status: 'terminated' as const,
        terminated_at: clock.now(),
        user_data: null,
        due_at: null,
        version: row('version', '+', 1),
      }))
      .where('host_id', '=', id)
      .where('status', '!=', 'terminated')
      .returning('id')
      .execute();
    await tx.deleteFrom('instance_gpus').where('host_id', '=', id).execute();
    const lost = await tx
      .deleteFrom('filesystems')
      .where('host_id', '=', id)
      .returning('id')
      .execute();
    return { machines: ended.length, filesystems: lost.length };
  }

  return {
    list: () => viewHosts(db, hosts.all()),
    add,
    setDraining,
    remove,
    async check(name) {
      const host = hosts.all().find(({ row }) => row.name === name);
      if (host === undefined) throw notFound(`Host ${name}`);
      const checks = drivers.canOpen(host.row)
        ? await drivers.check(host.row)
        : [{ name: 'reachability' as const, ok: host.online, message: ofAnother(host.reason) }];
      return { ok: checks.every(({ ok }) => ok), checks: [...checks] };
    },
  };
}

const nameTaken = (name: string) => conflict(`There is a host ${name} already.`);

const ofAnother = (reason: string | null) =>
  `It is another server's own host. ${reason ?? 'That server runs.'}`;

async function getRow(tx: Tx, name: string): Promise<HostRow> {
  const row = await tx.selectFrom('hosts').selectAll().where('name', '=', name).executeTakeFirst();
  if (row === undefined) throw notFound(`Host ${name}`);
  return row;
}

async function refuseWhileUsed(tx: Tx, { id, name }: HostRow): Promise<void> {
  for (const [table, ended, words] of [
    ['instances', 'terminated', 'machines. Drain it and terminate them first.'],
    ['filesystems', '', 'filesystems. Delete them first.'],
  ] as const) {
    const { count } = await tx
      .selectFrom(table as 'instances')
      .select((row) => row.fn.countAll<number>().as('count'))
      .where('host_id', '=', id)
      .$if(ended !== '', (query) => query.where('status', '!=', 'terminated'))
      .executeTakeFirstOrThrow();
    if (count > 0) throw conflict(`Host ${name} has ${count} ${words}`);
  }
}

export function toRow(
  input: Omit<NewHost, 'token'>,
  endpoint: { url: string; fingerprint: string | null },
  now: number,
): HostRow {
  return {
    id: newId(),
    name: input.name,
    region: input.region,
    driver: 'incus',
    source: 'live',
    ...endpoint,
    target: input.target ?? null,
    pool: input.pool ?? null,
    network: input.network ?? null,
    project: input.project ?? null,
    filesystems_path: input.filesystems_path ?? null,
    extras: '{}',
    draining: 0,
    created_at: now,
    seen_at: null,
    status: 'offline',
    reason: null,
    report: null,
  };
}
