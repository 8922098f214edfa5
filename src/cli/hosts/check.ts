// millrace hosts check: tests one by one what a host needs.

import { Command } from 'commander';
import { type Client, createClient } from '#cli/client.ts';
import { getItem } from '#cli/noun.ts';
import { CliError, printJson, printText } from '#cli/output.ts';
import type { HostChecks } from '#cloud/hosts/schema.ts';
import { hosts, toHostPath } from './find.ts';

export function checkCommand(): Command {
  return new Command('check')
    .description('Check that hosts are reachable and have what instances need')
    .argument('[host]', 'Name or id of the host to check (default: all)')
    .option('--json', 'Print JSON')
    .action(async (wanted: string | undefined, { json }: { json?: true }) => {
      const client = createClient('session');
      const chosen =
        wanted === undefined ? await hosts.read(client) : [await getItem(hosts, client, wanted)];
      const names = chosen.map(({ name }) => name);
      if (json) {
        const all = await Promise.all(names.map((one) => check(client, one)));
        printJson(names.map((one, index) => ({ name: one, ...all[index] })));
        if (all.some(({ ok }) => !ok)) throw new CliError('');
        return;
      }
      let failed = 0;
      for (const one of names) {
        if (names.length > 1) printText(one);
        failed += (await printChecks(client, one)) ? 0 : 1;
      }
      if (failed > 0) throw new CliError('');
    });
}

/** Resolves to true if every check passed. */
export async function printChecks(client: Client, name: string): Promise<boolean> {
  const { ok, checks } = await check(client, name);
  for (const one of checks) {
    printText(`  ${one.ok ? 'ok  ' : 'FAIL'}  ${one.name.padEnd(12)}  ${one.message}`);
  }
  return ok;
}

const check = (client: Client, name: string) =>
  client.post<HostChecks>(`${toHostPath({ name })}/check`);
