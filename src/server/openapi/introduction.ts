// The introduction of the API reference, in markdown. It stands apart from the description of the API because the build
// of the dashboard puts it into the page at /docs, where it is read before the reference has loaded.

export const title = 'Millrace';

export const introduction = `Two APIs on one server, with one key.

| API | base URL | compatible with |
|---|---|---|
| Inference | \`/v1\` | OpenAI: chat completions, completions, responses, embeddings, files, batches, models; Anthropic: messages |
| Cloud | \`/api/v1\` | Lambda Cloud, version 1 |

Create a key in the dashboard or with \`millrace keys create\`. Send it as \`Authorization: Bearer <key>\`, as
\`x-api-key\`, or as the user name of HTTP Basic. Every response has an \`x-request-id\` header, which names its entry in the server’s log.

Errors have a code, which programs compare, and a message for people. Each operation lists its codes.
`;
