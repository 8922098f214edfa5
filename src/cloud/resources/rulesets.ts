// Firewall rulesets: named sets of inbound rules that instances reference at launch.

import type { Audit } from '#accounts/audit/audit.ts';
import type { Principal } from '#accounts/principal.ts';
import { quotaExceeded, regionNotFound, rulesetInUse, rulesetNotFound } from '#cloud/errors.ts';
import { findRegion, toRegion } from '#cloud/regions.ts';
import type { NewRuleset, Ruleset, RulesetChange } from '#cloud/schema.ts';
import { toWireTime } from '#cloud/wire.ts';
import { countRows } from '#db/count-rows.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { FirewallRulesetRow } from '#db/tables/cloud-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import { markStale } from './firewall.ts';
import { parseRules } from './firewall-rule.ts';

export interface Rulesets {
  list(accountId: string): Promise<Ruleset[]>;
  get(accountId: string, id: string): Promise<Ruleset>;
  create(principal: Principal, input: NewRuleset): Promise<Ruleset>;
  update(principal: Principal, id: string, change: RulesetChange): Promise<Ruleset>;
  remove(principal: Principal, id: string): Promise<void>;
}

export interface RulesetParts {
  audit: Audit;
  nudge(): void;
}

interface Context extends RulesetParts {
  readonly db: Database;
  readonly clock: Clock;
  readonly maxPerAccount: number;
}

export function createRulesets(
  db: Database,
  clock: Clock,
  parts: RulesetParts,
  { maxPerAccount }: { maxPerAccount: number },
): Rulesets {
  const context: Context = { db, clock, maxPerAccount, ...parts };
  return {
    async list(accountId) {
      const rows = await db
        .selectFrom('firewall_rulesets')
        .selectAll()
        .where('account_id', '=', accountId)
        .orderBy('created_at')
        .orderBy('id')
        .execute();
      const users = await findUsers(db, accountId);
      return rows.map((row) => toRuleset(row, users));
    },
    async get(accountId, id) {
      const row = await getRow(db, accountId, id);
      return toRuleset(row, await findUsers(db, accountId));
    },
    create: (principal, input) => create(context, principal, input),
    update: (principal, id, change) => update(context, principal, id, change),
    remove: (principal, id) => remove(context, principal, id),
  };
}

async function create(context: Context, principal: Principal, input: NewRuleset) {
  const { db, clock, audit } = context;
  const { name, region, rules } = input;
  if (findRegion(region) === undefined) throw regionNotFound(region);
  const { accountId } = principal;
  const row: FirewallRulesetRow = {
    id: newId(),
    account_id: accountId,
    name,
    region,
    rules: JSON.stringify(parseRules(rules)),
    created_at: clock.now(),
  };
  await db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    const own = tx.selectFrom('firewall_rulesets').where('account_id', '=', accountId);
    if ((await countRows(own)) >= context.maxPerAccount) throw quotaExceeded();
    await tx.insertInto('firewall_rulesets').values(row).execute();
    await audit.record(tx, principal, { action: 'firewall_ruleset.created', ...toSubject(row) });
  });
  return toRuleset(row, new Map());
}

async function update(context: Context, principal: Principal, id: string, change: RulesetChange) {
  const { db, clock, audit } = context;
  const { name, rules } = change;
  const { accountId } = principal;
  const updated = await db.transaction().execute(async (tx) => {
    await lockAccount(tx, accountId);
    const old = await getRow(tx, accountId, id);
    const row = {
      ...old,
      name: name ?? old.name,
      rules: rules == null ? old.rules : JSON.stringify(parseRules(rules)),
    };
    await tx.updateTable('firewall_rulesets').set(row).where('id', '=', id).execute();
    if (rules != null) {
      await markStale(tx, clock.now())
        .where('id', 'in', (query) =>
          query.selectFrom('instance_rulesets').select('instance_id').where('ruleset_id', '=', id),
        )
        .execute();
    }
    await audit.record(tx, principal, { action: 'firewall_ruleset.updated', ...toSubject(row) });
    return row;
  });
  context.nudge();
  return toRuleset(updated, await findUsers(db, accountId));
}

async function remove({ db, audit }: Context, principal: Principal, id: string): Promise<void> {
  await db.transaction().execute(async (tx) => {
    await lockAccount(tx, principal.accountId);
    const row = await getRow(tx, principal.accountId, id);
    if ((await findUsers(tx, principal.accountId)).has(id)) throw rulesetInUse();
    await tx.deleteFrom('firewall_rulesets').where('id', '=', id).execute();
    await audit.record(tx, principal, { action: 'firewall_ruleset.deleted', ...toSubject(row) });
  });
}

/** What the audit log records about a ruleset. */
const toSubject = ({ id, name, region }: FirewallRulesetRow) => ({
  resourceId: id,
  details: { name, region },
});

async function getRow(db: Database | Tx, accountId: string, id: string) {
  const row = await db
    .selectFrom('firewall_rulesets')
    .selectAll()
    .where('id', '=', id)
    .where('account_id', '=', accountId)
    .executeTakeFirst();
  if (row === undefined) throw rulesetNotFound();
  return row;
}

type Users = ReadonlyMap<string, readonly { instance_id: string }[]>;

/** The instances that use each ruleset of the account, by the ruleset's id. */
async function findUsers(db: Database | Tx, accountId: string): Promise<Users> {
  const rows = await db
    .selectFrom('instance_rulesets')
    .innerJoin('instances', 'instances.id', 'instance_rulesets.instance_id')
    .select(['ruleset_id', 'instance_id'])
    .where('account_id', '=', accountId)
    .where('status', '!=', 'terminated')
    .orderBy('instance_id')
    .execute();
  return Map.groupBy(rows, ({ ruleset_id }) => ruleset_id);
}

function toRuleset(row: FirewallRulesetRow, users: Users): Ruleset {
  return {
    id: row.id,
    name: row.name,
    region: toRegion(row.region),
    rules: JSON.parse(row.rules),
    created: toWireTime(row.created_at),
    instance_ids: (users.get(row.id) ?? []).map(({ instance_id }) => instance_id),
  };
}
