// Addresses in messages: a backend that loads them would fetch from its own network what a client
// names. Images of hosts that the operator allows are fetched here and sent as data URLs.
// Everything else is refused, or becomes a text that says so.

import type { BodyRoom, Lease } from '#http/body/room.ts';
import { type Cancellation, toSignal } from '#http/client-disconnect.ts';
import { describePart } from '#inference/content-parts.ts';
import type { Task } from '#inference/engine.ts';
import { invalidValue } from '#inference/errors.ts';
import { type ChatMessage, mediaMembers } from '#inference/schema.ts';
import { type FetchOptions, fetchImage, maxImageBytes } from './fetch-image.ts';

/** Images that are fetched for one request. */
const maxImages = 16;
/** Characters of the data URLs that are fetched for one request: some 32 MiB of images. */
const maxTotalLength = 44 * 1024 * 1024;
const maxLength = Math.ceil((maxImageBytes * 4) / 3);
/** Tokens that count for an image where only tokens are counted. */
const tokensPerImage = 1_000;

/**
 * Bounds of the images that this server holds, in characters of data URLs. Of one caller: two
 * requests of the maximum.
 */
export const imageBounds = {
  maxBytes: 6 * maxTotalLength,
  maxCallerBytes: 2 * maxTotalLength,
  maxWaiting: 64,
  maxCallerWaiting: 8,
  waitMs: 10_000,
};

export interface ImageFetching {
  /** Hosts from which images are fetched. */
  readonly hosts: readonly string[];
  /** Shared by all requests. */
  readonly room: BodyRoom;
  readonly options?: FetchOptions;
}

export interface InlinedTask {
  readonly task: Task;
  /** To be left when the images are no longer needed; null if there are none. */
  readonly lease: Lease | null;
}

type Part = Exclude<NonNullable<ChatMessage['content']>, string>[number] & Record<string, unknown>;

interface Remote {
  readonly message: number;
  readonly part: number;
  readonly type: string;
  readonly url: string;
}

/**
 * Returns the task with the images it names; the same task if it names none. Nothing is fetched
 * before there is room for it. Throws InferenceError, and what the room throws.
 */
export async function inlineMedia(
  task: Task,
  fetching: ImageFetching,
  { caller, signal }: { caller: string; signal: Cancellation },
): Promise<InlinedTask> {
  const known = withoutRefused(task, fetching.hosts);
  const found = findAllowed(known, fetching.hosts);
  if (known.kind !== 'chat' || found.length === 0) return { task: known, lease: null };
  return inline(known, found, fetching, { caller, signal: toSignal(signal) });
}

/** Returns the task without the images it names, and the tokens that count for them. Throws InferenceError. */
export function countMedia(given: Task, hosts: readonly string[]): { task: Task; tokens: number } {
  const task = withoutRefused(given, hosts);
  const found = findAllowed(task, hosts);
  if (task.kind !== 'chat' || found.length === 0) return { task, tokens: 0 };
  const messages = replaceParts(task.body.messages, found, () => ({ type: 'text', text: '' }));
  const tokens = found.length * tokensPerImage;
  return { task: { ...task, body: { ...task.body, messages } }, tokens };
}

/** Addresses that are not fetched become texts, if the task wants that. */
function withoutRefused(task: Task, hosts: readonly string[]): Task {
  if (task.kind !== 'chat' || task.describesMedia !== true) return task;
  const refused = findRemote(task.body.messages).filter((one) => !isAllowed(one, hosts));
  if (refused.length === 0) return task;
  const messages = replaceParts(task.body.messages, refused, (part) =>
    describePart(part, 'this server does not fetch it'),
  );
  return { ...task, body: { ...task.body, messages } };
}

function findAllowed(task: Task, hosts: readonly string[]): Remote[] {
  const found = task.kind === 'chat' ? findRemote(task.body.messages) : [];
  for (const one of found) checkAllowed(one, hosts);
  if (found.length <= maxImages) return found;
  throw invalidValue(
    'messages',
    `messages name ${found.length} images; at most ${maxImages} are fetched.`,
  );
}

async function inline(
  task: Extract<Task, { kind: 'chat' }>,
  found: readonly Remote[],
  { room, options = {} }: ImageFetching,
  { caller, signal }: { caller: string; signal: AbortSignal },
): Promise<InlinedTask> {
  const largest = Math.min(found.length * maxLength, maxTotalLength);
  const lease = await room.enter(caller, largest, signal);
  try {
    const { messages, length } = await fetchAll(task, found, options, signal);
    lease.shrink(length);
    return { task: { ...task, body: { ...task.body, messages } }, lease };
  } catch (error) {
    lease.leave();
    throw error;
  }
}

