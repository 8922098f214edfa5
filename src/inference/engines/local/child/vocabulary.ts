// Text to token ids and back. A token is bytes: it may hold half a character, so only the bytes of a whole response are
// certain to be valid UTF-8.

import type { RawModel } from './binding.ts';
import { unknownToken } from './errors.ts';

export interface Vocabulary {
  readonly size: number;
  /** The token that begins every prompt; null if the model has none. */
  readonly bos: number | null;
  /** The token that begins a plain prompt; null for none. */
  readonly textStart: number | null;
  /** Every token that ends a generation. */
  readonly endTokens: readonly number[];
  isEnd(token: number): boolean;
  /** Tokens that would break a grammar's bounds on lengths. They are banned while a grammar is on. */
  readonly overlongTokens: readonly number[];
  /** The bytes that the token adds to the text; none for control tokens. */
  bytes(token: number): Uint8Array;
  /** The token's text, for control tokens too. */
  name(token: number): string;
  nameBytes(token: number): Uint8Array;
  /** Yields to the event loop between pieces, so that a huge prompt does not stall other requests. */
  tokenize(text: string, parseSpecial: boolean): Promise<number[]>;
  /** Matches the texts of control tokens; null if there are none. */
  readonly controlTexts: RegExp | null;
}

/** Characters tokenized before yielding to the event loop. */
const pieceChars = 16_384;
const attribute = { unknown: 1, control: 8, userDefined: 16, byte: 32 } as const;
const byteLevelVocabulary = 2;

export function createVocabulary(
  model: RawModel,
  size: number,
  startsText: boolean,
  yieldToEventLoop: () => Promise<void>,
): Vocabulary {
  const byteLevel = model.getVocabularyType() === byteLevelVocabulary;
  const alphabet = byteLevel ? createByteAlphabet() : null;
  const cache = new Map<number, Uint8Array>();
  const allTokens = Array.from({ length: size }, (_, token) => token);
  const endTokens = allTokens.filter((token) => model.isEogToken(token));
  const ends = new Set(endTokens);
  const bos = model.tokenBos() >= 0 ? model.tokenBos() : null;

  const vocabulary: Vocabulary = {
    size,
    bos: model.shouldPrependBosToken() ? bos : null,
    textStart: startsText || model.shouldPrependBosToken() ? bos : null,
    endTokens,
    isEnd: (token) => ends.has(token),
    overlongTokens: findOverlongTokens(
      allTokens.map((token) => model.getTokenString(token) ?? ''),
      byteLevel ? 'gpt2' : 'llama',
    ),
    bytes(token) {
      if (model.getTokenAttributes(token) & (attribute.control | attribute.unknown)) return nothing;
      return vocabulary.nameBytes(token);
    },
    nameBytes(token) {
      const known = cache.get(token);
      if (known !== undefined) return known;
      const bytes = readBytes(model, alphabet, token);
      cache.set(token, bytes);
      return bytes;
    },
    name: (token) =>
      new TextDecoder('utf-8', { ignoreBOM: true }).decode(vocabulary.nameBytes(token)),
    controlTexts: toPattern(
      allTokens
        .filter((token) => model.getTokenAttributes(token) & attribute.control)
        .map((token) => model.getTokenString(token)),
    ),
    async tokenize(text, parseSpecial) {
      const tokens: number[] = [];
      // Only byte-level vocabularies split words before they merge tokens; a cut would change the tokens of others.
      for (const piece of byteLevel ? toPieces(text) : [text]) {
        for (const token of model.tokenize(piece, parseSpecial)) tokens.push(token);
        if (piece.length === text.length) break;
        await yieldToEventLoop();
      }
      return tokens;
    },
  };
  return vocabulary;
}

const nothing = new Uint8Array(0);

/** `alphabet` is null for a vocabulary that is not byte-level. */
function readBytes(
  model: RawModel,
  alphabet: ReadonlyMap<string, number> | null,
  token: number,
): Uint8Array {
  const encoder = new TextEncoder();
  const text = model.getTokenString(token) ?? '';
  const attributes = model.getTokenAttributes(token);
  if (attributes & attribute.byte) return Uint8Array.of(Number.parseInt(text.slice(3, 5), 16));
  if (attributes & (attribute.control | attribute.unknown | attribute.userDefined))
    return encoder.encode(text);
  if (alphabet === null) return encoder.encode(text.replaceAll('\u2581', ' '));
  return Uint8Array.from(
    [...text].flatMap((char) => alphabet.get(char) ?? [...encoder.encode(char)]),
  );
}

/** Throws EngineError `rejected` for a token id that the vocabulary does not have. */
export function refuseUnknown(
  tokens: Iterable<number>,
  { size }: Pick<Vocabulary, 'size'>,
  param: string,
): void {
  for (const token of tokens)
    if (!Number.isInteger(token) || token < 0 || token >= size)
      throw unknownToken(token, size, param);
}

function toPattern(texts: readonly string[]): RegExp | null {
  const escaped = texts.filter((text) => text.length > 1).map((text) => RegExp.escape(text));
  return escaped.length === 0 ? null : new RegExp(escaped.join('|'), 'g');
}

/** Cuts text before a space between two letters, where every byte-level tokenizer starts a new word. */
export function* toPieces(text: string): Generator<string> {
  let start = 0;
  while (text.length - start > pieceChars) {
    let end = start + pieceChars;
    const least = end - pieceChars / 2;
    while (end > least && !isWordBreak(text, end)) end--;
    if (end === least) end = wholeCharacter(text, start + pieceChars);
    yield text.slice(start, end);
    start = end;
  }
  yield text.slice(start);
}

function isWordBreak(text: string, at: number): boolean {
  return text[at] === ' ' && isLetter(text.charCodeAt(at - 1)) && isLetter(text.charCodeAt(at + 1));
}

function isLetter(code: number): boolean {
  return (code >= 97 && code <= 122) || (code >= 65 && code <= 90);
}

function wholeCharacter(text: string, at: number): number {
  const code = text.charCodeAt(at);
  return code >= 0xdc00 && code <= 0xdfff ? at - 1 : at;
}

/** Maps the printable characters of a byte-level vocabulary to the bytes they stand for. */
function createByteAlphabet(): Map<string, number> {
  const alphabet = new Map<string, number>();
  let next = 256;
  for (let byte = 0; byte < 256; byte++) {
    const printable =
      (byte >= 33 && byte <= 126) || (byte >= 161 && byte <= 172) || (byte >= 174 && byte <= 255);
    alphabet.set(String.fromCodePoint(printable ? byte : next++), byte);
  }
  return alphabet;
}

/**
 * Finds the tokens that can begin an overlong UTF-8 sequence: those that end in a bare E0 or F0.
 * llama.cpp counts such a sequence as the character it stands for, but it is decoded as several
 * replacement characters, so a length or a quote would not be what the grammar guarantees. `tokens`
 * and `tokenizer` are the model file's `tokenizer.ggml.tokens` and `tokenizer.ggml.model`.
 */
export function findOverlongTokens(tokens: readonly string[], tokenizer: string): number[] {
  const overlong = tokenizer === 'gpt2' ? byteLevel : byteFallback;
  return tokens.flatMap((token, id) => (overlong.test(token) ? [id] : []));
}

// GPT-2's alphabet writes the bytes E0 and F0 as these letters, 80-8F as U+0122-0131, 90-9F as U+0132-0141.
const byteLevel = /\u00e0(?:$|[\u0122-\u0141])|\u00f0(?:$|[\u0122-\u0131])/;

const byteFallback = /^<0x(?:E0|F0)>$/;
