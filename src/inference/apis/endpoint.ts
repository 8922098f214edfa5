// BOUNDARY. An inference API and its endpoints: how requests become tasks. CONTRIBUTING.md says how to add one.

import type { Cancellation } from '#http/client-disconnect.ts';
import type { ErrorFormat } from '#http/error-format.ts';
import type { HeaderList } from '#http/response-headers.ts';
import type { Task } from '#inference/engine.ts';
import type { Catalog } from '#inference/models/catalog.ts';
import type { Caller } from '#inference/request.ts';
import type { FindNames } from '#inference/serving/own-names.ts';
import type { ResponseFormat } from '#inference/serving/response-format.ts';
import type { Static, TSchema } from '#lib/schema/schema-builder.ts';

/** The endpoints below one prefix of the URL. `Parts` are what their translations need of the server. */
export interface Api<Parts = object> {
  readonly prefix: string;
  /** Heading in the API reference; absent if the API is described elsewhere. */
  readonly tag?: string;
  readonly errors: ErrorFormat;
  /** Describes errors that don't look like OpenAI's, in the API reference. */
  readonly errorSchema?: { readonly name: string; readonly schema: object };
  readonly anyContentType?: boolean;
  /** Header that has the request's id besides `x-request-id`. */
  readonly idHeader?: string;
  readonly endpoints: readonly Endpoint<Parts>[];
}

/** What the API reference says about an endpoint besides its schemas. */
export interface EndpointText {
  readonly description: string;
  /** A valid request, which tests with hostile requests change. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly response?: object;
}

export interface Endpoint<Parts = object, Body = unknown> {
  readonly url: string;
  /** Its name in usage rows, metrics and traces. */
  readonly operation: string;
  readonly summary: string;
  readonly text: EndpointText;
  /** Schema of the request's body. */
  readonly body: TSchema;
  /** Responses in /openapi.json. */
  readonly responses: Record<number, object>;
  /** Renders the errors of batches and of the thread for large bodies. Default: the format of the API. */
  readonly errors?: ErrorFormat;
  /** Checks what the schema can't express. Throws an error that `errors` renders. */
  translate(body: Body, from: Origin & Parts): Translation | Promise<Translation>;
}

/** What a translation may need of a request besides its body. */
export interface Origin {
  /** Id of the request, never reused. */
  readonly id: string;
  readonly accountId: string;
  readonly catalog: Catalog;
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

/** A request for the length of a prompt. Nothing is generated. */
export interface PromptCount {
  readonly counted: Task;
  /** As those of a response's format. */
  readonly names?: FindNames;
  toAnswer(tokens: number): object;
}

export type Follow = (send: SendEvents, signal: Cancellation) => Promise<void>;

/** Sends whole events. A promise is awaited before the next ones. */
export type SendEvents = (events: string) => Promise<void> | undefined;

/** Gives `translate` the type of the schema. */
export const defineEndpoint = <Schema extends TSchema, Parts = object>(
  endpoint: Endpoint<Parts, Static<Schema>> & { readonly body: Schema },
): Endpoint<Parts> => endpoint as Endpoint<Parts>;
