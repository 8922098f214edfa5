// millrace backends: the servers that answer for each model, changed while Millrace runs.

import { Command } from 'commander';
import { changeCommand, nounCommand } from '#cli/noun.ts';
import { CliError, type Columns, toTable } from '#cli/output.ts';
import { addView, type View } from '#cli/view.ts';
import type { BackendView } from '#inference/backends/schema.ts';
import { addCommand } from './add.ts';
import { checkCommand } from './check.ts';
import { backends, readBackends, toState } from './find.ts';

export const backendsCommand = (): Command =>
  nounCommand('backends', 'List, add, check, drain and remove the backends of models', [
    listCommand(),
    addCommand(),
    checkCommand(),
    changeCommand(backends, 'drain', {
      description: 'Send a backend no new requests; running ones finish',
      async run(client, backend) {
        const data = await client.patch<BackendView>(toPath(backend), { draining: true });
        const { id, outstanding } = data;
        const text = `${id} gets no new requests. Requests still running: ${outstanding}.`;
        return { data, text };
      },
    }),
    changeCommand(backends, 'resume', {
      description: 'Send requests to a drained backend again',
      async run(client, backend) {
        const data = await client.patch<BackendView>(toPath(backend), { draining: false });
        return { data, text: `${data.id} gets requests again.` };
      },
    }),
    changeCommand(backends, 'remove', {
      description: 'Remove a backend that was added live; its running requests finish first',
      question: ({ id }) => `Remove backend ${id}?`,
      async run(client, backend) {
        await client.delete(toPath(backend));
        const { id } = backend;
        const text = `${id} gets no new requests. It is removed once its running requests finish.`;
        return { data: { id }, text };
      },
    }),
  ]);

const toPath = ({ model, name }: BackendView) =>
  `/dashboard/api/backends/${encodeURIComponent(model)}/${encodeURIComponent(name)}`;

function listCommand(): Command {
  const command = new Command('list')
    .description('List backends with their health, load and errors')
    .argument('[model]', 'Only the backends of this model');
  return addView(command, list);
}

async function list(model: string | undefined): Promise<View> {
  const all = await readBackends();
  const data = all.filter((backend) => model === undefined || backend.model === model);
  if (model !== undefined && data.length === 0)
    throw new CliError(`No model ${model} has backends. See \`millrace backends list\`.`);
  const table = toTable('backends', data, columns, spare);
  return { data, text: [table, ...data.flatMap(explain)].join('\n') };
}

const columns: Columns<BackendView> = {
  MODEL: ({ model }) => model,
  NAME: ({ name }) => name,
  FROM: ({ source }) => source,
  ADDRESS: ({ url }) => url ?? '-',
  STATE: toState,
  RUNNING: ({ outstanding }) => String(outstanding),
  'REQ/S': ({ requests_per_second }) => String(requests_per_second),
  'FIRST TOKEN': ({ first_token_ms: ms }) => (ms === null ? '-' : `${Math.round(ms)} ms`),
  ERRORS: ({ errors }) => String(errors),
};

const spare = ['FROM', 'FIRST TOKEN', 'REQ/S', 'ADDRESS', 'RUNNING'];

function explain({ id, reason, last_error, implausible_counts: count }: BackendView): string[] {
  const why = reason ?? last_error;
  const times = count === 1 ? 'once' : `${count} times`;
  return [
    ...(why === null ? [] : [`\n${id}: ${why}`]),
    ...(count === 0
      ? []
      : [`\n${id}: reported implausible token counts ${times} in 24 hours; counted here instead.`]),
  ];
}
