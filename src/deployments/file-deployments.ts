// Makes the rows of this server match the deployments of the configuration file. A row of the same name that a person
// created is taken over.

import { isDeepStrictEqual } from 'node:util';
import { type Actor, type Audit, system } from '#accounts/audit/audit.ts';
import type { Tx } from '#db/tables/tables.ts';
import type { DeploymentRows } from '#deployments/ground/rows.ts';
import type { NewDeployment } from '#deployments/ground/schema.ts';
import { toSpec } from '#deployments/ground/spec.ts';

/** Settings by name. */
export type FileDeployments = Readonly<Record<string, Omit<NewDeployment, 'name'>>>;

interface FileParts {
  readonly rows: DeploymentRows;
  readonly audit: Audit;
}

/** Returns the names of deployments that another server created. */
export async function applyFile(
  { rows, audit }: FileParts,
  tx: Tx,
  accountId: string,
  settings: FileDeployments,
): Promise<string[]> {
  const actor: Actor = { ...system, accountId };
  const elsewhere: string[] = [];
  for (const [name, given] of Object.entries(settings)) {
    const spec = toSpec({ name, ...given });
    const owner = await rows.findOwner(tx, name);
    if (owner === undefined) {
      await rows.insert(tx, accountId, name, spec, true);
      await audit.record(tx, actor, { action: 'deployment.created', resourceId: name });
    } else if (!owner.isOwn) elsewhere.push(name);
    else {
      const stored = await rows.find(tx, owner.accountId, name);
      if (stored?.inFile && isDeepStrictEqual(stored.spec, spec)) continue;
      if (stored !== undefined) await rows.replace(tx, stored, spec, true);
      else {
        // It was encrypted with another secret_key. The file has all of it.
        await rows.remove(tx, owner.accountId, name);
        await rows.insert(tx, accountId, name, spec, true);
      }
      await audit.record(tx, actor, { action: 'deployment.changed', resourceId: name });
    }
  }
  for (const name of await rows.namesInFile(tx)) {
    if (Object.hasOwn(settings, name)) continue;
    await rows.remove(tx, accountId, name);
    await audit.record(tx, actor, { action: 'deployment.removed', resourceId: name });
  }
  return elsewhere;
}
