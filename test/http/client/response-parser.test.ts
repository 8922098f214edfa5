// The response parser with responses of every form, split at every position, and with bytes that are not HTTP.

import assert from 'node:assert/strict';
import { describe, test } from 'node:test';
import { parsePackets } from '#test/support/http-client/parse-packets.ts';

const maxHeadBytes = 4096;
const chunked = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\nTransfer-Encoding: chunked\r\n\r\n';
const toResponse = (body: string, headers = '') =>
  `HTTP/1.1 200 OK\r\n${headers}content-length: ${body.length}\r\n\r\n${body}`;
const parse = (packets: Iterable<string>) => parsePackets(packets, maxHeadBytes);

describe('the response parser', () => {
  const early = 'HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: a\r\n\r\n';
  const forms: Record<string, [response: string, body: string, isReusable: boolean]> = {
    'a body of known length': [toResponse('hello'), 'hello', true],
    'no body': ['HTTP/1.1 204 No Content\r\n\r\n', '', true],
    'an empty body': ['HTTP/1.1 200 \r\ncontent-length: 0\r\n\r\n', '', true],
    chunks: [
      `${chunked}5\r\nhello\r\n1\r\n \r\nA\r\nten bytes!\r\n0\r\n\r\n`,
      'hello ten bytes!',
      true,
    ],
    'chunks whose content looks like chunk framing': [
      `${chunked}4\r\n0\r\n\r\r\n2\r\n\r\n\r\n0\r\n\r\n`,
      '0\r\n\r\r\n',
      true,
    ],
    'chunk extensions': [`${chunked}5;a="b"\r\nhello\r\n000;last\r\n\r\n`, 'hello', true],
    trailers: [`${chunked}5\r\nhello\r\n0\r\na: 1\r\nb: 2\r\n\r\n`, 'hello', true],
    'informational responses before it': [early + toResponse('hi'), 'hi', true],
    'a body that ends with the connection': [
      'HTTP/1.1 200 OK\r\na: b\r\n\r\nhello',
      'hello',
      false,
    ],
    'connection: close': [toResponse('hi', 'connection: Close\r\n'), 'hi', false],
    'HTTP/1.0': ['HTTP/1.0 200 OK\r\ncontent-length: 2\r\n\r\nhi', 'hi', false],
    'HTTP/1.0 and keep-alive': [
      'HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 2\r\n\r\nhi',
      'hi',
      true,
    ],
  };

  for (const [name, [response, body, isReusable]] of Object.entries(forms)) {
    test(`reads a response with ${name} the same wherever it is split`, () => {
      const unsplit = parse([response]);
      assert.deepEqual(
        [unsplit.text, unsplit.isComplete, unsplit.isReusable],
        [body, true, isReusable],
      );
      assert.deepEqual(parse(response), unsplit, 'byte by byte');
      for (let first = 0; first <= response.length; first++)
        for (let second = first; second <= response.length; second++) {
          const packets = [
            response.slice(0, first),
            response.slice(first, second),
            response.slice(second),
          ];
          assert.deepEqual(
            parse(packets.filter(Boolean)),
            unsplit,
            `split at ${first} and ${second}`,
          );
        }
    });
  }

  test('gives headers as Node does', () => {
    const lines = ['A:1', 'X-B:  two  ', 'a: 3', 'empty:', 'constructor: c', '__proto__: d'];
    const { headers } = parse([toResponse('', `${lines.join('\r\n')}\r\n`)]);
    const values = ['a', 'x-b', 'empty', 'constructor'].map((name) => headers[name]);
    assert.deepEqual(values, ['1, 3', 'two', '', 'c']);
    assert.equal(Object.getPrototypeOf(headers), Object.prototype);
  });

  test('reads the keep-alive timeout', () => {
    assert.equal(parse([toResponse('', 'Keep-Alive: max=5, timeout=7\r\n')]).keepAliveMs, 7000);
    assert.equal(parse([toResponse('', 'Keep-Alive: soon\r\n')]).keepAliveMs, null);
  });

  test('does not take a response that was cut off for a complete one', () => {
    const cutOff = [
      toResponse('hello').slice(0, -1),
      'HTTP/1.1 200 OK\r\ncontent-le',
      `${chunked}5\r\nhello`,
      `${chunked}5\r\nhello\r\n0\r\n`,
    ];
    for (const text of cutOff) assert.equal(parse([text]).isComplete, false, JSON.stringify(text));
  });

  test('refuses what is not HTTP, or could be read in two ways', () => {
    const wrong = [
      'SSH-2.0-OpenSSH_9.2\r\n\r\n',
      'HTTP/2 200\r\n\r\n',
      'HTTP/1.1 2000 OK\r\n\r\n',
      'HTTP/1.1 099 OK\r\n\r\n',
      'HTTP/1.1 101 Switching Protocols\r\nupgrade: x\r\n\r\n',
      toResponse('', 'no colon\r\n'),
      toResponse('', 'a: 1\r\n folded\r\n'),
      toResponse('', 'name : 1\r\n'),
      toResponse('', ': 1\r\n'),
      toResponse('', 'a: 1\nb: 2\r\n'),
      toResponse('', 'a: 1\rb: 2\r\n'),
      toResponse('', 'a: \0\r\n'),
      'HTTP/1.1 200 OK\rtransfer-encoding: chunked\r\n\r\n0\r\n\r\n',
      `${chunked}0\r\nHTTP/1.1 200 OK\r\n\r\n`,
      toResponse('', 'content-length: 5\r\n'),
      toResponse('0\r\n\r\n', 'transfer-encoding: chunked\r\n'),
      'HTTP/1.1 200 OK\r\ncontent-length: -1\r\n\r\n',
      'HTTP/1.1 200 OK\r\ncontent-length: 0x5\r\n\r\nhello',
      'HTTP/1.1 200 OK\r\ntransfer-encoding: gzip, chunked\r\n\r\n0\r\n\r\n',
      `${chunked}g\r\n`,
      `${chunked}\r\n`,
      `${chunked}-5\r\nhello\r\n`,
      `${chunked}5 \r\nhello\r\n`,
      `${chunked}5\nhello\r\n`,
      `${chunked}5\r\nhello!\r\n0\r\n\r\n`,
      `${chunked}123456789\r\n`,
      `${toResponse('hi')}!`,
    ];
    for (const text of wrong)
      assert.throws(() => parse([text]), { code: 'not_http' }, JSON.stringify(text));
  });

  const line = `x: ${'y'.repeat(100)}\r\n`;
  const endless: Record<string, [start: string, more: string, code: string]> = {
    headers: ['HTTP/1.1 200 OK\r\n', line, 'head_too_large'],
    'informational responses': ['', `HTTP/1.1 103 Hints\r\n${line}\r\n`, 'head_too_large'],
    trailers: [`${chunked}0\r\n`, line, 'head_too_large'],
    'chunk extensions': [`${chunked}5;`, 'x'.repeat(100), 'not_http'],
    'digits of a chunk size': [chunked, '0'.repeat(100), 'not_http'],
  };
  for (const [name, [start, more, code]] of Object.entries(endless)) {
    test(`stops reading endless ${name}`, () => {
      let bytes = 0;
      function* sendForever() {
        yield start;
        for (; bytes < 1_000_000; bytes += more.length) yield more;
      }
      assert.throws(() => parse(sendForever()), { code });
      assert(bytes < maxHeadBytes + 500, `read ${bytes} bytes`);
    });
  }
});
