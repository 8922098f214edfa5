// millrace run: one prompt, one answer, streamed to stdout.

import { Command } from 'commander';
import { type Client, createClient } from '#cli/client.ts';
import { CliError, printJson } from '#cli/output.ts';
import { createWriter, type Message, noteStandIn, streamAnswer, type Writer } from './answer.ts';
import { chooseModel, isModel } from './choose-model.ts';

interface Options {
  model?: string;
  system?: string;
  json?: true;
}

const maxInputLength = 16 * 1024 * 1024;

const examples = `
Examples:
  millrace run "Name three rivers" --model llama3.1-8b-instruct
  git diff | millrace run "Write a commit message"
  millrace run < question.txt > answer.txt

What is piped in follows the prompt. Without --model, the first model with a healthy backend answers. Ctrl-C cancels.`;

export function runCommand(): Command {
  return new Command('run')
    .description('Send a prompt to a model and print the answer as it arrives')
    .argument('[prompt]', 'The prompt (default: standard input)')
    .option('-m, --model <id>', 'Model id, from `millrace models list`')
    .option('--system <text>', 'System message')
    .option('--json', 'Print the answer, the backend, the finish reason and the usage as JSON')
    .addHelpText('after', examples)
    .action(run);
}

async function run(prompt: string | undefined, options: Options): Promise<void> {
  const client = createClient('any');
  if (prompt !== undefined && options.model === undefined) await refuseModelId(client, prompt);
  const content = await readPrompt(prompt);
  const model = await chooseModel(client, options.model);
  const messages: Message[] = [{ role: 'user', content }];
  if (options.system !== undefined) messages.unshift({ role: 'system', content: options.system });
  const controller = new AbortController();
  process.once('SIGINT', () => controller.abort());
  const { signal } = controller;
  const writer = options.json ? silent : createWriter();
  const { write } = writer;
  try {
    const answer = await streamAnswer(client, { model, messages }, { signal, write });
    if (options.json) return printJson(answer);
    writer.end();
    noteStandIn(answer);
    if (answer.finish_reason === 'length')
      console.error('The answer reached the maximum length of the model and is not complete.');
  } catch (error) {
    writer.end();
    throw signal.aborted ? new CliError('Cancelled.', 130) : error;
  }
}

/** As with Ollama, people give the model first. It would be the prompt here. */
async function refuseModelId(client: Client, prompt: string): Promise<void> {
  if (!(await isModel(client, prompt))) return;
  throw new CliError(
    `${prompt} is a model. To ask it once: \`millrace run -m ${prompt} "Hello"\`. To talk to it: \`millrace chat ${prompt}\`.`,
    2,
  );
}

const silent: Writer = { write: () => {}, end: () => {} };

async function readPrompt(prompt: string | undefined): Promise<string> {
  const piped = process.stdin.isTTY ? '' : await readInput();
  const text = [prompt ?? '', piped].filter((part) => part.trim() !== '').join('\n\n');
  if (text === '') throw new CliError('Give a prompt: `millrace run "Hello"`, or pipe one in.', 2);
  return text;
}

async function readInput(): Promise<string> {
  let text = '';
  for await (const chunk of process.stdin.setEncoding('utf8')) {
    text += chunk;
    if (text.length > maxInputLength) throw new CliError('Standard input is longer than 16 MiB.');
  }
  return text;
}
