// Applies the rules of machines from their records. A machine's rules name the other machines of its account, which
// may reach it, so a new machine changes the rules of all of them.

import type { InboundRule } from '#cloud/drivers/driver.ts';
import {
  detachNetwork,
  type RuledMachine,
  writeRulesets,
} from '#cloud/drivers/sandbox/network/network.ts';
import type { SandboxContext } from './context.ts';
import {
  findRecord,
  isRunning,
  listRecords,
  type MachineRecord,
  machineDirectory,
} from './machine-directory.ts';

/** Applies the recorded rules of a machine; for a new member of the account also those of its running siblings. */
export function applyRules(context: SandboxContext, id: string, isNewMember: boolean) {
  // One at a time, so that an older state of the records never replaces a newer one.
  return context.locks.run('rules', async () => {
    const own = await findRecord(machineDirectory(context.dataDir, id));
    if (!own) return;
    const members = await findMembers(context, own);
    const changed: RuledMachine[] = [];
    for (const member of members) {
      const isChanged = member.id === id || (isNewMember && (await isRunning(context, member.id)));
      if (isChanged) changed.push(member);
    }
    await writeRulesets(context, changed, members);
  });
}

/** Under the lock of `applyRules`, which must not write the rules of a machine that just ended. */
export function removeNetwork(context: SandboxContext, id: string) {
  return context.locks.run('rules', () => detachNetwork(id));
}

/** The rules for ssh, which this process serves. Only siblings reach it from a private address: see `sibling_ssh`. */
export function toSshRules({ host, range }: SandboxContext, rules: readonly InboundRule[]) {
  const siblings = { portRange: [22, 22], sourceNetwork: `${range.private}.0.0/16` } as const;
  return host.canRoute ? [...rules, { protocol: 'tcp', ...siblings } as const] : rules;
}

async function findMembers(
  { dataDir }: SandboxContext,
  own: MachineRecord,
): Promise<RuledMachine[]> {
  const { account } = own.spec;
  // A machine of an earlier version is alone until the cloud names its account.
  const records = account === undefined ? [own] : await listRecords(dataDir);
  return records
    .filter((record) => record.spec.account === account)
    .map(({ spec, ip }) => ({ id: spec.id, ip, rules: spec.firewall }));
}
