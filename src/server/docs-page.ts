// The docs page: the OpenAPI description as one plain HTML page, without scripts.

interface Operation {
  summary?: string;
  tags?: string[];
  requestBody?: { content?: Record<string, { schema?: JsonSchema }> };
}

interface JsonSchema {
  type?: string | string[];
  description?: string;
  properties?: Record<string, JsonSchema>;
  required?: string[];
  anyOf?: JsonSchema[];
  enum?: unknown[];
  items?: JsonSchema;
  minimum?: number;
  maximum?: number;
  maxLength?: number;
  maxItems?: number;
}

const style = `
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 56rem; margin: 2rem auto; padding: 0 1rem; overflow-wrap: anywhere; }
code, pre { font: 0.9rem ui-monospace, monospace; }
pre { overflow-x: auto; padding: 0.75rem; border: 1px solid #8886; border-radius: 6px; }
section { border-top: 1px solid #8886; margin-top: 1.5rem; padding-top: 0.5rem; }
table { border-collapse: collapse; width: 100%; display: block; overflow-x: auto; }
td, th { text-align: left; padding: 0.25rem 0.75rem 0.25rem 0; vertical-align: top; }
.method { display: inline-block; min-width: 4.5rem; font-weight: 700; }
`;

/** `url` is where programs read the same description. */
export function renderDocs(document: object, url: string): string {
  const { paths = {} } = document as { paths?: Record<string, Record<string, Operation>> };
  const operations = Object.entries(paths).flatMap(([path, methods]) =>
    Object.entries(methods).map(([method, operation]) => ({ path, method, operation })),
  );
  const tags = [...new Set(operations.map(({ operation }) => operation.tags?.[0] ?? 'Other'))];
  const parts = tags.map((tag) => {
    const own = operations.filter(({ operation }) => (operation.tags?.[0] ?? 'Other') === tag);
    return `<h2>${escapeHtml(tag)}</h2>${own.map(renderOperation).join('')}`;
  });
  return `<!doctype html><html lang="en"><head><meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Millrace API</title><style>${style}</style></head><body>
<h1>Millrace API</h1>
<p>Send your key as <code>Authorization: Bearer &lt;key&gt;</code>, or as the user name of HTTP Basic.
The same description for programs is at <a href="${url}">${url}</a>.</p>
${parts.join('')}</body></html>`;
}

function renderOperation(entry: { path: string; method: string; operation: Operation }): string {
  const { path, method, operation } = entry;
  const schema = operation.requestBody?.content?.['application/json']?.schema;
  return `<section><h3><span class="method">${method.toUpperCase()}</span> <code>${escapeHtml(path)}</code></h3>
<p>${escapeHtml(operation.summary ?? '')}</p>${schema ? renderMembers(schema) : ''}</section>`;
}

function renderMembers({ properties = {}, required = [] }: JsonSchema): string {
  const rows = Object.entries(properties).map(
    ([name, member]) =>
      `<tr><td><code>${escapeHtml(name)}</code></td>` +
      `<td>${escapeHtml(describe(member))}${required.includes(name) ? ' · required' : ''}</td></tr>`,
  );
  if (rows.length === 0) return '';
  return `<table><tr><th>Member</th><th>Value</th></tr>${rows.join('')}</table>`;
}

function describe(schema: JsonSchema): string {
  const { type, anyOf, items, minimum, maximum, maxLength, maxItems } = schema;
  if (schema.enum) return schema.enum.map(String).join(' | ');
  if (anyOf) {
    return [...new Set(anyOf.filter((one) => one.type !== 'null').map(describe))].join(' or ');
  }
  const range =
    minimum !== undefined && maximum !== undefined && Math.abs(maximum) < 1e12
      ? ` ${minimum} to ${maximum}`
      : '';
  const bound = maxLength ?? maxItems;
  const limit = bound === undefined ? '' : `, at most ${bound}`;
  const of = type === 'array' && items ? ` of ${describe(items)}` : '';
  return `${[type ?? 'any'].flat().join(' or ')}${of}${range}${limit}`;
}

const escapeHtml = (text: string) =>
  text.replaceAll('&', '&amp;').replaceAll('<', '&lt;').replaceAll('"', '&quot;');
