// Writes a constraint on the output as the members that each kind of server understands.

import type { Constraint } from '#inference/constraint.ts';
import { EngineError, type Task } from '#inference/engine.ts';
import type { UpstreamServer } from './servers.ts';

type Members = Record<string, unknown>;

/** Null if this kind of server can't enforce the constraint, and would ignore it. */
export function toConstraintMembers(
  server: UpstreamServer,
  { kind, body }: Task,
  constraint: Constraint,
): Members | null {
  const isJson = constraint.kind === 'json_schema' || constraint.kind === 'json_object';
  switch (server) {
    case 'vllm':
      return isFormat(constraint)
        ? { response_format: toFormat(body, constraint) }
        : toVllm(body, constraint);
    case 'sglang':
      if (isJson && kind === 'completion')
        return { json_schema: JSON.stringify(schemaOf(constraint)) };
      return isJson ? { response_format: toFormat(body, constraint) } : toSglang(constraint);
    case 'llama-server':
      // Its completions ignore `response_format`.
      if (isJson && kind === 'completion') return { json_schema: schemaOf(constraint) };
      return isJson ? { response_format: toFormat(body, constraint) } : toLlamaServer(constraint);
    case 'ollama':
    case 'openai':
      return isJson && kind === 'chat' ? { response_format: toFormat(body, constraint) } : null;
  }
}

export function cannotEnforce({ param }: Constraint, server: UpstreamServer): EngineError {
  const known =
    server === 'openai'
      ? 'a server of unknown kind can enforce only response_format of a chat. If it can do more, set its kind in the backend’s `server`'
      : `${server} does not support it`;
  return new EngineError('rejected', `The model's backend can't enforce ${param}: ${known}.`, {
    code: 'unsupported_parameter',
    param,
  });
}

const isFormat = ({ param }: Constraint) => param.startsWith('response_format');

/** The format stays as the client wrote it, unless only some servers know its form. */
function toFormat({ response_format: format }: Task['body'], constraint: Constraint): Members {
  const isKnown = format?.schema == null && isFormat(constraint);
  if (format != null && isKnown) return format;
  if (constraint.kind === 'json_object') return { type: 'json_object' };
  const json_schema = { name: 'response', schema: schemaOf(constraint), strict: true };
  return { type: 'json_schema', json_schema };
}

const schemaOf = (constraint: Constraint) =>
  constraint.kind === 'json_schema' ? constraint.schema : { type: 'object' };

/** Older versions know only `guided_*`, newer ones only `structured_outputs`; both ignore the other. */
function toVllm({ structured_outputs: given }: Task['body'], constraint: Constraint): Members {
  switch (constraint.kind) {
    case 'json_object':
      return {
        structured_outputs: given ?? { json_object: true },
        response_format: { type: 'json_object' },
      };
    case 'json_schema': {
      const { schema } = constraint;
      return { structured_outputs: given ?? { json: schema }, guided_json: schema };
    }
    case 'structural_tag':
      return { structured_outputs: given };
    default: {
      const { kind, value } = constraint;
      return { structured_outputs: given ?? { [kind]: value }, [`guided_${kind}`]: value };
    }
  }
}

function toSglang(constraint: Constraint): Members | null {
  if (constraint.kind === 'regex') return { regex: constraint.value };
  if (constraint.kind === 'grammar') return { ebnf: constraint.value };
  if (constraint.kind === 'choice')
    return { regex: `(${constraint.value.map(escapeRegex).join('|')})` };
  return null;
}

const escapeRegex = (text: string) => text.replaceAll(/[\\^$.*+?()[\]{}|]/g, '\\$&');

function toLlamaServer(constraint: Constraint): Members | null {
  if (constraint.kind === 'grammar') return { grammar: constraint.value };
  if (constraint.kind === 'choice')
    return { grammar: `root ::= ${constraint.value.map(toGbnfText).join(' | ')}` };
  return null;
}

const toGbnfText = (text: string) =>
  `"${text.replaceAll(/["\\]/g, '\\$&').replaceAll('\n', '\\n').replaceAll('\r', '\\r')}"`;
