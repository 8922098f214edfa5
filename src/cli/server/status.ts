// millrace status: whether the server is up, its backends and machines, and the spend of this month.

import { Command } from 'commander';
import { readBackends, toState } from '#cli/backends/find.ts';
import { createClient, RefusedError, send } from '#cli/client.ts';
import { loadCredentials } from '#cli/credentials.ts';
import type { AccountLimits } from '#cli/limits/command.ts';
import { CliError, type Columns, toTable } from '#cli/output.ts';
import { listAll } from '#cli/pages.ts';
import { nameProgram } from '#cli/program-name.ts';
import { describeSpend, type MonthlySpend, readMonthlySpend } from '#cli/usage/spend.ts';
import { addView } from '#cli/view.ts';
import type { InstanceDetail } from '#cloud/schema.ts';
import type { BackendView } from '#inference/backends/schema.ts';

interface Status {
  readonly url: string;
  /** What /readyz says, such as `ok` or `draining`; `down` if there is no response. */
  readonly status: string;
  /** Why it can't be reached, or the details can't be read; null if all could. */
  readonly reason: string | null;
  /** Null if the server is down or nobody is signed in. */
  readonly details: Details | null;
}

interface Details {
  readonly version: string;
  readonly backends: readonly BackendView[];
  /** Number of instances by their status. */
  readonly machines: Readonly<Record<string, number>>;
  readonly spend: MonthlySpend;
}

export function statusCommand(): Command {
  const command = new Command('status')
    .description('Show whether the server is up, its backends, machines and spend')
    .addHelpText(
      'after',
      '\nExits with 1 if the server is down or not ready. Without a sign-in it shows nothing else.',
    );
  return addView(command, async () => {
    const status = await readStatus();
    return { data: status, text: render(status), failed: status.status !== 'ok' };
  });
}

async function readStatus(): Promise<Status> {
  const { url, session } = loadCredentials();
  let status = 'down';
  try {
    const response = await send(url, 'GET', '/readyz', {});
    const answer = (await response.json().catch(() => ({}))) as { status?: string };
    if (typeof answer.status !== 'string')
      throw new CliError(`${url} is not a Millrace server. Set MILLRACE_URL to its address.`);
    status = answer.status;
    const details = session === null ? null : await readDetails();
    return { url, status, reason: null, details };
  } catch (error) {
    if (!(error instanceof CliError)) throw error;
    const isSignedOut = error instanceof RefusedError && error.status === 401;
    return { url, status, reason: isSignedOut ? null : error.message, details: null };
  }
}

async function readDetails(): Promise<Details> {
  const client = createClient('session');
  const { spend } = await client.get<AccountLimits>('/dashboard/api/limits');
  const [{ version }, total, backends, instances] = await Promise.all([
    client.get<{ version: string }>('/dashboard/api/me'),
    readMonthlySpend(client, spend),
    readBackends(),
    listAll<InstanceDetail>(client, '/dashboard/api/instances'),
  ]);
  const machines: Record<string, number> = {};
  for (const { status } of instances) machines[status] = (machines[status] ?? 0) + 1;
  return {
    version,
    backends,
    machines,
    spend: total,
  };
}

function render({ url, status, reason, details }: Status): string {
  const state = status === 'ok' ? 'up' : status;
  const server = `Server    ${state} at ${url}`;
  if (reason !== null) return `${server}\n${reason}`;
  if (details === null)
    return nameProgram(`${server}\nRun \`millrace login\` to see models, machines and spend.`);
  const { version, backends, machines, spend } = details;
  const counts = Object.entries(machines).map(([name, count]) => `${count} ${name}`);
  const own = backends.filter(({ kind }) => kind !== 'stand-in');
  const standIns = new Set(backends.map(({ model }) => model)).size - countModels(own);
  return [
    `${server}, version ${version}`,
    `Machines  ${counts.join(', ') || 'none'}`,
    `Spend     ${spend.month} ${describeSpend(spend)}`,
    `Models    ${countModels(own)} with a backend, ${standIns} answered by the stand-in`,
    ...(own.length === 0 ? [] : ['', renderBackends(own)]),
  ].join('\n');
}

const countModels = (backends: readonly BackendView[]) =>
  new Set(backends.map(({ model }) => model)).size;

const renderBackends = (backends: readonly BackendView[]) =>
  toTable('backends', backends, columns, ['QUEUED', 'RUNNING', 'ADDRESS']);

const columns: Columns<BackendView> = {
  MODEL: ({ model }) => model,
  BACKEND: ({ name }) => name,
  ADDRESS: ({ url }) => url ?? '-',
  STATE: toState,
  RUNNING: ({ outstanding }) => String(outstanding),
  QUEUED: ({ queued }) => String(queued),
  'LAST ERROR': ({ reason, last_error }) => reason ?? last_error ?? '-',
};
