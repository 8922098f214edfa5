// Examples of every operation in curl, Python and TypeScript, as `x-codeSamples`, which API references display.
// Inference uses OpenAI's SDKs, which most readers have; the cloud uses plain HTTP.

export interface SampledOperation {
  method: string;
  path: string;
  /** The base URL of the server, without a path. */
  server: string;
  body: object | undefined;
}

export const toCodeSamples = (operation: SampledOperation) => [
  { lang: 'shell', label: 'curl', source: toCurl(operation) },
  { lang: 'python', label: 'Python', source: toSdk(operation, 'python') ?? toRequests(operation) },
  {
    lang: 'typescript',
    label: 'TypeScript',
    source: toSdk(operation, 'typescript') ?? toFetch(operation),
  },
];

function toCurl({ method, path, server, body }: SampledOperation): string {
  const flag = method === 'get' || (method === 'post' && body) ? '' : ` -X ${method.toUpperCase()}`;
  const lines = [`curl${flag} ${server}${path}`, '-H "Authorization: Bearer $MILLRACE_API_KEY"'];
  if (path === '/v1/files' && method === 'post')
    lines.push('-F purpose=batch', '-F file=@requests.jsonl');
  if (body !== undefined) {
    lines.push('-H "Content-Type: application/json"', `-d '${JSON.stringify(body)}'`);
  }
  return lines.join(' \\\n  ');
}

const tsUpload =
  "{ file: (await import('node:fs')).createReadStream('requests.jsonl'), purpose: 'batch' }";

const sdkCalls: Record<string, string> = {
  'get /v1/models': 'models.list',
  'get /v1/models/{model}': 'models.retrieve',
  'post /v1/chat/completions': 'chat.completions.create',
  'post /v1/completions': 'completions.create',
  'post /v1/files': 'files.create',
  'get /v1/files': 'files.list',
  'post /v1/batches': 'batches.create',
  'get /v1/batches': 'batches.list',
};

function toSdk(operation: SampledOperation, language: 'python' | 'typescript'): string | undefined {
  const { method, path, server, body } = operation;
  const call = sdkCalls[`${method} ${path}`];
  if (call === undefined) return undefined;
  const isPython = language === 'python';
  const model = path.includes('{model}') ? "'llama3.1-8b-instruct'" : '';
  const upload = isPython ? "file=open('requests.jsonl', 'rb'), purpose='batch'" : tsUpload;
  const plain = isPython ? toKeywords(body) : toLiteral(body);
  const given = call === 'files.create' ? upload : plain;
  const client = isPython
    ? `import os\n\nfrom openai import OpenAI\n\nclient = OpenAI(base_url='${server}/v1', api_key=os.environ['MILLRACE_API_KEY'])`
    : `import OpenAI from 'openai';\n\nconst client = new OpenAI({\n  baseURL: '${server}/v1',\n  apiKey: process.env.MILLRACE_API_KEY,\n});`;
  const result = `client.${call}(${model}${given})`;
  return isPython ? `${client}\nprint(${result})` : `${client}\nconsole.log(await ${result});`;
}

function toRequests({ method, path, server, body }: SampledOperation): string {
  const json = body === undefined ? '' : `\n    json=${indent(toPython(body), 4)},`;
  return `import os

import requests

response = requests.${method}(
    '${server}${path}',
    headers={'Authorization': f"Bearer {os.environ['MILLRACE_API_KEY']}"},${json}
)
response.raise_for_status()
print(response.json())`;
}

function toFetch({ method, path, server, body }: SampledOperation): string {
  const options = [
    ...(method === 'get' ? [] : [`method: '${method.toUpperCase()}',`]),
    body === undefined
      ? `headers: { authorization: \`Bearer \${process.env.MILLRACE_API_KEY}\` },`
      : `headers: {\n    authorization: \`Bearer \${process.env.MILLRACE_API_KEY}\`,\n    'content-type': 'application/json',\n  },`,
    ...(body === undefined ? [] : [`body: JSON.stringify(${indent(toLiteral(body), 2)}),`]),
  ];
  return `const response = await fetch('${server}${path}', {\n  ${options.join('\n  ')}\n});
if (!response.ok) throw new Error(await response.text());
console.log(await response.json());`;
}

const toKeywords = (body: object | undefined) =>
  body === undefined
    ? ''
    : `\n${Object.entries(body)
        .map(([name, value]) => `    ${name}=${toPython(value)},\n`)
        .join('')}`;

const toLiteral = (body: object | undefined) =>
  body === undefined ? '' : JSON.stringify(body, null, 2).replaceAll(/"([a-z_]+)":/g, '$1:');

/** JSON is Python as long as it has no true, false or null; the examples have none. */
const toPython = (value: unknown) => JSON.stringify(value);

const indent = (text: string, spaces: number) => text.replaceAll('\n', `\n${' '.repeat(spaces)}`);
