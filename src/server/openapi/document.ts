// The parts of the OpenAPI description that a route can't state itself: its name among all routes, its description,
// examples, and the errors of its API.

import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';
import { cloudErrorFormat } from '#cloud/errors.ts';
import type { ErrorFormat } from '#http/error-format.ts';
import { apis, findEndpoint } from '#inference/apis/apis.ts';
import { InferenceError } from '#inference/errors.ts';
import { errorFormatOf } from '#server/bad-http.ts';
import { toCodeSamples } from './code-samples.ts';
import { cloudErrors, type DescribedError, inferenceErrors } from './error-catalog.ts';
import { introduction, title } from './introduction.ts';
import { operationTexts, tags } from './operations.ts';

const text = { type: 'string' };
const textOrNull = { type: ['string', 'null'] };

const toError = (description: string, properties: object, required: string[]) => ({
  type: 'object',
  description,
  required: ['error'],
  properties: { error: { type: 'object', required, properties } },
});

const schemas: Readonly<Record<string, object>> = {
  ...Object.fromEntries(
    apis.flatMap(({ errorSchema: own }) => (own === undefined ? [] : [[own.name, own.schema]])),
  ),
  InferenceError: toError(
    'An error of the inference API, in OpenAI’s format.',
    {
      message: { ...text, description: 'What is wrong, what is allowed, and what to do.' },
      type: { ...text, description: 'The kind of error, which OpenAI’s SDKs know.' },
      param: { ...textOrNull, description: 'The member at fault.' },
      code: { ...textOrNull, description: 'What programs compare.' },
    },
    ['message', 'type', 'param', 'code'],
  ),
  CloudError: toError(
    'An error of the cloud API, in Lambda’s format.',
    {
      code: { ...text, description: 'What programs compare.' },
      message: { ...text, description: 'What is wrong.' },
      suggestion: { ...text, description: 'What to do.' },
    },
    ['code', 'message'],
  ),
};

/** Stands for the server's base URL, which each response replaces with the one that its client uses. */
const server = 'https://server.invalid';

export const openapi: FastifyDynamicSwaggerOptions = {
  hideUntagged: true,
  openapi: {
    openapi: '3.1.0',
    info: {
      title,
      version: '1',
      description: introduction,
      license: { name: 'Apache-2.0', url: 'https://www.apache.org/licenses/LICENSE-2.0' },
    },
    servers: [{ url: server, description: 'This server' }],
    tags,
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer', description: 'An API key.' },
        basic: { type: 'http', scheme: 'basic', description: 'An API key as user name.' },
      },
    },
    security: [{ bearer: [] }, { basic: [] }],
  },
  transformObject(document) {
    if (!('openapiObject' in document)) return document.swaggerObject;
    const { openapiObject } = document;
    const paths = Object.entries(openapiObject.paths ?? {});
    return {
      ...openapiObject,
      components: {
        ...openapiObject.components,
        schemas: { ...openapiObject.components?.schemas, ...schemas },
      },
      paths: Object.fromEntries(
        paths.map(([path, item]) => [path, complete(path, item as PathItem)]),
      ),
    } as typeof openapiObject;
  },
};

/** Renders the description for a client that reaches the server at `url`. */
export const renderDocument = (text: string, url: string) => text.replaceAll(server, url);

/** The part of the description that is the cloud API. */
export const toCloudOnly = <Document extends { paths?: object; tags?: { name: string }[] }>(
  document: Document,
) => ({
  ...document,
  tags: document.tags?.filter(({ name }) => name !== 'Inference'),
  paths: Object.fromEntries(
    Object.entries(document.paths ?? {}).filter(([path]) => path.startsWith('/api/v1/')),
  ),
});

interface Content {
  schema?: object;
  example?: object;
}

interface Operation {
  summary?: string;
  parameters?: { in: string; name: string }[];
  requestBody?: { content?: Record<string, Content> };
  responses?: Record<string, { description?: string; content?: Record<string, Content> }>;
}

type PathItem = Record<string, Operation>;

