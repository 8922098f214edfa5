// Files and batches of the inference API: the section inference.batches.

import { section } from '#config/field.ts';
import { Type } from '#lib/schema/schema-builder.ts';

export const BatchSettings = Type.Object(
  {
    concurrency: Type.Integer({
      default: 16,
      minimum: 0,
      maximum: 10_000,
      description:
        'Maximum number of lines of batches that this server runs at once. With 0 it runs none, and leaves batches to other servers on the same database.',
    }),
    price_factor: Type.Number({
      default: 0.5,
      minimum: 0,
      maximum: 10,
      description: "What a line of a batch costs, as a multiple of the model's price.",
    }),
    max_lines: Type.Integer({
      default: 1_000_000,
      minimum: 1,
      maximum: 10_000_000,
      description: 'Maximum number of lines of a batch.',
    }),
    max_file_mib: Type.Integer({
      default: 512,
      minimum: 1,
      maximum: 65_536,
      description: 'Maximum size of an uploaded file, in MiB. Files are stored in the database.',
    }),
    account_files_mib: Type.Integer({
      default: 4_096,
      minimum: 1,
      maximum: 16_777_216,
      description:
        'Maximum size of all files of an account, in MiB. Results of batches count, but are never cut off.',
    }),
    keep_days: Type.Number({
      default: 30,
      exclusiveMinimum: 0,
      maximum: 3_650,
      description:
        'Days after which files and ended batches are deleted. An upload may ask for another time with expires_after.',
    }),
  },
  { ...section, description: 'Files and batches: /v1/files and /v1/batches.' },
);
