// Addresses in messages: a backend that loads them would fetch from its own network what a client names. Images of
// hosts that the operator allows are fetched here and sent as data URLs. Everything else is refused.

import { type Cancellation, toSignal } from '#http/client-disconnect.ts';
import type { Task } from '#inference/engine.ts';
import { invalidValue } from '#inference/errors.ts';
import type { ChatMessage } from '#inference/schema.ts';
import { type FetchOptions, fetchImage } from './fetch-image.ts';

/** Images that are fetched for one request. */
const maxImages = 16;
/** Characters of the data URLs that are fetched for one request: some 32 MiB of images. */
const maxTotalLength = 44 * 1024 * 1024;

type Part = Exclude<NonNullable<ChatMessage['content']>, string>[number] & Record<string, unknown>;

interface Remote {
  readonly message: number;
  readonly part: number;
  readonly type: string;
  readonly url: string;
}

/** Returns the task with the images it names; the same task if it names none. Throws InferenceError. */
export function inlineMedia(
  task: Task,
  hosts: readonly string[],
  signal: Cancellation,
  options: FetchOptions = {},
): Task | Promise<Task> {
  const found = task.kind === 'chat' ? findRemote(task.body.messages) : [];
  if (task.kind !== 'chat' || found.length === 0) return task;
  for (const one of found) checkAllowed(one, hosts);
  if (found.length > maxImages)
    throw invalidValue(
      'messages',
      `messages name ${found.length} images; at most ${maxImages} are fetched.`,
    );
  return inline(task, found, toSignal(signal), options);
}

async function inline(
  task: Extract<Task, { kind: 'chat' }>,
  found: readonly Remote[],
  signal: AbortSignal,
  options: FetchOptions,
): Promise<Task> {
  const messages = [...task.body.messages];
  let totalLength = 0;
  for (const one of found) {
    const url = await fetchImage(new URL(one.url), options, signal).catch((error: Error) => {
      signal.throwIfAborted();
      throw invalidValue(placeOf(one), `${placeOf(one)} can't be used: ${error.message}.`);
    });
    totalLength += url.length;
    if (totalLength > maxTotalLength)
      throw invalidValue('messages', 'messages name images of more than 32 MiB together.');
    const message = messages[one.message] as ChatMessage;
    const content = [...(message.content as Part[])];
    const given = content[one.part]?.image_url;
    const image_url = typeof given === 'object' ? { ...given, url } : { url };
    content[one.part] = { ...(content[one.part] as Part), image_url };
    messages[one.message] = { ...message, content };
  }
  return { ...task, body: { ...task.body, messages } };
}

// Python's urllib removes control characters before and inside of an address, so they hide no scheme here.
const scheme = /^[\s\0-\x20]*(?!data:)[a-z][a-z0-9+.\s\0-\x20-]*:/i;

const notData = /^(?!data:)./is;

/** Throws InferenceError if a message names an address, for backends that only read the messages. */
export function refuseMedia(messages: readonly ChatMessage[]): void {
  for (const one of findRemote(messages)) checkAllowed(one, []);
}

function findRemote(messages: readonly ChatMessage[]): Remote[] {
  const found: Remote[] = [];
  for (const [message, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [index, part] of (content as Part[]).entries()) {
      const { type } = part;
      if (type === 'text') continue;
      for (const name of [
        'image_url',
        'video_url',
        'audio_url',
        'image',
        'video',
        'audio',
        'file',
        'url',
      ]) {
        const value = part[name] as string | { url?: unknown; file_url?: unknown } | undefined;
        const urls = typeof value === 'object' ? [value?.url, value?.file_url] : [value];
        // SGLang opens what has no scheme as a file of its own.
        const isOther = name.endsWith('_url') ? notData : scheme;
        for (const url of urls)
          if (typeof url === 'string' && isOther.test(url))
            found.push({ message, part: index, type: name, url: url.trim() });
      }
    }
  }
  return found;
}

const placeOf = ({ message, part }: Remote) => `messages[${message}].content[${part}]`;

function checkAllowed(one: Remote, hosts: readonly string[]): void {
  const url = one.type === 'image_url' && URL.canParse(one.url) ? new URL(one.url) : null;
  const isAllowed =
    url?.protocol === 'https:' &&
    url.username === '' &&
    hosts.some((host) =>
      host.startsWith('*.') ? url.host.endsWith(host.slice(1)) : url.host === host,
    );
  if (isAllowed) return;
  throw invalidValue(
    placeOf(one),
    `${placeOf(one)} names an address, which this server does not fetch. Send the content as a data URL, or ask the operator to allow its host in inference.image_hosts (https only).`,
  );
}
