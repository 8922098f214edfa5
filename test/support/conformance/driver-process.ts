// A server reduced to its driver, to be killed by tests: launches each machine whose specification comes
// on a line of its input, and answers with a line when it runs. Its first line says that it is ready.

import { createInterface } from 'node:readline';
import type { Driver, MachineSpec } from '#cloud/drivers/driver.ts';
import { until } from '#test/support/until.ts';

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
    let state = await driver.inspect(spec.id);
    await until(`${spec.id} runs`, async () => {
      state = await driver.inspect(spec.id);
      return state.state === 'running';
    });
    console.log(JSON.stringify(state));
  });
}