async function fetchAll(
  { body, describesMedia }: Extract<Task, { kind: 'chat' }>,
  found: readonly Remote[],
  options: FetchOptions,
  signal: AbortSignal,
): Promise<{ messages: ChatMessage[]; length: number }> {
  const fetched = new Map<Remote, string | null>();
  let totalLength = 0;
  for (const one of found) {
    const url = await fetchImage(new URL(one.url), options, signal).catch((error: Error) => {
      signal.throwIfAborted();
      if (describesMedia === true) return null;
      throw invalidValue(placeOf(one), `${placeOf(one)} can't be used: ${error.message}.`);
    });
    totalLength += url?.length ?? 0;
    if (totalLength > maxTotalLength)
      throw invalidValue('messages', 'messages name images of more than 32 MiB together.');
    fetched.set(one, url);
  }
  const messages = replaceParts(body.messages, found, (part, one) => {
    const url = fetched.get(one) ?? null;
    if (url === null) return describePart(part, 'it could not be fetched');
    const image = part.image_url;
    const image_url = image !== null && typeof image === 'object' ? { ...image, url } : { url };
    return { ...part, image_url };
  });
  return { messages, length: totalLength };
}

/** Copies each content once, however many of its parts are replaced: a message may have a hundred thousand. */
function replaceParts(
  given: readonly ChatMessage[],
  found: readonly Remote[],
  change: (part: Part, at: Remote) => Part,
): ChatMessage[] {
  const messages = [...given];
  for (const [index, ofMessage] of Map.groupBy(found, ({ message }) => message)) {
    const message = messages[index] as ChatMessage;
    const content = [...(message.content as Part[])];
    for (const one of ofMessage) content[one.part] = change(content[one.part] as Part, one);
    messages[index] = { ...message, content };
  }
  return messages;
}

// Python's urllib removes control characters before and inside of an address, so they hide no scheme here.
const scheme = /^[\s\0-\x20]*(?!data:)[a-z][a-z0-9+.\s\0-\x20-]*:/i;

const notData = /^(?!data:)./is;

/** Throws InferenceError if a message names an address, for backends that only read the messages. */
export function refuseMedia(messages: readonly ChatMessage[]): void {
  for (const one of findRemote(messages)) checkAllowed(one, []);
}

/** Some proxies fetch an address wherever a file, its id or its content is expected. */
function findRemote(messages: readonly ChatMessage[]): Remote[] {
  const found: Remote[] = [];
  for (const [message, { content }] of messages.entries()) {
    if (!Array.isArray(content)) continue;
    for (const [index, part] of (content as Part[]).entries()) {
      const { type } = part;
      if (type === 'text') continue;
      for (const name of mediaMembers) {
        const value = part[name];
        const members = (typeof value === 'object' && value !== null ? value : {}) as Part;
        // SGLang opens what has no scheme as a file of its own.
        const isOther = name.endsWith('_url') ? notData : scheme;
        for (const url of [value, members.url, members.file_url])
          if (typeof url === 'string' && isOther.test(url))
            found.push({ message, part: index, type: name, url: url.trim() });
        for (const data of [members.file_data, members.file_id, members.data])
          if (typeof data === 'string' && scheme.test(data))
            found.push({ message, part: index, type: 'data', url: data.trim() });
      }
    }
  }
  return found;
}

const placeOf = ({ message, part }: Remote) => `messages[${message}].content[${part}]`;

function isAllowed(one: Remote, hosts: readonly string[]): boolean {
  const url = one.type === 'image_url' && URL.canParse(one.url) ? new URL(one.url) : null;
  return (
    url?.protocol === 'https:' &&
    url.username === '' &&
    hosts.some((host) =>
      host.startsWith('*.') ? url.host.endsWith(host.slice(1)) : url.host === host,
    )
  );
}

function checkAllowed(one: Remote, hosts: readonly string[]): void {
  if (isAllowed(one, hosts)) return;
  throw invalidValue(
    placeOf(one),
    `${placeOf(one)} names an address, which this server does not fetch. Send the content as a data URL, or ask the operator to allow its host in inference.image_hosts (https only).`,
  );
}