function complete(path: string, item: PathItem): object {
  return Object.fromEntries(
    Object.entries(item).map(([method, operation]) => {
      const operationId = toName(operation.summary ?? `${method} ${path}`);
      const endpoint = method === 'post' ? findEndpoint(path) : undefined;
      const { description, body, response } = endpoint?.text ?? operationTexts[operationId] ?? {};
      return [
        method,
        {
          operationId,
          ...operation,
          description,
          // One schema describes the ids of several paths.
          parameters: operation.parameters?.filter(
            (one) => one.in !== 'path' || path.includes(`{${one.name}}`),
          ),
          requestBody: operation.requestBody && withExample(operation.requestBody, body),
          responses: toResponses(path, method, operation, response),
          'x-codeSamples': toCodeSamples({ method, path, server, body }),
        },
      ];
    }),
  );
}

const withExample = <Part extends { content?: Record<string, Content> }>(
  part: Part,
  example: object | undefined,
): Part => {
  const json = part.content?.['application/json'];
  if (json === undefined || example === undefined) return part;
  return { ...part, content: { ...part.content, 'application/json': { ...json, example } } };
};

function toResponses(
  path: string,
  method: string,
  { responses = {} }: Operation,
  example: object | undefined,
): object {
  const format = findErrors(path);
  const errors = format.errors.filter(
    ({ status }) => !bodyStatuses.has(status) || method !== 'get',
  );
  const success = responses[200];
  return {
    ...responses,
    ...(success && {
      200: withExample({ ...success, description: 'The request succeeded.' }, example),
    }),
    ...Object.fromEntries(
      [...Map.groupBy(errors, ({ status }) => status)].map(([status, group]) => [
        status,
        toFailure(format, group),
      ]),
    ),
  };
}

/** Statuses about the body, which a GET has not. */
const bodyStatuses = new Set([408, 413, 415]);

const types: Readonly<Record<number, string>> = {
  403: 'permission_error',
  429: 'requests',
  500: 'server_error',
  502: 'server_error',
  503: 'service_unavailable_error',
  504: 'server_error',
  507: 'server_error',
};

/** The type that the inference API sends with an error. */
const toType = (status: number, code: string | null) =>
  code === 'insufficient_quota' ? code : (types[status] ?? 'invalid_request_error');

/** How the errors of one format are described. */
interface DescribedFormat {
  readonly schema: string;
  readonly errors: readonly DescribedError[];
  toExample(error: DescribedError): object;
}

const describedFormats: ReadonlyMap<ErrorFormat, DescribedFormat> = new Map([
  ...apis.map(({ errors, errorSchema }): [ErrorFormat, DescribedFormat] => [
    errors,
    {
      schema: errorSchema?.name ?? 'InferenceError',
      // Anthropic's status for an overloaded server is 529. It is listed as the 503 of the other endpoints.
      errors: inferenceErrors,
      toExample: ({ status, code, means }) => renderExample(errors, status, code, means),
    },
  ]),
  [
    cloudErrorFormat,
    {
      schema: 'CloudError',
      errors: cloudErrors,
      toExample: ({ code, means, fix }) => ({ error: { code, message: means, suggestion: fix } }),
    },
  ],
]);

/** What the API itself would send. */
function renderExample(
  format: ErrorFormat,
  status: number,
  code: string | null,
  message: string,
): object {
  const type = toType(status, code);
  const error = new InferenceError(status, message, { type, ...(code !== null && { code }) });
  return format.renderOwn(error)?.body as object;
}

function findErrors(path: string): DescribedFormat {
  const format = describedFormats.get(errorFormatOf(path));
  if (format === undefined) throw new Error(`The errors of ${path} are not described`);
  return format;
}

const toFailure = ({ schema, toExample }: DescribedFormat, group: DescribedError[]) => ({
  description: group
    .map(({ code, means, fix }) => `${code === null ? '' : `\`${code}\`: `}${means} ${fix}`)
    .join('\n\n'),
  content: {
    'application/json': {
      schema: { $ref: `#/components/schemas/${schema}` },
      examples: Object.fromEntries(
        group.map((error) => [
          (error.code ?? 'no_key').replaceAll('/', '.'),
          { summary: error.code ?? 'No code', value: toExample(error) },
        ]),
      ),
    },
  },
});

/** Converts a summary to an operation name: `List models` becomes listModels. */
function toName(summary: string): string {
  const words = summary.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return words
    .map((word, index) => (index === 0 ? word : word[0]?.toUpperCase() + word.slice(1)))
    .join('');
}
