// Reads Meta's Llama-3 vocabulary from the package that carries it. Token counts are billed, so other contents than
// those this code was written for are refused.

import { createHash } from 'node:crypto';
import { readFile } from 'node:fs/promises';

export interface Vocabulary {
  /** All tokens in the order of their ids, one after the other. */
  readonly bytes: Buffer;
  /** Where each token starts; the last entry is the end. */
  readonly starts: Uint32Array;
  /** The names of special tokens, whose ids follow the others. */
  readonly special: readonly string[];
}

const file = new URL(import.meta.resolve('llama3-tokenizer-js/src/data-converted.js'));
const expectedHash = '8dd8b994f25dc533e90df9906b38f5729193ae5b07a383cb23058e0e0960dc10';

export async function readLlama3Vocabulary(): Promise<Vocabulary> {
  // The file's first string holds the tokens in base64. To import it would also decode what is not needed.
  const source = await readFile(file, 'latin1');
  const start = source.indexOf('"') + 1;
  const text = Buffer.from(source.slice(start, source.indexOf('"', start)), 'base64');
  const hash = createHash('sha256').update(text).digest('hex');
  if (hash !== expectedHash)
    throw new Error(`The Llama-3 vocabulary has an unknown hash: ${hash}.`);
  return { ...decode(text.toString('utf8')), special: listSpecialTokens() };
}

/** The file has a token per line, each byte as a printable character. */
function decode(text: string): Omit<Vocabulary, 'special'> {
  const tokens = text.split('\n');
  const starts = new Uint32Array(tokens.length + 1);
  // Every character except the line ends stands for one byte.
  const bytes = Buffer.alloc(text.length - tokens.length + 1);
  const codes = createCodeTable();
  let at = 0;
  for (const [id, token] of tokens.entries()) {
    for (let index = 0; index < token.length; index++)
      bytes[at++] = codes[token.charCodeAt(index)] ?? 0;
    starts[id + 1] = at;
  }
  return { bytes, starts };
}

/**
 * By the code of each printable character, the byte that it stands for: GPT-2's alphabet. Printable bytes stand for
 * themselves, and the others follow from 256 on.
 */
function createCodeTable(): Uint8Array {
  const isPrintable = (byte: number) =>
    (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xff && byte !== 0xad);
  const all = Array.from({ length: 256 }, (_, byte) => byte);
  const table = new Uint8Array(512);
  for (const byte of all.filter(isPrintable)) table[byte] = byte;
  for (const [index, byte] of all.filter((one) => !isPrintable(one)).entries())
    table[256 + index] = byte;
  return table;
}

function listSpecialTokens(): string[] {
  const reserved = (from: number, to: number) =>
    Array.from({ length: to - from + 1 }, (_, at) => `<|reserved_special_token_${from + at}|>`);
  return [
    '<|begin_of_text|>',
    '<|end_of_text|>',
    ...reserved(0, 1),
    '<|finetune_right_pad_id|>',
    ...reserved(2, 2),
    '<|start_header_id|>',
    '<|end_header_id|>',
    '<|eom_id|>',
    '<|eot_id|>',
    '<|python_tag|>',
    ...reserved(3, 247),
  ];
}
