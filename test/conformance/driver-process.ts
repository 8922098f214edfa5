// A server reduced to its driver, to be killed by tests: launches each machine whose specification comes
// on a line of its input, and answers with a line when it runs. Its first line says that it is ready.

import { createInterface } from 'node:readline';
import type { Driver, MachineSpec } from '../../src/cloud/drivers/driver.ts';

const [module, exported, argument] = process.argv.slice(2);
const { [exported!]: create } = (await import(module!)) as Record<
  string,
  (argument: unknown) => Promise<Driver>
>;
const driver = await create!(JSON.parse(argument!));
console.log('ready');
for await (const line of createInterface({ input: process.stdin })) {
  const spec = JSON.parse(line) as MachineSpec;
  void driver.launch(spec).then(async () => {
    console.log(JSON.stringify(await driver.inspect(spec.id)));
  });
}
