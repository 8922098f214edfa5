// Files and batches: their rows, and what runs the lines of batches on this server.

import { createBatches } from '#inference/apis/batches/batches.ts';
import { createPrepare } from '#inference/apis/batches/line.ts';
import { BatchRows } from '#inference/apis/batches/rows.ts';
import { BatchRunner, leaseMs } from '#inference/apis/batches/runner.ts';
import { LineSlots } from '#inference/apis/batches/slots.ts';
import { createFiles } from '#inference/apis/files/files.ts';
import { newId } from '#lib/ids.ts';
import { toBatchOptions, toFileLimits } from '#server/options/limits.ts';
import type { Core } from './core.ts';
import type { Models, Serving } from './inference.ts';

export function openBatches(
  core: Core,
  { catalog }: Models,
  { serve, router, bodies, responses }: Serving,
) {
  const { config, db, clock, disk, log } = core;
  const { concurrency, priceFactor, maxLines } = toBatchOptions(config);
  const { maxBodyBytes: maxLineBytes, maxBodyValues: maxValues } = bodies.inference;
  const files = createFiles(db, clock, toFileLimits(config, disk));
  const { keepMs } = files.limits;
  const rows = new BatchRows(db, clock, { runner: newId(), leaseMs, keepMs });
  const slots = new LineSlots(concurrency, (model) =>
    router.hasSpare(catalog.find(model)?.id ?? model),
  );
  const runner = new BatchRunner({
    serve,
    prepare: createPrepare(catalog, { responses }),
    catalog,
    slots,
    clock,
    log,
    files,
    rows,
    priceFactor,
    concurrency,
    maxValues,
    maxLineBytes,
    bounds: { maxLines, maxLineBytes, maxValues },
  });
  const batches = createBatches(db, clock, () => runner.wake());
  return { files, batches, rows, runner };
}
