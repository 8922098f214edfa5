// millrace chat: a conversation with a model. It is kept only until the command ends.

import { createInterface, type Interface } from 'node:readline';
import { Command } from 'commander';
import { type Client, createClient } from '#cli/client.ts';
import { CliError } from '#cli/output.ts';
import { toPrintable } from '#lib/text/printable.ts';
import { createWriter, type Message, noteStandIn, streamAnswer } from './answer.ts';
import { chooseModel, requireModel } from './choose-model.ts';

interface Conversation {
  readonly client: Client;
  model: string;
  messages: Message[];
  /** Cancels the answer in progress; null between answers. */
  cancel: AbortController | null;
}

/** Messages sent with a question. The oldest are forgotten, except the system message. */
const maxMessages = 200;

const help = `Commands: /model [id] shows or changes the model, /clear forgets the conversation, /exit ends it.`;

export function chatCommand(): Command {
  return new Command('chat')
    .description('Talk to a model')
    .argument('[model]', 'Model id (default: the first with a healthy backend)')
    .argument('[text]', 'First message')
    .option('-m, --model <id>', 'Model id, instead of the argument')
    .option('--system <text>', 'System message')
    .addHelpText(
      'after',
      `\n${help}\nCtrl-C cancels an answer, or ends the conversation between answers. Ctrl-D ends it, too.`,
    )
    .action(chat);
}

interface Options {
  model?: string;
  system?: string;
}

async function chat(
  first: string | undefined,
  second: string | undefined,
  { model: named, system }: Options,
): Promise<void> {
  const client = createClient('any');
  if (named !== undefined && second !== undefined)
    throw new CliError('Give the model as an argument or with --model, not both.', 2);
  const [wanted, text] = named === undefined ? [first, second] : [named, first];
  if (wanted !== undefined) await requireModel(client, wanted);
  const model = await chooseModel(client, wanted);
  const start: Message[] = system === undefined ? [] : [{ role: 'system', content: system }];
  const conversation: Conversation = { client, model, messages: [...start], cancel: null };
  const terminal = process.stdin.isTTY && process.stdout.isTTY;
  if (terminal) console.log(`${toPrintable(model)}. ${help}`);
  const lines = createInterface({
    input: process.stdin,
    ...(terminal && { output: process.stdout }),
    terminal,
    prompt: '> ',
  });
  const wasInterrupted = watchInterrupt(lines, conversation);
  // Before the first answer: lines that come meanwhile would be lost.
  const typed = lines[Symbol.asyncIterator]();
  if (text !== undefined) await reply(conversation, text);
  if (terminal) lines.prompt();
  for await (const line of typed) {
    const text = line.trim();
    if (text === '/exit') break;
    if (text.startsWith('/')) await obey(conversation, text, start);
    else if (text !== '') await reply(conversation, text);
    if (terminal && !wasInterrupted()) lines.prompt();
  }
  lines.close();
  if (terminal) console.log('');
  if (wasInterrupted()) throw new CliError('', 130);
}

/** Ctrl-C cancels the answer in progress. Between answers it ends the conversation, and the result is true. */
function watchInterrupt(lines: Interface, conversation: Conversation): () => boolean {
  let interrupted = false;
  lines.on('SIGINT', () => {
    if (conversation.cancel !== null) return conversation.cancel.abort();
    interrupted = true;
    lines.close();
  });
  return () => interrupted;
}

async function obey(
  conversation: Conversation,
  text: string,
  start: readonly Message[],
): Promise<void> {
  const [command, id] = text.split(/\s+/);
  if (command === '/clear') {
    conversation.messages = [...start];
    console.log('The conversation is forgotten.');
  } else if (command === '/model' && id === undefined) {
    console.log(toPrintable(conversation.model));
  } else if (command === '/model') {
    await changeModel(conversation, id as string);
  } else {
    console.log(`There is no command ${toPrintable(command as string)}. ${help}`);
  }
}

async function changeModel(conversation: Conversation, id: string): Promise<void> {
  try {
    await requireModel(conversation.client, id);
    conversation.model = id;
    console.log(`Now talking to ${toPrintable(id)}.`);
  } catch (error) {
    reportOrThrow(error);
  }
}

/** On a terminal the conversation goes on. A script must notice. */
function reportOrThrow(error: unknown): void {
  if (!(error instanceof CliError && process.stdin.isTTY)) throw error;
  console.error(toPrintable(error.message));
}

/** A question that fails or is cancelled is not part of the conversation. */
async function reply(conversation: Conversation, content: string): Promise<void> {
  const { client, model } = conversation;
  const messages: Message[] = [...conversation.messages, { role: 'user', content }];
  const cancel = new AbortController();
  conversation.cancel = cancel;
  const writer = createWriter();
  try {
    const options = { signal: cancel.signal, write: writer.write };
    const answer = await streamAnswer(client, { model, messages }, options);
    writer.end();
    noteStandIn(answer);
    conversation.messages = forgetOldest([
      ...messages,
      { role: 'assistant', content: answer.content },
    ]);
  } catch (error) {
    writer.end();
    if (cancel.signal.aborted) console.log('Cancelled.');
    else reportOrThrow(error);
  } finally {
    conversation.cancel = null;
  }
}

function forgetOldest(messages: Message[]): Message[] {
  if (messages.length <= maxMessages) return messages;
  const system = messages.filter(({ role }) => role === 'system');
  // In pairs, so that the rest begins with a question.
  return [...system, ...messages.slice(system.length + 2)];
}
