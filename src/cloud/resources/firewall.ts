// Inbound rules of an account, which apply to all of its instances, and the rules of one instance. A change
// is written here and applied to running machines by the reconciler.

import type { Audit } from '#accounts/audit/audit.ts';
import type { Principal } from '#accounts/principal.ts';
import type { InboundRule } from '#cloud/drivers/driver.ts';
import { regionWithoutFirewall } from '#cloud/regions.ts';
import type { FirewallRule } from '#cloud/schema.ts';
import { lockAccount } from '#db/lock-account.ts';
import type { InstanceRow } from '#db/tables/cloud-rows.ts';
import type { Database, Tx } from '#db/tables/tables.ts';
import type { Clock } from '#lib/clock.ts';
import { defaultRules, openRules, parseRules, toInboundRule } from './firewall-rule.ts';

export interface InstanceFirewall {
  /** The rules that apply to one instance: the account's and those of its rulesets. */
  rulesOf(instance: InstanceRow): Promise<readonly InboundRule[]>;
}

export interface AccountFirewall extends InstanceFirewall {
  accountRules(accountId: string): Promise<FirewallRule[]>;
  /** `member` is the name of the rules in the request, for error messages. */
  setAccountRules(
    principal: Principal,
    rules: readonly FirewallRule[],
    member: 'data' | 'rules',
  ): Promise<FirewallRule[]>;
}

export function createAccountFirewall(
  db: Database,
  clock: Clock,
  { audit, nudge }: { audit: Audit; nudge(): void },
): AccountFirewall {
  async function accountRules(accountId: string): Promise<FirewallRule[]> {
    const row = await db
      .selectFrom('firewall_rules')
      .select('rules')
      .where('account_id', '=', accountId)
      .executeTakeFirst();
    return row === undefined ? defaultRules : JSON.parse(row.rules);
  }

  return {
    accountRules,

    async setAccountRules(principal, input, member) {
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
        await markStale(tx, clock.now()).where('account_id', '=', accountId).execute();
        const details = { rules: rules.length };
        await audit.record(tx, principal, { action: 'firewall_rules.updated', details });
      });
      nudge();
      return rules;
    },

    async rulesOf({ id, account_id, region }) {
      if (region === regionWithoutFirewall) return openRules;
      const rulesets = await db
        .selectFrom('firewall_rulesets')
        .innerJoin('instance_rulesets', 'instance_rulesets.ruleset_id', 'firewall_rulesets.id')
        .select('rules')
        .where('instance_id', '=', id)
        .execute();
      const own = rulesets.flatMap(({ rules }) => JSON.parse(rules) as FirewallRule[]);
      return [...(await accountRules(account_id)), ...own].map(toInboundRule);
    },
  };
}

/** An update that makes instances due for new rules; the caller narrows it. It raises the version as well,
 * so that a step that began with the old rules can't mark them as applied. */
export const markStale = (tx: Tx, now: number) =>
  tx
    .updateTable('instances')
    .set((row) => ({ firewall_stale: 1, version: row('version', '+', 1), due_at: now }))
    .where('status', 'in', ['booting', 'active', 'unhealthy']);
