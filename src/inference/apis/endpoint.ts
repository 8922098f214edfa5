// BOUNDARY. An endpoint that generates: how its requests become tasks. CONTRIBUTING.md says how to add an API.

import type { ErrorFormat } from '#http/error-format.ts';
import type { HeaderList } from '#http/header-list.ts';
import type { Follow } from '#inference/apis/responses/follow.ts';
import type { StoredParts } from '#inference/apis/responses/stored-routes.ts';
import type { Task } from '#inference/engine.ts';
import type { Catalog } from '#inference/models/catalog.ts';
import type { Caller } from '#inference/request.ts';
import type { Admission, AdmittedPart } from '#inference/serving/admit.ts';
import type { Clock } from '#lib/clock.ts';
import type { Static, TSchema } from '#lib/schema/schema-builder.ts';
import type { Seal } from '#lib/secrets/seal.ts';
import type { Operation, ResponseFormat } from './response-format.ts';

export interface Endpoint<Body = unknown> {
  readonly url: string;
  readonly operation: Operation;
  readonly summary: string;
  /** Schema of the request's body. */
  readonly body: TSchema;
  /** Responses in /openapi.json. */
  readonly responses: Record<number, object>;
  readonly errors: ErrorFormat;
  /** Checks what the schema can't express. Throws an error that `errors` renders. */
  translate(body: Body, from: Origin): Translation | Promise<Translation>;
}

/** What a translation may need of a request besides its body. */
export interface Origin {
  /** Id of the request, never reused. */
  readonly id: string;
  readonly accountId: string;
  readonly catalog: Catalog;
  readonly responses: ResponsesParts;
  /** Absent for the lines of a batch. */
  readonly caller?: Caller;
}

/** `answer` is the body of a response that needs no model; `follow` sends the events of one that runs elsewhere. */
export type Translation = Generation | PromptCount | Ready;

type Ready = ({ readonly answer: object } | { readonly follow: Follow }) & {
  readonly headers?: Readonly<HeaderList>;
};

export interface Generation {
  readonly task: Task;
  readonly format: ResponseFormat;
  /** Bytes of the prompt that are not in the request's body. Default 0. */
  readonly addedBytes?: number;
}

/** What the Responses API keeps between requests. */
export interface ResponsesParts extends StoredParts {
  readonly seal: Seal;
  readonly clock: Clock;
  readonly admit: (request: AdmittedPart, task: Task, format: ResponseFormat) => Promise<Admission>;
}

/** A request for the length of a prompt. Nothing is generated. */
export interface PromptCount {
  readonly counted: Task;
  toAnswer(tokens: number): object;
}

/** Gives `translate` the type of the schema. */
export const defineEndpoint = <Schema extends TSchema>(
  endpoint: Endpoint<Static<Schema>> & { readonly body: Schema },
): Endpoint => endpoint as Endpoint;
