// Routes of firewalls: the account's rules, in their old form and as the ruleset called `global`, and
// rulesets.

import type {} from '@fastify/swagger';
import type { TypeBoxTypeProvider } from '@fastify/type-provider-typebox';
import type { FastifyInstance } from 'fastify';
import { principalOf } from '#accounts/authenticate.ts';
import type { AccountFirewall } from '#cloud/resources/firewall.ts';
import type { Rulesets } from '#cloud/resources/rulesets.ts';
import {
  type FirewallRule,
  FirewallRules,
  GlobalRuleset,
  GlobalRulesetChange,
  IdParams,
  NewFirewallRules,
  NewRuleset,
  Ruleset,
  RulesetChange,
} from '#cloud/schema.ts';
import { toId } from '#cloud/wire.ts';
import { Type } from '#lib/schema/schema-builder.ts';
import { operationsOf } from './operation.ts';

export interface FirewallRouteParts {
  firewall: Pick<AccountFirewall, 'accountRules' | 'setAccountRules'>;
  rulesets: Rulesets;
}

const operation = operationsOf('Firewall');

export function firewallRoutes(scope: FastifyInstance, parts: FirewallRouteParts): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  const { firewall } = parts;

  app.get(
    '/firewall-rules',
    operation('List the rules of the account', FirewallRules),
    async (request) => ({
      data: (await firewall.accountRules(principalOf(request).accountId)).map(toShown),
    }),
  );
  app.put(
    '/firewall-rules',
    operation('Replace the rules of the account', FirewallRules, { body: NewFirewallRules }),
    async (request) => {
      const rules = await firewall.setAccountRules(principalOf(request), request.body.data, 'data');
      return { data: rules.map(toShown) };
    },
  );
  app.get(
    '/firewall-rulesets/global',
    operation('Get the global ruleset', GlobalRuleset),
    async (request) => ({
      data: toGlobal(await firewall.accountRules(principalOf(request).accountId)),
    }),
  );
  app.patch(
    '/firewall-rulesets/global',
    operation('Change the global ruleset', GlobalRuleset, { body: GlobalRulesetChange }),
    async (request) => {
      const { rules } = request.body;
      const principal = principalOf(request);
      const now =
        rules == null
          ? await firewall.accountRules(principal.accountId)
          : await firewall.setAccountRules(principal, rules, 'rules');
      return { data: toGlobal(now) };
    },
  );
  rulesetRoutes(scope, parts.rulesets);
}

function rulesetRoutes(scope: FastifyInstance, rulesets: Rulesets): void {
  const app = scope.withTypeProvider<TypeBoxTypeProvider>();
  app.get(
    '/firewall-rulesets',
    operation('List rulesets', Type.Array(Ruleset)),
    async (request) => ({ data: await rulesets.list(principalOf(request).accountId) }),
  );
  app.post(
    '/firewall-rulesets',
    operation('Create a ruleset', Ruleset, { body: NewRuleset }),
    async (request) => ({ data: await rulesets.create(principalOf(request), request.body) }),
  );
  app.get(
    '/firewall-rulesets/:id',
    operation('Get a ruleset', Ruleset, { params: IdParams }),
    async (request) => ({
      data: await rulesets.get(principalOf(request).accountId, toId(request.params.id)),
    }),
  );
  app.patch(
    '/firewall-rulesets/:id',
    operation('Change a ruleset', Ruleset, { params: IdParams, body: RulesetChange }),
    async (request) => ({
      data: await rulesets.update(principalOf(request), toId(request.params.id), request.body),
    }),
  );
  app.delete(
    '/firewall-rulesets/:id',
    {
      ...operation('Delete a ruleset that no instance uses', Type.Object({}), { params: IdParams }),
      // The global ruleset can't be deleted: a 405, as for any other method that it lacks.
      preValidation: async (request, reply) => {
        if (request.params.id === 'global') return reply.callNotFound();
      },
    },
    async (request) => {
      await rulesets.remove(principalOf(request), toId(request.params.id));
      return { data: {} };
    },
  );
}

const toGlobal = (rules: readonly FirewallRule[]): GlobalRuleset => ({
  id: 'global',
  name: 'Global Firewall Rules',
  rules: rules.map(toShown),
});

/** A rule without ports has no `port_range`, not a null. */
function toShown({ protocol, port_range, source_network, description }: FirewallRule) {
  return { protocol, ...(port_range ? { port_range } : {}), source_network, description };
}
