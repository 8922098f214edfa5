// A POST request as code to paste and run, in each language. It needs no library.

import type { Language } from './chat.ts';

/**
 * Without a key the code reads it from the environment. The body holds only texts, numbers, lists and objects, so its JSON
 * is valid Python as well.
 */
export function toPostCode(
  url: string,
  body: object,
  key: string | null = null,
): Record<Language, string> {
  const json = JSON.stringify(body, null, 2);
  const indented = json.replaceAll('\n', '\n  ');
  return {
    curl: [
      `curl ${url} \\`,
      `  -H "Authorization: Bearer ${key ?? '$MILLRACE_API_KEY'}" \\`,
      `  -H "Content-Type: application/json" \\`,
      `  -d '${indented.replaceAll("'", `'\\''`)}'`,
    ].join('\n'),
    Python: [
      'import json',
      ...(key === null ? ['import os'] : []),
      'from urllib.request import Request, urlopen',
      '',
      `key = ${key === null ? 'os.environ["MILLRACE_API_KEY"]' : `"${key}"`}`,
      `body = ${json}`,
      'request = Request(',
      `    "${url}",`,
      '    data=json.dumps(body).encode(),',
      '    headers={"Authorization": f"Bearer {key}", "Content-Type": "application/json"},',
      ')',
      'print(json.load(urlopen(request)))',
    ].join('\n'),
    TypeScript: [
      `const key = ${key === null ? 'process.env.MILLRACE_API_KEY' : `'${key}'`};`,
      `const response = await fetch('${url}', {`,
      "  method: 'POST',",
      "  headers: { authorization: 'Bearer ' + key, 'content-type': 'application/json' },",
      `  body: JSON.stringify(${indented}),`,
      '});',
      'console.log(await response.json());',
    ].join('\n'),
  };
}
