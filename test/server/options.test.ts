// Settings as the parts receive them: a value of the configuration file, converted into the part's own unit.

import assert from 'node:assert';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { after, describe, test } from 'node:test';
import { loadConfig } from '#config/load.ts';
import type { Config } from '#config/schema.ts';
import { toCloudLimits, toCloudOptions, toDriverOptions } from '#server/options/cloud.ts';
import {
  toBatchOptions,
  toBodyLimits,
  toFileLimits,
  toSignInOptions,
  toSpoolBytes,
  toStoreOptions,
  toUsageRetention,
} from '#server/options/limits.ts';
import { toCatalogSettings, toLocalOptions, toWeightsOptions } from '#server/options/models.ts';
import { toTraceOptions } from '#server/options/traces.ts';

const noDisk = { freeBytes: async () => 0 };

/** The settings, what they become, and the members of it that must follow. */
const conversions: readonly {
  readonly settings: object;
  readonly convert: (config: Config) => object | null;
  readonly expected: object;
}[] = [
  {
    settings: { accounts: { invitation_days: 3 } },
    convert: toSignInOptions,
    expected: { invitationDays: 3 },
  },
  {
    settings: {
      cloud: {
        emulated_instances: 7,
        filesystems_per_account: 8,
        firewall_rulesets_per_account: 9,
      },
    },
    convert: (config) => toCloudOptions(config, null),
    expected: { emulatedInstances: 7, filesystemsPerAccount: 8, rulesetsPerAccount: 9 },
  },
  {
    settings: { cloud: { vcpu_overcommit: 4 } },
    convert: (config) => toCloudOptions(config, null),
    expected: { vcpuOvercommit: 4 },
  },
  {
    settings: { cloud: { launch_interval_seconds: 4 } },
    convert: (config) => toCloudLimits(config).launches,
    // One launch, and an eighth of another for a client that is half a second early.
    expected: { intervalMs: 4_000, burst: 1.125 },
  },
  {
    settings: { cloud: { launch_interval_seconds: 4, launch_burst: 3 } },
    convert: (config) => toCloudLimits(config).launches,
    expected: { intervalMs: 4_000, burst: 3.125 },
  },
  {
    settings: {
      cloud: {
        nested_namespaces: true,
        reserved_memory_gib: 2,
        filesystem_gib: 50,
        machines_disk_gib: 60,
      },
    },
    convert: toDriverOptions,
    expected: { nested: true, reservedMemoryGib: 2, filesystemGib: 50, machinesDiskGib: 60 },
  },
  {
    settings: { database: { outage_usage_mib: 3 } },
    convert: (config) => ({ bytes: toSpoolBytes(config) }),
    expected: { bytes: 3 * 2 ** 20 },
  },
  {
    settings: { inference: { idle_minutes: 5 } },
    convert: toLocalOptions,
    expected: { idleMs: 300_000 },
  },
  {
    settings: { inference: { max_body_values: 1_234 } },
    convert: toBodyLimits,
    expected: { maxBodyValues: 1_234 },
  },
  {
    settings: { inference: { batches: { max_lines: 10, price_factor: 0.25 } } },
    convert: toBatchOptions,
    expected: { maxLines: 10, priceFactor: 0.25 },
  },
  {
    settings: { inference: { batches: { keep_days: 2 } } },
    convert: (config) => toFileLimits(config, noDisk as never),
    expected: { keepMs: 172_800_000 },
  },
  {
    settings: { inference: { responses: { keep_days: 2, max_mib: 64 } } },
    convert: toStoreOptions,
    expected: { keepMs: 172_800_000, maxBytes: 64 * 2 ** 20 },
  },
  {
    settings: { models: { pull_concurrency: 3 } },
    convert: toWeightsOptions,
    expected: { concurrency: 3 },
  },
  {
    settings: { usage: { hour_days: 40, request_days: 20 } },
    convert: toUsageRetention,
    expected: { hourDays: 40, requestDays: 20 },
  },
  {
    settings: {
      telemetry: {
        otlp_url: 'http://127.0.0.1:4318',
        otlp_headers: { 'x-key': 'secret' },
        sample_ratio: 0.1,
      },
    },
    convert: toTraceOptions,
    expected: {
      url: 'http://127.0.0.1:4318',
      headers: { 'x-key': 'secret' },
      sampleRatio: 0.1,
    },
  },
  {
    settings: { models: { catalog: { 'my-model': { fit_max_tokens: true, think_tags: 'keep' } } } },
    convert: ({ models }) => toCatalogSettings(models).changes.get('my-model') ?? null,
    expected: { fitMaxTokens: true, thinkTags: 'keep' },
  },
];

describe('settings reach their parts', () => {
  const folder = mkdtempSync(join(tmpdir(), 'millrace-options-'));
  after(() => rmSync(folder, { recursive: true, force: true }));

  for (const { settings, convert, expected } of conversions) {
    test(`${JSON.stringify(settings)} becomes ${JSON.stringify(expected)}`, () => {
      const file = join(folder, 'millrace.yaml');
      // JSON is YAML.
      writeFileSync(file, JSON.stringify(settings));
      const actual = convert(loadConfig({ config: file }, {}).config);
      assert.partialDeepStrictEqual(actual, expected);
    });
  }

  test('a setting that is left out has its default, which is another value than in the tests above', () => {
    const { config } = loadConfig({ config: writeEmpty(folder) }, {});
    for (const { convert, expected } of conversions) {
      const actual = (convert(config) ?? {}) as Record<string, unknown>;
      for (const [member, value] of Object.entries(expected))
        assert.notDeepEqual(actual[member], value, member);
    }
  });
});

function writeEmpty(folder: string): string {
  const file = join(folder, 'empty.yaml');
  writeFileSync(file, '');
  return file;
}
