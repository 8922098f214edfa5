// The code samples send the same request as the playground.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { describe, test } from 'node:test';
import type { ChatRequest } from '#inference/schema.ts';
import { toChatCode } from '../../web/src/code-samples/chat.ts';

const awkward = 'It\'s a "test"\nwith $HOME, `ls`, \\n and %s – ü';
const request: ChatRequest = {
  model: 'hermes3-8b',
  messages: [
    { role: 'system', content: awkward },
    { role: 'user', content: 'Hi' },
  ],
  temperature: 0.5,
  top_k: 40,
  stream: true,
};
const address = 'http://127.0.0.1:8080';

describe('code samples', () => {
  test('the curl sample survives the shell, with quotes and dollar signs', () => {
    const code = toChatCode(address, request, 'secret_x').curl;
    const script = `curl() { printf '%s\\0' "$@"; }\n${code}`;
    const sent = execFileSync('sh', ['-c', script], { encoding: 'utf8' }).split('\0');
    assert.equal(sent[0], `${address}/v1/chat/completions`);
    assert.ok(sent.includes('Authorization: Bearer secret_x'));
    assert.deepEqual(JSON.parse(sent[sent.indexOf('-d') + 1] as string), request);
  });

  test('the TypeScript sample passes the same request', () => {
    const code = toChatCode(address, request).TypeScript;
    const [, argument] = /create\((\{[\s\S]*?\n\})\);/.exec(code) ?? [];
    assert.deepEqual(JSON.parse(argument as string), request);
    assert.match(code, /process\.env\.MILLRACE_API_KEY/);
  });

  test('the Python sample passes options its library lacks as extra_body', () => {
    const code = toChatCode(address, request).Python;
    assert.match(code, /^ {4}extra_body=\{"top_k": 40\},$/m);
    assert.doesNotMatch(code, /^ {4}top_k=/m);
    assert.match(code, /^ {4}stream=True,$/m);
    assert.ok(code.includes(JSON.stringify(awkward)));
  });

  test('the code contains a key only if one is given', () => {
    for (const code of Object.values(toChatCode(address, request, null))) {
      assert.match(code, /MILLRACE_API_KEY/);
    }
    for (const code of Object.values(toChatCode(address, request, 'secret_x'))) {
      assert.match(code, /secret_x/);
      assert.doesNotMatch(code, /MILLRACE_API_KEY/);
    }
  });
});
