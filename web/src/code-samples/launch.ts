// A launch as code to paste and run, in each language. It needs no library.

import type { Launch } from '#cloud/schema.ts';
import type { Language } from './chat.ts';

/** Without a key the code reads it from the environment. */
export function toLaunchCode(
  address: string,
  launch: Launch,
  key: string | null = null,
): Record<Language, string> {
  const url = `${address}/api/v1/instance-operations/launch`;
  const body = JSON.stringify(launch, null, 2);
  const indented = body.replaceAll('\n', '\n  ');
  return {
    curl: [
      `curl ${url} \\`,
      `  -H "Authorization: Bearer ${key ?? '$MILLRACE_API_KEY'}" \\`,
      `  -H "Content-Type: application/json" \\`,
      `  -d '${indented.replaceAll("'", `'\\''`)}'`,
    ].join('\n'),
    // The body holds only strings and lists, so its JSON is valid Python as well.
    Python: [
      'import json',
      ...(key === null ? ['import os'] : []),
      'from urllib.request import Request, urlopen',
      '',
      `key = ${key === null ? 'os.environ["MILLRACE_API_KEY"]' : `"${key}"`}`,
      `launch = ${body}`,
      'request = Request(',
      `    "${url}",`,
      '    data=json.dumps(launch).encode(),',
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
