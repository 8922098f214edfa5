// The configuration: file, environment and flags, and errors that name the place and the fix.

import assert from 'node:assert';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { Ajv } from 'ajv';
import { parse } from 'yaml';
import { withDefaults } from '#config/defaults.ts';
import { ConfigError } from '#config/error.ts';
import { renderExample } from '#config/example.ts';
import { loadConfig } from '#config/load.ts';
import { ConfigSchema, toFileSchema } from '#config/schema.ts';

const folder = mkdtempSync(join(tmpdir(), 'millrace-config-'));
after(() => rmSync(folder, { recursive: true, force: true }));
const root = join(import.meta.dirname, '../..');

function write(text: string): string {
  const file = join(folder, 'millrace.yaml');
  writeFileSync(file, text);
  return file;
}

function problems(text: string, environment = {}): string[] {
  try {
    loadConfig({ config: write(text) }, environment);
  } catch (error) {
    assert(error instanceof ConfigError);
    return error.problems.map((problem) => problem.replace(`${folder}/`, ''));
  }
  return [];
}

describe('configuration', () => {
  test('an empty file is valid: every setting has a default', () => {
    const { config } = loadConfig({ config: write('') }, {});
    assert.equal(config.server.port, 8080);
    assert.equal(config.server.host, '127.0.0.1');
    assert.throws(() => Object.assign(config.server, { port: 1 }), TypeError);
  });

  test('the default of every setting is valid, so that only what differs has to be checked', () => {
    const check = new Ajv({ strict: false }).compile(ConfigSchema);
    assert(check(withDefaults(ConfigSchema, {})), JSON.stringify(check.errors));
  });

  test('flags win over the environment, which wins over the file', () => {
    const file = write('server:\n  port: 1\n  host: a\nlog:\n  level: warn\n');
    const { config } = loadConfig(
      { config: file, 'server.port': '3' },
      { MILLRACE_PORT: '2', MILLRACE_HOST: 'b' },
    );
    assert.deepEqual([config.server.port, config.server.host, config.log.level], [3, 'b', 'warn']);
  });

  test('a wrong setting is an error that names the line and the fix', () => {
    const cases: [string, string][] = [
      [
        'server:\n  prot: 1\n',
        'millrace.yaml:2: server.prot is not a setting. Did you mean server.port?',
      ],
      ['servre:\n  port: 1\n', 'millrace.yaml:1: servre is not a setting. Did you mean server?'],
      [
        'log:\n\n  level: loud\n',
        'millrace.yaml:3: log.level must be one of fatal, error, warn, info, debug, trace, silent, got "loud".',
      ],
      [
        'server:\n  port: 70000\n',
        'millrace.yaml:2: server.port must be between 0 and 65535, got 70000.',
      ],
      ['server:\n  port: "x"\n', 'millrace.yaml:2: server.port must be an integer, got "x".'],
      [
        'cloud:\n  requests_per_second: 0\n',
        'millrace.yaml:2: cloud.requests_per_second must be more than 0 and at most 100000, got 0.',
      ],
      [
        'log:\n  level: info\nserver.port: 1\n',
        'millrace.yaml:3: server.port must be nested: write server: and below it, indented, port:.',
      ],
      ['server: 5\n', 'millrace.yaml:1: server must be a map of settings, got 5.'],
      [
        'server:\n  tls_key: a.pem\n',
        'millrace.yaml:1: set both server.tls_certificate and server.tls_key, or neither.',
      ],
      [
        'cloud:\n  client_key: a.pem\n',
        'millrace.yaml:1: set both cloud.client_certificate and cloud.client_key, or neither.',
      ],
      [
        'cloud:\n  hosts:\n    - { name: a, region: us-west-1, url: "unix:/x", pol: p }\n',
        'millrace.yaml:3: cloud.hosts[0].pol is not a setting. Did you mean cloud.hosts[0].pool?',
      ],
      [
        'cloud:\n  hosts:\n    - &a { name: a, region: us-west-1, url: "unix:/x" }\n    - *a\n',
        'millrace.yaml:2: two hosts are called a. Names of hosts must be unique.',
      ],
      [
        'cloud:\n  hosts:\n    - { name: a, region: us-west-1, url: "https://[" }\n',
        'millrace.yaml:2: the url of host a must be a URL such as https://host:8443.',
      ],
    ];
    for (const [text, problem] of cases) assert.deepEqual(problems(text), [problem]);
  });

  test('all problems are reported at once', () => {
    assert.equal(problems('server:\n  prot: 1\n  port: -1\nfoo: 1\n').length, 3);
  });

  test('a problem in the environment names the variable', () => {
    assert.deepEqual(problems('', { MILLRACE_PORT: 'http' }), [
      'MILLRACE_PORT: server.port must be an integer, got "http".',
    ]);
    assert.deepEqual(problems('', { DATABASE_URL: 'mysql://x' }), [
      'DATABASE_URL: database.url must begin with postgres:// or postgresql://.',
    ]);
    assert.match(problems('', { MILLRACE_API_KEY: 'short' })[0] ?? '', /^MILLRACE_API_KEY: /);
  });

  test('a string in place of a section is reported, even if the environment sets a part of it', () => {
    assert.deepEqual(problems('server: text\n', { MILLRACE_PORT: '1' }), [
      'millrace.yaml:1: server must be a map of settings, got "text".',
    ]);
  });

  test('URLs are checked, and one with a password is not repeated', () => {
    assert.match(
      problems('', { MILLRACE_PUBLIC_URL: 'javascript:x' })[0] ?? '',
      /^MILLRACE_PUBLIC_URL: server\.public_url must be a URL that begins with http/,
    );
    assert.deepEqual(problems('', { DATABASE_URL: 'postgres://me:secret@host:99999/x' }), [
      'DATABASE_URL: database.url must be a URL such as postgres://user:password@host:5432/name.',
    ]);
    for (const url of ['postgres://me:secret@/x?host=/run', 'postgres://me@h/x']) {
      assert.deepEqual(problems('', { DATABASE_URL: url }), []);
    }
  });

  test('the files of TLS must exist, be readable and be a pair', () => {
    const tls = (certificate: string, key: string) =>
      problems(`server:\n  tls_certificate: ${certificate}\n  tls_key: ${key}\n`);
    const file = join(folder, 'any.pem');
    writeFileSync(file, 'not a certificate');
    assert.deepEqual(tls('/no/such.pem', folder), [
      "millrace.yaml:2: can't read server.tls_certificate /no/such.pem: no such file.",
      `millrace.yaml:3: can't read server.tls_key ${folder}: it is a directory.`,
    ]);
    assert.match(
      tls(file, file)[0] ?? '',
      /^millrace\.yaml:2: .* must be PEM files of the same key pair: /,
    );
  });

  test('a file that is not YAML, or is missing, is an error with its place', () => {
    assert.match(problems('server:\n  port: [1\n')[0] ?? '', /^millrace\.yaml:\d+: /);
    assert.match(problems('- a\n')[0] ?? '', /must contain settings/);
    assert.throws(() => loadConfig({ config: '/no/such/file.yaml' }, {}), /no such file/);
    assert.throws(() => loadConfig({ config: folder }, {}), {
      name: 'ConfigError',
      message: `${folder}: can't read the file: it is a directory.`,
    });
  });

  test('the committed example has every setting once, with its default', () => {
    const example = renderExample();
    assert.equal(readFileSync(join(root, 'millrace.example.yaml'), 'utf8'), example);
    const defaults = loadConfig({ config: write('') }, {}).config;
    assert.deepEqual(parse(example), defaults);
  });

  test('every setting has a description', () => {
    const bare = (schema: object, path: string): string[] => {
      const { properties = {} } = schema as { properties?: Record<string, object> };
      return Object.entries(properties).flatMap(([name, member]) => [
        ...('description' in member ? [] : [`${path}${name}`]),
        ...bare(member, `${path}${name}.`),
      ]);
    };
    assert.deepEqual(bare(ConfigSchema, ''), []);
  });

  test('the committed JSON Schema is the one that validates, and accepts the example', () => {
    const committed = JSON.parse(readFileSync(join(root, 'millrace.schema.json'), 'utf8'));
    assert.deepEqual(committed, JSON.parse(JSON.stringify(toFileSchema())));
    const check = new Ajv({ strict: false }).compile(committed);
    assert(check(parse(renderExample())), JSON.stringify(check.errors));
    assert(check({ server: { port: 1 } }), 'a file may contain only the settings that it changes');
    assert(!check({ server: { prot: 1 } }));
  });
});
