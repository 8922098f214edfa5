// Turns the texts of an embedding or rerank request into what the model reads: with the special tokens that it was
// trained with, and for a rerank model the query before each document.

import type { Binding, RawModel } from '#inference/engines/local/child/binding.ts';
import { textTooLong, wrongModelKind } from '#inference/engines/local/child/errors.ts';
import { refuseUnknown, type Vocabulary } from '#inference/engines/local/child/vocabulary.ts';
import type { PoolingTask } from '#inference/pooling.ts';

type PooledModel = { readonly binding: Binding; readonly vocabulary: Vocabulary };

/** Throws EngineError `rejected` if the model can't read a text. */
export async function toPooledTexts(model: PooledModel, task: PoolingTask): Promise<Uint32Array[]> {
  const { binding } = model;
  const needed = task.kind === 'embed' ? 'embedding' : 'rerank';
  if (binding.modelKind !== needed) throw wrongModelKind(binding.modelKind, needed);
  const all: Uint32Array[] = [];
  for (const tokens of readTexts(model, task)) {
    const { length } = tokens;
    const place = `${task.kind === 'embed' ? 'input' : 'documents'}[${all.length}]`;
    if (length > binding.window) throw textTooLong(place, length, binding.window);
    all.push(tokens);
    // One text blocks for at most some milliseconds, but there may be thousands.
    if (all.length % 16 === 0) await new Promise(setImmediate);
  }
  return all;
}

function* readTexts(model: PooledModel, task: PoolingTask): Generator<Uint32Array> {
  const { binding, vocabulary } = model;
  if (task.kind === 'rerank') {
    const query = binding.model.tokenize(task.query, false);
    for (const document of task.documents) yield toPair(binding, task.query, query, document);
    return;
  }
  for (const input of task.inputs) {
    if (typeof input === 'string') {
      yield withSpecial(binding.model, binding.model.tokenize(input, false));
      continue;
    }
    refuseUnknown(input, vocabulary, 'input');
    yield Uint32Array.from(input);
  }
}

const wordPieceVocabulary = 3;

/** Special tokens before and after a text, by the rules of llama.cpp. Null for none. */
function specialTokens(model: RawModel): { start: number | null; end: number | null } {
  const isWordPiece = model.getVocabularyType() === wordPieceVocabulary;
  const startsText = isWordPiece || model.shouldPrependBosToken();
  const end = isWordPiece ? model.sepToken() : model.shouldAppendEosToken() ? model.tokenEos() : -1;
  return {
    start: startsText && model.tokenBos() >= 0 ? model.tokenBos() : null,
    end: end >= 0 ? end : null,
  };
}

/** A text as an embedding model reads it. */
export function withSpecial(model: RawModel, tokens: Uint32Array): Uint32Array {
  const { start, end } = specialTokens(model);
  return join(toList(start), tokens, toList(end));
}

function toPair(
  { model, rerankTemplate }: Binding,
  query: string,
  queryTokens: Uint32Array,
  document: string,
): Uint32Array {
  const { start, end } = specialTokens(model);
  if (rerankTemplate !== null) return toTemplated(model, rerankTemplate, { query, document });
  const documentTokens = model.tokenize(document, false);
  const eos = model.tokenEos() >= 0 ? model.tokenEos() : null;
  // BERT separates the two once; RoBERTa and those after it end the first and open the second.
  const isWordPiece = model.getVocabularyType() === wordPieceVocabulary;
  const separator = model.sepToken() >= 0 ? model.sepToken() : null;
  const between = isWordPiece ? toList(separator) : [...toList(eos), ...toList(separator ?? eos)];
  return join(toList(start), queryTokens, between, documentTokens, toList(end ?? eos));
}

/** The texts are not read as special tokens, whatever they contain; the template is. */
function toTemplated(
  model: RawModel,
  template: string,
  texts: Readonly<Record<'query' | 'document', string>>,
): Uint32Array {
  const pieces = template.split(/\{(query|document)\}/);
  return join(
    ...pieces.map((piece, at) =>
      at % 2 === 0
        ? model.tokenize(piece, true)
        : model.tokenize(texts[piece as 'query' | 'document'], false),
    ),
  );
}

const toList = (token: number | null): number[] => (token === null ? [] : [token]);

function join(...parts: readonly ArrayLike<number>[]): Uint32Array {
  const joined = new Uint32Array(parts.reduce((sum, { length }) => sum + length, 0));
  let at = 0;
  for (const part of parts) {
    joined.set(part, at);
    at += part.length;
  }
  return joined;
}
