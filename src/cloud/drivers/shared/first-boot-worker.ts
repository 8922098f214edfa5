// The thread in which user data is read.

import { parentPort, workerData } from 'node:worker_threads';
import { toFirstBoot } from './user-data.ts';

parentPort!.postMessage(toFirstBoot(workerData as string));
