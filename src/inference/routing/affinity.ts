// Which backend likely has the beginning of a prompt in its cache: the same leading messages always name
// the same one, and a backend that comes or goes moves only its own share (rendezvous hashing).

import type { Backend } from '#inference/backends/backend.ts';
import type { Task } from '#inference/engine.ts';
import type { ChatMessage } from '#inference/schema.ts';

/** Characters of each leading message that count; what differs later can still share a cache. */
const prefixLength = 256;
const prefixTokens = 256;
const seed = 0x811c9dc5;

/** Of the messages up to the first user's, which all turns of a conversation share. */
export function hashPrefix(task: Task): number {
  if (task.kind === 'completion') return hashPrompt(task.body.prompt);
  let hash = seed;
  for (const message of task.body.messages) {
    hash = hashText(toLeadingText(message), hash);
    if (message.role === 'user') break;
  }
  return hash;
}

/** The highest wins. Grows with the weight so that each gets its share of all prefixes. */
export function affinityOf(prefix: number, { id, weight }: Backend): number {
  const uniform = (mix(hashText(id, prefix)) + 0.5) / 2 ** 32;
  return -weight / Math.log(uniform);
}

function toLeadingText({ content }: ChatMessage): string {
  if (content == null) return '';
  if (typeof content === 'string') return content;
  return content[0]?.text ?? '';
}

function hashPrompt(prompt: string | readonly (string | number | readonly number[])[]): number {
  if (typeof prompt === 'string') return hashText(prompt, seed);
  const [first] = prompt;
  if (typeof first === 'string') return hashText(first, seed);
  const tokens = typeof first === 'number' ? (prompt as readonly number[]) : (first ?? []);
  let hash = seed;
  for (let at = 0; at < tokens.length && at < prefixTokens; at++) {
    hash = Math.imul(hash ^ (tokens[at] ?? 0), 0x01000193);
  }
  return hash;
}

/** FNV-1a over UTF-16 units. */
function hashText(text: string, from: number): number {
  const length = Math.min(text.length, prefixLength);
  let hash = from;
  for (let at = 0; at < length; at++) hash = Math.imul(hash ^ text.charCodeAt(at), 0x01000193);
  return hash;
}

/** FNV's high bits hardly depend on its last characters, which is where ids differ. */
function mix(hash: number): number {
  let mixed = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  mixed = Math.imul(mixed ^ (mixed >>> 13), 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}
