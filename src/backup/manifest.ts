// The manifest is the first file of an archive. It says what the archive holds, which version made it, and
// what each file must be.

import { createHash } from 'node:crypto';
import { createReadStream } from 'node:fs';
import { stat } from 'node:fs/promises';
import { join } from 'node:path';
import { Ajv } from 'ajv';
import { OneOf, type Static, Type } from '#lib/schema/schema-builder.ts';
import { stateFiles } from './state-files.ts';

export const manifestFile = 'manifest.json';
export const manifestFormat = 1;
/** Ten times what the longest manifest takes. */
export const maxManifestBytes = 64 * 1024;

const ManifestSchema = Type.Object({
  format: Type.Literal(manifestFormat),
  /** The version that made the backup. */
  millrace: Type.String({ minLength: 1, maxLength: 64 }),
  /** ISO 8601, UTC. */
  created_at: Type.String({ pattern: '^\\d{4}-\\d\\d-\\d\\dT\\d\\d:\\d\\d:\\d\\d' }),
  database: OneOf(['sqlite', 'postgresql']),
  /** The database's last migration; null if the database is not in the archive. */
  schema: Type.Unsafe<string | null>({ type: ['string', 'null'], minLength: 1, maxLength: 128 }),
  files: Type.Array(
    Type.Object({
      path: OneOf(stateFiles),
      bytes: Type.Integer({ minimum: 0 }),
      /** The checksum of the file in hex. */
      sha256: Type.String({ pattern: '^[0-9a-f]{64}$' }),
    }),
    { minItems: 1, maxItems: stateFiles.length },
  ),
});

export type Manifest = Static<typeof ManifestSchema>;
export type ManifestEntry = Manifest['files'][number];

/** Undefined if the value is not a manifest of this format. */
export function parseManifest(value: unknown): Manifest | undefined {
  return new Ajv({ allowUnionTypes: true }).compile<Manifest>(ManifestSchema)(value)
    ? value
    : undefined;
}

/** What the manifest says of a file in this folder. */
export async function toEntry(
  folder: string,
  path: ManifestEntry['path'],
  onBytes: (bytes: number) => void = () => {},
): Promise<ManifestEntry> {
  const file = join(folder, path);
  const hash = createHash('sha256');
  for await (const chunk of createReadStream(file, { highWaterMark: 1024 * 1024 })) {
    hash.update(chunk as Buffer);
    onBytes((chunk as Buffer).length);
  }
  return { path, bytes: (await stat(file)).size, sha256: hash.digest('hex') };
}
