// Inbound rules: one set for the whole account, and rulesets that instances name at launch. A change is
// written down and carried to running machines by the reconciler.

import type { Audit } from '#accounts/audit.ts';
import type { Principal } from '#accounts/principal.ts';
import type { InboundRule } from '#cloud/drivers/driver.ts';
import { quotaExceeded, regionNotFound, rulesetInUse, rulesetNotFound } from '#cloud/errors.ts';
import { findRegion, regionWithoutFirewall, toRegion } from '#cloud/regions.ts';
import type { FirewallRule, NewRuleset, Ruleset, RulesetChange } from '#cloud/schema.ts';
import { toWireTime } from '#cloud/wire-time.ts';
import type { FirewallRulesetRow, InstanceRow } from '#db/cloud-rows.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { Database, Tx } from '#db/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { newId } from '#lib/ids.ts';
import { defaultRules, openRules, parseRules, toMachineRule } from './firewall-rule.ts';

export interface Firewall {
  accountRules(accountId: string): Promise<FirewallRule[]>;
  /** `member` is what the rules are called in the request, for what is said about them. */
  setAccountRules(
    principal: Principal,
    rules: readonly FirewallRule[],
    member: 'data' | 'rules',
  ): Promise<FirewallRule[]>;
  list(accountId: string): Promise<Ruleset[]>;
  get(accountId: string, id: string): Promise<Ruleset>;
  create(principal: Principal, input: NewRuleset): Promise<Ruleset>;
  update(principal: Principal, id: string, change: RulesetChange): Promise<Ruleset>;
  remove(principal: Principal, id: string): Promise<void>;
  /** What applies to one machine: the account's rules and those of its rulesets. */
  rulesOf(instance: InstanceRow): Promise<readonly InboundRule[]>;
}

export function createFirewall(
  db: Database,
  clock: Clock,
  parts: { audit: Audit; nudge(): void },
  options: { rulesetsPerAccount: number },
): Firewall {
  const { audit, nudge } = parts;

  async function accountRules(accountId: string): Promise<FirewallRule[]> {
    const row = await db
      .selectFrom('firewall_rules')
      .select('rules')
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    return row === undefined ? defaultRules : JSON.parse(row.rules);
  }

  const setAccountRules: Firewall['setAccountRules'] = async (principal, input, member) => {
    const rules = parseRules(input, member);
    const { accountId } = principal;
    await db.transaction().execute(async (tx) => {
      await lockAccount(tx, accountId);
      const text = JSON.stringify(rules);
      await tx
        .insertInto('firewall_rules')
        .values({ account_id: accountId, rules: text })
        .onConflict((conflict) => conflict.column('account_id').doUpdateSet({ rules: text }))
        .execute();
      await markStale(tx, (query) => query.where('account_id', '=', accountId));
      const details = { rules: rules.length };
      await audit.record(tx, principal, { action: 'firewall_rules.updated', details });
    });
    nudge();
    return rules;
  };

  async function list(accountId: string): Promise<Ruleset[]> {
    const rows = await db
      .selectFrom('firewall_rulesets')
      .selectAll()
      .where('account_id', '=', accountId)
      .orderBy('created_at')
      .orderBy('id')
      .execute();
    return Promise.all(rows.map((row) => toRuleset(db, row)));
  }

  async function get(accountId: string, id: string): Promise<Ruleset> {
    return toRuleset(db, await getRow(db, accountId, id));
  }

  async function create(principal: Principal, { name, region, rules }: NewRuleset) {
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
      const { count } = await tx
        .selectFrom('firewall_rulesets')
        .select((one) => one.fn.countAll<number>().as('count'))
        .where('account_id', '=', accountId)
        .executeTakeFirstOrThrow();
      if (count >= options.rulesetsPerAccount) throw quotaExceeded();
      await tx.insertInto('firewall_rulesets').values(row).execute();
      await record(tx, principal, 'firewall_ruleset.created', row);
    });
    return toRuleset(db, row);
  }

  async function update(principal: Principal, id: string, { name, rules }: RulesetChange) {
    await db.transaction().execute(async (tx) => {
      await lockAccount(tx, principal.accountId);
      const old = await getRow(tx, principal.accountId, id);
      const row = {
        ...old,
        name: name ?? old.name,
        rules: rules == null ? old.rules : JSON.stringify(parseRules(rules)),
      };
      await tx.updateTable('firewall_rulesets').set(row).where('id', '=', id).execute();
      if (rules != null) {
        await markStale(tx, (query) =>
          query.where('id', 'in', (sub) =>
            sub.selectFrom('instance_rulesets').select('instance_id').where('ruleset_id', '=', id),
          ),
        );
      }
      await record(tx, principal, 'firewall_ruleset.updated', row);
    });
    nudge();
    return get(principal.accountId, id);
  }

  async function remove(principal: Principal, id: string): Promise<void> {
    await db.transaction().execute(async (tx) => {
      await lockAccount(tx, principal.accountId);
      const row = await getRow(tx, principal.accountId, id);
      if ((await usersOf(tx, id)).length > 0) throw rulesetInUse();
      await tx.deleteFrom('firewall_rulesets').where('id', '=', id).execute();
      await record(tx, principal, 'firewall_ruleset.deleted', row);
    });
  }

  async function rulesOf(instance: InstanceRow): Promise<readonly InboundRule[]> {
    if (instance.region === regionWithoutFirewall) {
      return openRules;
    }
    const rulesets = await db
      .selectFrom('firewall_rulesets')
      .innerJoin('instance_rulesets', 'instance_rulesets.ruleset_id', 'firewall_rulesets.id')
      .select('rules')
      .where('instance_id', '=', instance.id)
      .execute();
    const own = rulesets.flatMap(({ rules }) => JSON.parse(rules) as FirewallRule[]);
    return [...(await accountRules(instance.account_id)), ...own].map(toMachineRule);
  }

  /** The version counts too: a step that began with the old rules must not mark them as applied. */
  async function markStale(tx: Tx, narrow: (query: ReturnType<typeof stale>) => typeof query) {
    await narrow(stale(tx)).execute();
  }
  const stale = (tx: Tx) =>
    tx
      .updateTable('instances')
      .set((row) => ({
        firewall_stale: 1,
        version: row('version', '+', 1),
        due_at: clock.now(),
      }))
      .where('status', 'in', ['booting', 'active', 'unhealthy']);

  function record(
    tx: Tx,
    principal: Principal,
    action: 'firewall_ruleset.created' | 'firewall_ruleset.updated' | 'firewall_ruleset.deleted',
    { id, name, region }: FirewallRulesetRow,
  ) {
    return audit.record(tx, principal, { action, resourceId: id, details: { name, region } });
  }

  return { accountRules, setAccountRules, list, get, create, update, remove, rulesOf };
}

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

async function usersOf(db: Database | Tx, id: string): Promise<string[]> {
  const rows = await db
    .selectFrom('instance_rulesets')
    .innerJoin('instances', 'instances.id', 'instance_rulesets.instance_id')
    .select('instances.id')
    .where('ruleset_id', '=', id)
    .where('status', '!=', 'terminated')
    .orderBy('instances.id')
    .execute();
  return rows.map((row) => row.id);
}

async function toRuleset(db: Database, row: FirewallRulesetRow): Promise<Ruleset> {
  return {
    id: row.id,
    name: row.name,
    region: toRegion(row.region),
    rules: JSON.parse(row.rules),
    created: toWireTime(row.created_at),
    instance_ids: await usersOf(db, row.id),
  };
}
