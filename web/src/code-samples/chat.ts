// A chat request as code to paste and run, in each language.

import type { ChatRequest } from '#inference/schema.ts';

export const languages = ['curl', 'Python', 'TypeScript'] as const;
export type Language = (typeof languages)[number];

/** The question in samples that have no conversation to show. */
export const sampleQuestion = 'What is a millrace?';

/** Without a key the code reads it from the environment. */
export function toChatCode(
  address: string,
  request: ChatRequest,
  key: string | null = null,
): Record<Language, string> {
  const body = JSON.stringify(request, null, 2);
  const options = Object.entries(request).filter(([, value]) => value !== undefined);
  return {
    curl: [
      `curl ${address}/v1/chat/completions \\`,
      `  -H "Authorization: Bearer ${key ?? '$MILLRACE_API_KEY'}" \\`,
      `  -H "Content-Type: application/json" \\`,
      `  -d '${body.replaceAll("'", `'\\''`).replaceAll('\n', '\n  ')}'`,
    ].join('\n'),
    Python: [
      ...(key === null ? ['import os', ''] : []),
      'from openai import OpenAI',
      '',
      `client = OpenAI(base_url="${address}/v1", api_key=${
        key === null ? 'os.environ["MILLRACE_API_KEY"]' : `"${key}"`
      })`,
      '',
      `${request.stream ? 'stream' : 'response'} = client.chat.completions.create(`,
      ...toPythonArguments(options),
      ')',
      ...(request.stream
        ? [
            'for chunk in stream:',
            '    if chunk.choices:',
            '        print(chunk.choices[0].delta.content or "", end="", flush=True)',
          ]
        : ['print(response.choices[0].message.content)']),
    ].join('\n'),
    TypeScript: [
      "import OpenAI from 'openai';",
      '',
      'const client = new OpenAI({',
      `  baseURL: '${address}/v1',`,
      `  apiKey: ${key === null ? 'process.env.MILLRACE_API_KEY' : `'${key}'`},`,
      '});',
      '',
      `const ${request.stream ? 'stream' : 'response'} = await client.chat.completions.create(${body});`,
      ...(request.stream
        ? [
            'for await (const chunk of stream) {',
            "  process.stdout.write(chunk.choices[0]?.delta.content ?? '');",
            '}',
          ]
        : ['console.log(response.choices[0]?.message.content);']),
    ].join('\n'),
  };
}

/** Options that OpenAI's Python library has no argument for; they go into extra_body. */
const extras = ['top_k', 'min_p', 'repetition_penalty'];

function toPythonArguments(options: [string, unknown][]): string[] {
  const line = ([name, value]: [string, unknown]) => `    ${name}=${toPython(value, 4)},`;
  const extra = options.filter(([name]) => extras.includes(name));
  return [
    ...options.filter(([name]) => !extras.includes(name)).map(line),
    ...(extra.length === 0 ? [] : [line(['extra_body', Object.fromEntries(extra)])]),
  ];
}

function toPython(value: unknown, indent: number): string {
  const inner = ' '.repeat(indent + 4);
  const outer = ' '.repeat(indent);
  if (value === null || value === undefined) return 'None';
  if (typeof value === 'boolean') return value ? 'True' : 'False';
  if (Array.isArray(value)) {
    const items = value.map((item) => `${inner}${toPython(item, indent + 4)},\n`);
    return items.length === 0 ? '[]' : `[\n${items.join('')}${outer}]`;
  }
  if (typeof value === 'object') {
    const members = Object.entries(value).map(
      ([name, member]) => `${JSON.stringify(name)}: ${toPython(member, indent + 4)}`,
    );
    return `{${members.join(', ')}}`;
  }
  return JSON.stringify(value);
}
