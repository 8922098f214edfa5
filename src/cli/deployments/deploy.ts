// millrace deploy: runs a model beside the server or on machines, and shows how far it is until it answers.

import { setTimeout } from 'node:timers/promises';
import { Command } from 'commander';
import { type Client, createClient, RefusedError } from '#cli/client.ts';
import { CliError, report } from '#cli/output.ts';
import { startStatusProgress } from '#cli/progress.ts';
import {
  type DeploymentView,
  deploymentEngines,
  type NewDeployment,
} from '#deployments/ground/schema.ts';
import { toDeploymentName } from '#lib/text/deployment-name.ts';
import { deploymentsPath, toPath } from './find.ts';
import { type DeploymentOptions, toChange, withDeploymentOptions } from './options.ts';

export function deployCommand(): Command {
  return withDeploymentOptions(new Command('deploy'))
    .description('Run a model on the server; it starts with the first request and stops when idle')
    .argument('<model>', 'Model id to serve, from `millrace models list`')
    .option('--name <name>', 'Name for the deployment (default: from the model id)')
    .option('--no-wait', 'Return at once')
    .option('--json', 'Print JSON')
    .addHelpText(
      'after',
      '\nExamples:\n' +
        '  millrace deploy llama3.1-8b-instruct --engine vllm --source meta-llama/Llama-3.1-8B-Instruct\n' +
        '  millrace deploy hermes3-8b --engine llama-server --source /models/hermes3-8b.gguf --max 2\n' +
        '  millrace deploy hermes3-8b --engine vllm --on gpu_1x_a10 --setup-file install-vllm.sh',
    )
    .action(deploy);
}

type DeployOptions = DeploymentOptions & { name?: string; wait: boolean; json?: true };

async function deploy(model: string, options: DeployOptions): Promise<void> {
  const client = createClient('session');
  const name = options.name ?? toDeploymentName(model);
  const change = toChange(options);
  if (change.engine == null)
    throw new CliError(`Name the engine with --engine: ${deploymentEngines.join(', ')}.`);
  checkReplicas(options);
  const input: NewDeployment = { ...change, name, model, engine: change.engine };
  // With a replica to wait for, the first request does not have to.
  const isWarmed = options.wait && (input.min ?? 0) === 0;
  const { data } = await client.post<{ data: DeploymentView }>(deploymentsPath, input);
  if (!options.wait) return report(data, `${name} starts with the first request.`, options.json);
  const asked = isWarmed ? askUntilAnswered(client, model) : new Promise<void>(() => {});
  const shown = await waitUntilReady(client, data, asked);
  const isReady = shown.status === 'ready';
  const text = isReady
    ? `${name} answers. It serves ${model}.`
    : `${name} starts once the other backends of ${model} are busy.`;
  report(shown, text, options.json);
}

/** Without `--max` there is one replica at most. */
function checkReplicas({ min = 0, max }: DeploymentOptions): void {
  if (max === undefined && min > 1)
    throw new CliError(
      `--min ${min} needs --max ${min} or more: without --max there is at most 1.`,
    );
  if (max !== undefined && min > max)
    throw new CliError(`--min must be at most --max, which is ${max}, got ${min}.`);
}

const pollMs = 500;

/**
 * Shows what the newest replica does. Returns early if a request was answered without one. Throws
 * if the deployment fails.
 */
async function waitUntilReady(
  client: Client,
  deployment: DeploymentView,
  asked: Promise<void>,
): Promise<DeploymentView> {
  let isAnswered = false;
  void asked.then(() => {
    isAnswered = true;
  });
  const progress = await startStatusProgress({
    onInterrupt: `${deployment.name} goes on. See \`millrace deployments show ${deployment.name}\`.`,
  });
  try {
    for (;;) {
      const { data } = await client.get<{ data: DeploymentView }>(toPath(deployment));
      const isResting = data.status === 'idle' || data.status === 'asleep';
      if (data.status === 'ready' || (isResting && isAnswered)) return data;
      if (data.status === 'failed' || data.status === 'stopping' || data.status === 'stopped') {
        const hint = `See \`millrace deployments logs ${data.name}\`.`;
        const what = data.status === 'failed' ? 'failed' : 'was stopped';
        throw new CliError(`${data.name} ${what}. ${data.reason ?? ''} ${hint}`);
      }
      progress.show(describeProgress(data));
      await setTimeout(pollMs);
    }
  } finally {
    progress.end();
  }
}

/** Between two attempts to start, it is why the last one failed. */
const describeProgress = ({ replicas, reason, status }: DeploymentView) =>
  replicas.at(-1)?.progress ?? (reason === null ? status : `${reason} Trying again.`);

/**
 * A request makes the server start a replica. It is sent again if it waited for too long or was not
 * forwarded, because a replica that waits for a machine is given up without requests, and a start
 * that failed is not repeated. Why there is no answer is shown by the state instead.
 */
async function askUntilAnswered(client: Client, model: string): Promise<void> {
  const json = { model, messages: [{ role: 'user', content: 'Hi' }], max_tokens: 1 };
  const content = JSON.stringify(json);
  const body = { type: 'application/json', bytes: Buffer.byteLength(content), content };
  while (await mayAnswerLater(client.postLong('/v1/chat/completions', body)))
    await setTimeout(pollMs);
}

/** Too many requests, and what the server or a proxy before it says if a backend does not answer. */
const passing: readonly number[] = [429, 502, 503, 504];

/** True if there is no answer for a reason that passes, such as a connection that was cut off. */
const mayAnswerLater = (answer: Promise<unknown>): Promise<boolean> =>
  answer.then(
    () => false,
    (error) => !(error instanceof RefusedError) || passing.includes(error.status),
  );
