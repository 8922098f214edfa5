// The thread that parses and checks large bodies. It returns the body in pieces, together with the JSON of its long
// members, so that sending them upstream needs no second serialization on the event loop.

import { MessageChannel, parentPort, type Transferable } from 'node:worker_threads';
import { parseJson, rawIntegers, type WithRawIntegers } from '#http/body/json.ts';
import { type Rendered, renderFailure } from '#http/error-format.ts';
import { endpoints } from '#inference/apis/apis.ts';
import { modelIn } from '#inference/request.ts';
import { ready } from '#lib/async/thread.ts';
import { type RawViolation, toViolation } from '#lib/schema/validation-error.ts';
import { createValidator } from '#lib/schema/validator.ts';
import { toPieces } from './body-pieces.ts';
import type { BodyJob, BodyMessage, BodyResult } from './body-thread.ts';

/** Minimum JSON length at which a member's text is passed on. Shorter members are serialized again when needed. */
const longText = 4_096;

const checks = new Map(
  endpoints.map(({ url, body, errors }) => [url, { validate: createValidator(body), errors }]),
);

function parse({ url, bytes }: BodyJob): void {
  const check = checks.get(url);
  if (check === undefined) throw new Error(`No endpoint takes large bodies at ${url}`);
  const { validate, errors } = check;
  let body: unknown;
  const refuse = (refused: Rendered) => tell({ refused, model: modelIn(body) });
  try {
    body = parseJson(Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength));
    if (validate(body)) send(body as Record<string, unknown> & WithRawIntegers);
    else {
      const violation = toViolation(validate.errors as RawViolation[]);
      refuse(errors.renderViolation(violation, 'body', body));
    }
  } catch (error) {
    refuse(renderFailure(errors, error));
  }
}

/** Queues all messages in the port, from which the receiver takes them one by one. */
function send(body: Record<string, unknown> & WithRawIntegers): void {
  const { port1, port2 } = new MessageChannel();
  const post = (message: BodyMessage, transfer: Transferable[] = []) =>
    port1.postMessage(message, transfer);
  for (const piece of toPieces(body)) post({ piece });
  for (const [name, member] of Object.entries(body)) {
    const json = JSON.stringify(member);
    if (json.length <= longText) continue;
    // Bytes are handed over without a copy, and sent upstream as they are.
    const text = new TextEncoder().encode(json);
    post({ name, text }, [text.buffer]);
  }
  if (body[rawIntegers] !== undefined) post({ rawIntegers: body[rawIntegers] });
  tell({ port: port2 }, [port2]);
  port1.close();
}

const tell = (result: BodyResult, transfer: Transferable[] = []) =>
  parentPort?.postMessage(result, transfer);

parentPort?.on('message', parse);
parentPort?.postMessage(ready);
