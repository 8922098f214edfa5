// Every setting with its default and its description, one file per section. The JSON Schema of the file, the
// example file, the validation and the Config type are all derived from it.

import { AccountSettings, LimitSettings, UsageSettings } from '#config/sections/accounts.ts';
import { CloudSettings } from '#config/sections/cloud.ts';
import { DeploymentsSettings } from '#config/sections/deployments.ts';
import { InferenceSettings } from '#config/sections/inference.ts';
import { ModelSettings } from '#config/sections/models.ts';
import { DatabaseSettings, RedisSettings, ServerSettings } from '#config/sections/server.ts';
import { LogSettings, TelemetrySettings } from '#config/sections/telemetry.ts';
import { type Static, Type } from '#lib/schema/schema-builder.ts';
import { NullablePattern, section } from './field.ts';

export const ConfigSchema = Type.Object(
  {
    data_dir: Type.String({
      default: './data',
      minLength: 1,
      description: 'Directory for state: the SQLite database, sandboxes and pulled models.',
    }),
    secret_key: NullablePattern(
      '^[A-Za-z0-9+/]{43}=$',
      'Key that encrypts the API keys of backends in the database: 32 bytes in base64. It must be the same for all servers on one database. If null, one is created in data_dir.',
    ),
    server: ServerSettings,
    database: DatabaseSettings,
    log: LogSettings,
    accounts: AccountSettings,
    inference: InferenceSettings,
    limits: LimitSettings,
    redis: RedisSettings,
    usage: UsageSettings,
    models: ModelSettings,
    deployments: DeploymentsSettings,
    cloud: CloudSettings,
    telemetry: TelemetrySettings,
  },
  { ...section, title: 'Millrace configuration' },
);

export type Config = Static<typeof ConfigSchema>;

/** The JSON Schema for editors. Every setting has a default, so none is required. */
export function toFileSchema(schema: unknown = ConfigSchema): unknown {
  if (Array.isArray(schema)) return schema;
  if (typeof schema !== 'object' || schema === null) return schema;
  const members = Object.entries(schema).filter(([name]) => name !== 'required');
  return Object.fromEntries(members.map(([name, member]) => [name, toFileSchema(member)]));
}
