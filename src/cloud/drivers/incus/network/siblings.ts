// Lets machines of one account reach each other over a bridge whose ports are isolated: the gateway
// routes between them, and the network ACL drops what comes from machines of other accounts. The
// members are kept in the ACL itself, so that every server computes the same rules.

import { type AddressPlan, rangesWithout, toHalves } from './addresses.ts';

export interface AclRule {
  readonly action: string;
  readonly state: string;
  readonly description: string;
  readonly destination: string;
  readonly source?: string;
  readonly protocol?: string;
  readonly destination_port?: string;
}

/** The accounts of machines by id, as the ACL's configuration holds them. */
type Config = Readonly<Record<string, string>>;

const prefix = 'user.millrace.machine.';
const description = 'millrace network';

/** Sets or removes a member. An address has one owner: an entry that a lost write left behind is removed. */
export function withMember(
  config: Config,
  id: string,
  member: { readonly account: string; readonly address: string } | null,
): Config {
  const others = Object.entries(config).filter(
    ([key, value]) => key !== prefix + id && !(member && isMemberAt(key, value, member.address)),
  );
  const own = member === null ? [] : [[prefix + id, `${member.account} ${member.address}`]];
  return Object.fromEntries([...others, ...own]);
}

const isMemberAt = (key: string, value: string, address: string) =>
  key.startsWith(prefix) && value.endsWith(` ${address}`);

/** Replaces the rules between machines. The daemon applies rules that drop before those that allow. */
export function withNetworkRules(plan: AddressPlan, config: Config, rules: readonly AclRule[]) {
  const members = Object.entries(config)
    .filter(([key]) => key.startsWith(prefix))
    .map(([, value]) => value.split(' ') as [string, string]);
  const accounts = Map.groupBy(members, ([account]) => account);
  const own = [...accounts.values()].flatMap((group) => {
    const addresses = group.map(([, address]) => address).sort();
    const common = { state: 'enabled', description, destination: addresses.join(',') };
    const strangers = rangesWithout(plan, addresses).join(',');
    return [
      ...(strangers === '' ? [] : [{ ...common, action: 'drop', source: strangers }]),
      { ...common, action: 'allow', source: common.destination },
    ];
  });
  return [...rules.filter((rule) => rule.description !== description), ...own];
}

/** The routes that lead from a machine to its siblings by the gateway: both halves of the subnet, which take
 * precedence over the subnet itself. */
export const toSiblingRoutes = (plan: AddressPlan) => toHalves(plan).join(' ');

/** The same for DHCP, as classless static routes. A client that knows them ignores the router, so it is repeated. */
export function withDhcpRoutes(plan: AddressPlan, raw: string | undefined): string {
  const { gateway } = plan;
  const routes = toHalves(plan).map((half) => `${half},${gateway}`);
  const line = `dhcp-option=121,${gateway}/32,0.0.0.0,${routes.join(',')},0.0.0.0/0,${gateway}`;
  const lines = (raw ?? '').split('\n').filter((one) => one !== '' && one !== line);
  return [...lines, line].join('\n');
}
