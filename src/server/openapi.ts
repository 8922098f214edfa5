// The parts of the OpenAPI description that a route can't state itself: its name among all routes, and the error
// format of its API.

import type { FastifyDynamicSwaggerOptions } from '@fastify/swagger';

const text = { type: 'string' };
const textOrNull = { type: ['string', 'null'] };

const toError = (properties: object, required: string[]) => ({
  type: 'object',
  required: ['error'],
  properties: { error: { type: 'object', required, properties } },
});

const schemas = {
  InferenceError: toError({ message: text, type: text, param: textOrNull, code: textOrNull }, [
    'message',
    'type',
    'param',
    'code',
  ]),
  CloudError: toError({ code: text, message: text, suggestion: text }, ['code', 'message']),
};

export const openapi: FastifyDynamicSwaggerOptions = {
  hideUntagged: true,
  openapi: {
    openapi: '3.1.0',
    info: { title: 'Millrace', version: '1', description: 'Inference at /v1, cloud at /api/v1.' },
    components: {
      securitySchemes: {
        bearer: { type: 'http', scheme: 'bearer' },
        basic: { type: 'http', scheme: 'basic', description: 'The key as user name.' },
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

/** The part of the description that is the cloud API. */
export const toCloudOnly = <Document extends { paths?: object }>(document: Document) => ({
  ...document,
  paths: Object.fromEntries(
    Object.entries(document.paths ?? {}).filter(([path]) => path.startsWith('/api/v1/')),
  ),
});

type PathItem = Record<string, { summary?: string; responses?: object }>;

function complete(path: string, item: PathItem): PathItem {
  const $ref = `#/components/schemas/${path.startsWith('/v1/') ? 'InferenceError' : 'CloudError'}`;
  const failure = (description: string) => ({
    description,
    content: { 'application/json': { schema: { $ref } } },
  });
  const operations = Object.entries(item).map(([method, operation]) => [
    method,
    {
      operationId: toName(operation.summary ?? `${method} ${path}`),
      ...operation,
      responses: {
        ...operation.responses,
        '4XX': failure('Refused: the error says what would be right.'),
        '5XX': failure('Failed here or in a backend.'),
      },
    },
  ]);
  return Object.fromEntries(operations);
}

/** Converts a summary to an operation name: `List models` becomes listModels. */
function toName(summary: string): string {
  const words = summary.toLowerCase().match(/[a-z0-9]+/g) ?? [];
  return words
    .map((word, index) => (index === 0 ? word : word[0]?.toUpperCase() + word.slice(1)))
    .join('');
}
