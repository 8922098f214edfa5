// The thread that parses and checks large bodies. It returns the body in pieces, together with the JSON of its long
// members, so that sending them upstream needs no second serialization on the event loop.

import { MessageChannel, parentPort } from 'node:worker_threads';
import { parseJson, type Written, written } from '#http/body/json.ts';
import { renderFailure } from '#http/error-format.ts';
import { inferenceErrorFormat } from '#inference/errors.ts';
import { modelIn } from '#inference/request.ts';
import { ChatRequest, CompletionRequest } from '#inference/schema.ts';
import { ready } from '#lib/async/thread.ts';
import { type RawViolation, toViolation } from '#lib/schema/validation-error.ts';
import { createValidator } from '#lib/schema/validator.ts';
import { toPieces } from './body-pieces.ts';
import type { BodyAnswer, BodyJob, BodyMessage } from './body-thread.ts';

/** Minimum JSON length at which a member's text is passed on. Shorter members are serialized again when needed. */
const longText = 4_096;

const validators = {
  chat: createValidator(ChatRequest),
  completion: createValidator(CompletionRequest),
};

function answer({ id, kind, bytes }: BodyJob): void {
  let body: unknown;
  try {
    body = parseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    const validate = validators[kind];
    if (validate(body)) send(id, body as Record<string, unknown> & Written);
    else {
      const violation = toViolation(validate.errors as RawViolation[]);
      refuse(inferenceErrorFormat.renderViolation(violation, 'body', body));
    }
  } catch (error) {
    refuse(renderFailure(inferenceErrorFormat, error));
  }

  function refuse(rendered: BodyAnswer['refused']): void {
    tell({ id, refused: rendered, model: modelIn(body), port: null }, []);
  }
}

/** Queues all messages in the port, from which the receiver takes them one by one. */
function send(id: number, body: Record<string, unknown> & Written): void {
  const { port1, port2 } = new MessageChannel();
  const post = (message: BodyMessage) => port1.postMessage(message);
  for (const piece of toPieces(body)) post({ piece });
  for (const [name, member] of Object.entries(body)) {
    const text = JSON.stringify(member);
    if (text.length > longText) post({ name, text });
  }
  if (body[written] !== undefined) post({ written: body[written] });
  tell({ id, refused: null, model: '', port: port2 }, [port2]);
  port1.close();
}

const tell = (given: BodyAnswer, transfer: BodyAnswer['port'][]) =>
  parentPort?.postMessage(given, transfer as never[]);

parentPort?.on('message', answer);
parentPort?.postMessage(ready);
